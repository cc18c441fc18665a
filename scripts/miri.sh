#!/usr/bin/env bash
# Tests memory, messages and parts of the queue under Miri, an interpreter that finds undefined behaviour: dangling
# pointers, uninitialised reads, data races. Miri needs a nightly compiler, which rustup installs. The whole queue
# would take too long. Other crates have no unsafe code, or system calls that Miri does not know.
# `make miri`; ends with `miri: N passed, N failed, N skipped`.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/need.sh cargo:cargo cc:gcc
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/miri
if ! command -v rustup >/dev/null; then
    echo "skipped all: Miri needs rustup, which is missing"
    echo "miri: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    rustup toolchain install nightly --profile minimal --component miri --component rust-src
fi
mkdir -p "$target"
: >"$target/log"
code=0
# Without isolation, clocks and random numbers come from the system. The pool keeps free blocks, so `make asan` finds leaks instead.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks ${MIRIFLAGS:-}"
cargo +nightly miri test --target-dir "$target" -p tautline-mem --lib 2>&1 | tee -a "$target/log" || code=$?
cargo +nightly miri test --target-dir "$target" -p tautline-queue --lib -- \
    message:: segment:: tests::adopted tests::inproc::bodies_by_reference_count 2>&1 | tee -a "$target/log" || code=$?
read -r passed failed < <(awk '/^test result: / { p += $4; f += $6 } END { print p + 0, f + 0 }' "$target/log")
[ "$code" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "miri: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
