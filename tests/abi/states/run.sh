#!/usr/bin/env bash
# Compares the answers of each sending socket type, in each state of its connection, with the recorded answers of libzmq 4.3.5.
#
#   tests/abi/states/run.sh            our library; tautline.tsv has its differing rows, with the reasons
#   tests/abi/states/run.sh baseline   libzmq itself, with its draft interface
#   tests/abi/states/run.sh record     records libzmq's answers and prints the table
#   CASES="silent 0" ...           only the cases with this text in their name, STATE IMMEDIATE TYPE
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
work=$target/states
mkdir -p "$work"

if [[ -z ${1:-} ]]; then
    library=$("$root/tests/lib/build.sh" library)/libzmq.so
    arguments=("$here/libzmq.tsv" "$here/tautline.tsv")
else
    "$root/scripts/libzmq-baseline.sh" --ws >&2
    library=$target/baseline/libzmq-ws/lib/libzmq.so
    arguments=(--racy "$here/libzmq.tsv")
    [[ $1 != record ]] || arguments=(--record)
fi
folder=$work/lib-${1:-ours}
mkdir -p "$folder"
ln -sf "$(readlink -f "$library")" "$folder/libzmq.so.5"
"${CC:-cc}" -std=gnu11 -O1 -Wall -Wextra -Wshadow -Werror -I "$root/include" "$here/states.c" "$folder/libzmq.so.5" -o "$folder/states"
LD_LIBRARY_PATH=$folder exec timeout -k 10 900 "$folder/states" "${arguments[@]}"
