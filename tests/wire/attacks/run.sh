#!/usr/bin/env bash
# Resources that peers can take from a process by bad behaviour: memory, descriptors, processor time, and the answers of good
# clients.
#
#   tests/wire/attacks/run.sh [WORD...]           every attack, or those with a WORD in their name;
#                                                 a suite of `make test`
#   tests/wire/attacks/run.sh --table [WORD...]   a table beside libzmq 4.3.5; `make attack`
#
#   LIBRARY=DIR      the libzmq.so in DIR in place of our library, which it builds
#   OLD_KERNEL=1     attacks over `ipc` as on a kernel before 6.16, which cannot refuse descriptors: without that
#                    option of the socket, by a filter of system calls
#   OLD=DIR          a third library in the table, an older Tautline for example
#   SECONDS_EACH=2   how long each attack in the table lasts
#   APART=1          a core is left to the good client and the thread that answers it: the attacker
#                    and the victim's other threads stay on another
#
# The columns of the table:
#
# - the accepted part of the attack, and the memory and processor time that the victim spent on it
# - the rate of a good client that asks without a pause, as a part of its rate on a quiet machine, and as a part of its rate while
#   the same attack goes to another victim, which loads the machine equally
# - the good client's answers, and the first answer of a client that connects during the attack
# - the processor time of the victim's own calls, if it is told to make some (`then`)
#
# The limit that bounds the attack stands behind its name, unless it is a default of the library. The table ends with the attacks
# that leave a good client less than 80 % of its rate.
#
# As a test it asserts how much memory, how many descriptors and how many bytes of an attacker the
# victim takes, that good clients are answered, and that the victim ends in good order. Times are
# only shown where that fails.
#
# A new attack is a function in a file of the folder `cases` (cases/connected.py is an example):
#
#   @case("PINGs whose PONGs are not read", type="PULL", options=["option=24:10"], memory=MIB)
#   def pings(attack):
#       # A socket, which lasts as long as the attack.
#       stream = attack.connect(receive_buffer=4096)
#       zmtp.shake_hands(stream, "PUSH")
#       # Until the victim does not read, or VOLUME is sent.
#       attack.flood(stream, zmtp.ping() * 1000)
#
# `zmtp.py` (tests/lib/python), `ring.py`, `curve.py` and `tls.py` produce the attacker's bytes. A transport over TLS is one line
# of SCHEMES in cases/tls.py. The keywords are those of `Case` in harness.py (how much the attack may cost, and the victim's
# limits), and the options of victim.c, such as type, mode and security. Attacks from C are programs of the folder `ipc`, listed in test_ipc.py.
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
# library NAME FILE: a folder in which FILE has the name that programs look for.
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
# An attack leaves the machine idle for half of its time.
run_pytest attacks tests/wire/attacks/run.sh "$here" -n 2 --assert plain --library "$work/tautline" --victim "$work/victim" \
    "${words[@]/#/--word=}" || code=$?
# A word that is in no name is no failure.
[[ $code -eq 0 || $code -eq 5 ]]
