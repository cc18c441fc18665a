#!/usr/bin/env bash
# Checks that the library exports exactly the symbols of libzmq, built with its default features and with all released features.
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
# Builds the default features without optimisation, because the speed does not matter here.
cargo build -p tautline-libzmq >&2
code=0
for library in "$target/debug/libzmq.so" "$released/libzmq.so"; do
    cargo run --quiet -p xtask -- abi "$library" || code=1
done
exit $code
