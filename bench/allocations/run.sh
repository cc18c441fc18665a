#!/usr/bin/env bash
# Counts allocations for each message, and reads the heap during a longer run, on libzmq 4.3.5 and on Tautline.
#
#   bench/allocations/run.sh [SECONDS]      SECONDS of each longer run, 60 by default
#
# Prints two tables. All figures go to target/bench/allocations.json. Linux with glibc only.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/bench

scripts/need.sh cargo:cargo cc:gcc python3:python3
. scripts/step.sh
mkdir -p "$out/ours" "$out/bin"
step "allocations: building Tautline" "$out/library.log" cargo build --release -p tautline-libzmq
ln -sfn "$target/release/libzmq.so" "$out/ours/libzmq.so.5"
step "allocations: libzmq 4.3.5" "$out/baseline.log" scripts/libzmq-baseline.sh "$target/baseline"
step "allocations: the C programs" "$out/programs.log" bench/peers/c/build.sh "$root/include" "$target/baseline/libzmq/lib" "$out/bin"
"${CC:-cc}" -std=gnu11 -O2 -fPIC -shared -Wall -Wextra -o "$out/bin/count.so" bench/allocations/count.c
exec python3 bench/allocations/measure.py "$out" "$target/baseline/libzmq/lib" "${1:-60}"
