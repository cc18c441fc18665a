#!/usr/bin/env bash
# Tests the concurrent parts of the engine under all interleavings: the tests loom_*, built with `--cfg loom`.
#
#   tests/rust/loom.sh [FILTER]
#
# Ends with `loom: N passed, N failed, N skipped`.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
scripts/need.sh cargo:cargo gcc:gcc
log=$target/test/loom.log
mkdir -p "$target/test"
code=0
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$target/loom CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true \
    cargo test --release --no-fail-fast -p tautline-mem -p tautline-io -p tautline-queue --lib "${1:-loom_}" 2>&1 |
    tee "$log" | sed 's/^test result:/tests:/' || code=$?
tests/rust/sum.sh loom tests/rust/loom.sh "$log"
exit "$code"
