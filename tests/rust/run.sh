#!/usr/bin/env bash
# The tests of all crates, and the examples of their documentation, with one set of features (.cargo/config.toml).
#
#   tests/rust/run.sh                  all that need nothing else
#   tests/rust/run.sh linger           those with a part of this name
#   tests/rust/run.sh -E 'FILTER'      as cargo-nextest selects them, for example 'package(tautline-core) & test(linger)'
#
# Each test runs in a process of its own. Ends with `rust: N passed, N failed, N skipped`.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
scripts/need.sh cargo:cargo gcc:gcc
. tests/rust/nextest.sh
log=$target/test/rust.nextest.log
mkdir -p "$target/test"
code=0
# Ignored tests are listed, and count as skipped. With a selection, every other test would be listed as well.
list=(--status-level skip)
[[ $# -eq 0 ]] || list=()
cargo whole-nextest --no-tests warn ${list[@]+"${list[@]}"} "$@" 2>&1 | tee "$log" || code=$?
# Parts of names select no examples; they run as well if there is no selection.
[[ $# -gt 0 ]] || cargo whole-test --doc --no-fail-fast 2>&1 | tee -a "$log" || code=$?

tests/rust/sum.sh rust "tests/rust/run.sh -E" "$log"
exit "$code"
