#!/usr/bin/env bash
# What a peer over ipc can do with descriptors and shared memory: each program of this folder, against a victim of its own.
#
#   tests/wire/attacks/ipc/run.sh [LIBDIR] [WORD]   the libzmq.so in LIBDIR, default target/release; only runs with WORD in them
#
# Ends with `ipc attacks: N passed, N failed, N skipped`; exit code 0 if nothing failed. OLD_KERNEL=1 runs each as on a kernel before 6.16,
# which cannot refuse descriptors: without that option of the socket, by a filter of system calls.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
libdir=$(realpath "${1:-$target/release}") word=${2:-}
work=$target/attacks/ipc
mkdir -p "$work"
ln -sfn "$libdir/libzmq.so" "$work/libzmq.so.5"
passed=0 failed=0 skipped=0

for source in "$here"/*.c; do
    gcc -std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-function -I "$root/include" "$source" "$work/libzmq.so.5" -pthread \
        -o "$work/$(basename "$source" .c)" || exit
done

while read -r name words; do
    [[ -z $word || "$name $words" == *"$word"* ]] || continue
    # shellcheck disable=SC2086 # the words are several
    LD_LIBRARY_PATH=$work timeout -k 5 120 ${OLD_KERNEL:+"$work/without_option"} "$work/$name" $words
    case $? in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
done <<EOF
held_lock socket
held_lock memory
held_lock offer
held_lock socket handshake
held_lock memory handshake
held_lock offer handshake
lingering
lingering handshake
lingering 60
strangers
bells
full_ring
lies ahead
lies far
lies back
lies early
lies never
lies hole
lies storm
EOF
echo "ipc attacks: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
