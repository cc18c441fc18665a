#!/usr/bin/env bash
# The symbols that the library exports, built with its default features and with all that are released: exactly those of libzmq.
#
#   tests/abi/exports/run.sh
#
# Ends with `exports: N passed, N failed, N skipped`.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
scripts/need.sh cargo:cargo gcc:gcc nm:binutils
released=$(tests/lib/build.sh library)
# The default features: how fast it is does not matter here.
cargo build -p tautline-libzmq >&2
code=0
for library in "$target/debug/libzmq.so" "$released/libzmq.so"; do
    cargo run --quiet -p xtask -- abi "$library" || code=1
done
exit $code
