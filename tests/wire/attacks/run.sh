#!/usr/bin/env bash
# What peers can take from a process by bad behaviour: memory, descriptors, processor time, and the
# answers of good clients.
#
#   tests/wire/attacks/run.sh [WORD...]           every attack, or those with a WORD in their name;
#                                            a suite of `make test`
#   tests/wire/attacks/run.sh --table [WORD...]   a table beside libzmq 4.3.5; `make attack`
#
#   LIBRARY=DIR      the libzmq.so in DIR in place of the build (with wss) in target/release
#   OLD=DIR          a third library in the table, an older Tautline for example
#   SECONDS_EACH=2   how long each attack in the table lasts
#   APART=1          a core is left to the good client and the thread that answers it: the attacker
#                    and the victim's other threads stay on another
#
# In the table: how much of the attack was taken; the victim's memory and processor time by it; the
# rate of a good client that asks without a pause, of what it is when nothing else happens, and of
# what it is while the same attack goes to another victim, which takes as much of the machine; its
# answers; the first answer of a client that connects meanwhile; and what the victim's own calls
# took where it is told to make some (`then`, of processor time). Behind the name: which limit bounds the attack, where
# it is not the library's defaults; and at the end, which attacks leave a good client less than 80 % of its rate.
#
# As a test it asserts how much memory, how many descriptors and how many bytes of an attacker the
# victim takes, that good clients are answered, and that the victim ends in good order. Times are
# only shown. Ends with `attacks: N passed, N failed, N skipped`.
#
# A new attack is a function in a file of a folder here (cases/connected.py is an example; every
# */*.py is loaded):
#
#   @case("PINGs whose PONGs are not read", type="PULL", options=["option=24:10"], memory=MIB)
#   def pings(attack):
#       # A socket, which lasts as long as the attack.
#       stream = attack.connect(receive_buffer=4096)
#       zmtp.shake_hands(stream, "PUSH")
#       # Until the victim does not read, or VOLUME is sent.
#       attack.flood(stream, zmtp.ping() * 1000)
#
# `zmtp.py`, `curve.py` and `tls.py` are what an attacker says. A transport over TLS is one line of SCHEMES in cases/tls.py.
# The keywords are those of `Case` in harness.py (what may be taken, what limits the victim has),
# and what victim.c calls type, mode, security and so on. A folder with a run.sh of its own, LIBDIR
# [WORD], that ends with `NAME attacks: N passed, N failed, N skipped` is run as well.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
work=$target/attacks
if [[ $(uname) != Linux ]]; then
    echo "attacks: 0 passed, 0 failed, 1 skipped"
    exit
fi
baseline=()
[[ ${1:-} != --table ]] || baseline=(baseline-ws)
"$root/scripts/need.sh" cargo:cargo gcc:gcc python3:python3 ${baseline[@]+"${baseline[@]}"}
mkdir -p "$work"

table=
if [[ ${1:-} == --table ]]; then
    table=--table=${SECONDS_EACH:-2}
    shift
fi
libraries=()
# library NAME FILE: a folder in which FILE has the name that programs look for.
library() {
    mkdir -p "$work/$1"
    ln -sfn "$(realpath "$2")" "$work/$1/libzmq.so.5"
    ln -sfn libzmq.so.5 "$work/$1/libzmq.so"
    libraries+=("--library=$1:$work/$1")
}
if [[ -z ${LIBRARY:-} ]]; then
    (cd "$root" && cargo build --release --quiet -p tautline-libzmq --features tls,names)
fi
if [[ -n ${OLD:-} && -n $table ]]; then library old "$OLD/libzmq.so"; fi
library tautline "${LIBRARY:-$target/release}/libzmq.so"
if [[ -n $table ]]; then
    # With drafts and WebSocket.
    "$root/scripts/libzmq-baseline.sh" --ws >&2
    library libzmq "$target/baseline/libzmq-ws/lib/libzmq.so"
fi
gcc -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror -pedantic -I "$root/include" "$here/victim.c" "$work/tautline/libzmq.so.5" -pthread \
    -o "$work/victim"
suite=(timeout -k 10 7200 python3 "$here/suite.py" "$work/victim" "$work" "${libraries[@]}")
if [[ -n $table ]]; then
    exec "${suite[@]}" "$table" "$@"
fi

# all WORD...: each part says what it has counted.
all() {
    local code=0 part
    "${suite[@]}" "$@" || code=1
    for part in "$here"/*/run.sh; do
        [[ ! -e $part ]] || "$part" "$work/tautline" "$@" || code=1
    done
    return $code
}
code=0
all "$@" | tee "$work/log" || code=1
awk '/^[a-z ]*attacks[a-z ]*: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
    sub(/.*: /, ""); passed += $1; failed += $3; skipped += $5
} END { printf "attacks: %d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$work/log"
exit $code
