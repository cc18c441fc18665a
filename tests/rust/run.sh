#!/usr/bin/env bash
# Runs the tests of all crates, and the examples of their documentation, with one set of features (.cargo/config.toml).
#
#   tests/rust/run.sh                  all tests that need no other programs
#   tests/rust/run.sh linger           tests with this word in their name
#   tests/rust/run.sh -E 'FILTER'      tests that match a filter of cargo-nextest, for example 'package(tautline-core) & test(linger)'
#
# Each test runs in its own process. Ends with `rust: N passed, N failed, N skipped`.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
scripts/need.sh cargo:cargo gcc:gcc
. tests/rust/nextest.sh
log=$target/test/rust.nextest.log
mkdir -p "$target/test"
code=0
# Lists ignored tests, which count as skipped. With a selection, nextest would also list all other tests.
list=(--status-level skip)
[[ $# -eq 0 ]] || list=()
cargo whole-nextest --no-tests warn ${list[@]+"${list[@]}"} "$@" 2>&1 | tee "$log" || code=$?
# A part of a name cannot select examples, so the examples run only without a selection.
[[ $# -gt 0 ]] || cargo whole-test --doc --no-fail-fast 2>&1 | tee -a "$log" || code=$?

tests/rust/sum.sh rust "tests/rust/run.sh -E" "$log"
exit "$code"
