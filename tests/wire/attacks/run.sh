#!/usr/bin/env bash
# Measures the resources that hostile peers can take from a process: memory, descriptors, processor time, and the answers of
# good clients.
#
#   tests/wire/attacks/run.sh [WORD...]           all attacks, or the attacks with a WORD in their name;
#                                                 a suite of `make test`
#   tests/wire/attacks/run.sh --table [WORD...]   a table beside libzmq 4.3.5; `make attack`
#
#   LIBRARY=DIR      the libzmq.so in DIR in place of our library, which the script builds otherwise
#   OLD_KERNEL=1     attacks over `ipc` as on a kernel before 6.16, which cannot refuse descriptors. A filter of system
#                    calls rejects the socket option SO_PASSRIGHTS
#   OLD=DIR          a third library in the table, for example an older Tautline
#   SECONDS_EACH=2   duration of each attack in the table
#   APART=1          reserves a core for the good client and the thread that answers it. The attacker and the victim's
#                    other threads run on another core
#
# The columns of the table:
#
# - the accepted part of the attack, and the memory and processor time that the victim spent on it
# - the rate of a good client that sends requests without a pause. One column relates it to the rate on a quiet machine, another
#   one to the rate during the same attack on another victim, which loads the machine equally
# - the times to the good client's answers, and to the first answer of a client that connects during the attack
# - the processor time of the victim's own calls, if the case has such calls (`then`)
#
# The limit that bounds the attack stands behind its name, unless it is a default of the library. The table ends with the attacks
# that leave a good client less than 80 % of its rate.
#
# A test asserts limits for the memory, the descriptors and the bytes that the attack costs the victim. It also asserts that good
# clients get answers, and that the victim exits cleanly. It shows times only if it fails.
#
# A new attack is a function in a file of the folder `cases` (cases/connected.py is an example):
#
#   @case("PINGs whose PONGs are not read", type="PULL", options=["option=24:10"], memory=MIB)
#   def pings(attack):
#       # The socket stays open until the end of the attack.
#       stream = attack.connect(receive_buffer=4096)
#       zmtp.shake_hands(stream, "PUSH")
#       # Sends until the victim stops reading, or VOLUME is sent.
#       attack.flood(stream, zmtp.ping() * 1000)
#
# `zmtp.py` (tests/lib/python), `ring.py`, `curve.py` and `tls.py` produce the attacker's bytes. A transport over TLS is one line
# of SCHEMES in cases/tls.py. Keywords are settings of `Case` in harness.py (limits of the attack's cost, and the victim's limits)
# or options of victim.c, such as type, mode and security. Attacks in C are programs of the folder `ipc`, listed in test_ipc.py.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
work=$target/attacks
if [[ $(uname) != Linux ]]; then
    echo "attacks: 0 passed, 0 failed, 1 skipped"
    exit
fi
"$root/scripts/need.sh" cargo:cargo gcc:gcc
mkdir -p "$work"

libraries=()
# library NAME FILE: creates a folder with a link to FILE that has the library's usual name.
library() {
    mkdir -p "$work/$1"
    ln -sfn "$(realpath "$2")" "$work/$1/libzmq.so.5"
    ln -sfn libzmq.so.5 "$work/$1/libzmq.so"
    libraries+=("$1:$work/$1")
}
library=${LIBRARY:-$("$root/tests/lib/build.sh" library)}
library tautline "$library/libzmq.so"
gcc -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror -pedantic -I "$root/include" "$here/victim.c" "$work/tautline/libzmq.so.5" -pthread \
    -o "$work/victim"
. "$root/tests/lib/venv.sh"

if [[ ${1:-} == --table ]]; then
    if [[ -n ${OLD:-} ]]; then
        library old "$OLD/libzmq.so"
        libraries=("${libraries[1]}" "${libraries[0]}")
    fi
    reference=$("$root/tests/lib/build.sh" baseline)
    library libzmq "$reference/libzmq.so"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/lib/python exec "$venv/bin/python" "$here/table.py" "$work/victim" "$work" \
        "${SECONDS_EACH:-2}" "${libraries[@]}" -- "${@:2}"
fi
words=("$@")
code=0
# Two cases run in parallel, because an attack leaves the machine idle for half of its time.
run_pytest attacks tests/wire/attacks/run.sh "$here" -n 2 --assert plain --library "$work/tautline" --victim "$work/victim" \
    "${words[@]/#/--word=}" || code=$?
# Exit code 5 means that no case has a WORD in its name, which is not a failure.
[[ $code -eq 0 || $code -eq 5 ]]
