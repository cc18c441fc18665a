#!/usr/bin/env bash
# Makes all checks that are no tests: formatting, house rules with prose and commit subjects, scripts, clippy, documentation, dependencies.
#
#   scripts/lint.sh         all checks
#   scripts/lint.sh quick   the checks that take seconds
#   scripts/lint.sh slow    the other checks
#
# A step that fails prints the command that repeats it. Ends with `lint: N passed, N failed, 0 skipped`.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/need.sh cargo:cargo gcc:gcc g++:g++ fmt:rustfmt clippy:rust-clippy
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo=${CARGO:-cargo}
passed=0 failed=0

step() { # step NAME COMMAND...
    echo "lint: $1"
    if "${@:2}"; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "FAILED $1"
    printf 'again:'
    printf ' %q' "${@:2}"
    echo
}

if [[ ${1:-quick} == quick ]]; then
    step formatting "$cargo" fmt --all --check
    step 'house rules' "$cargo" run -q -p xtask -- check
    step 'planted faults' "$cargo" run -q -p xtask -- faults
    step shellcheck scripts/shellcheck.sh
fi
if [[ ${1:-slow} == slow ]]; then
    # A separate folder, so that these checks do not wait for the builds of the suites.
    export CARGO_TARGET_DIR=$target/lint
    step clippy "$cargo" clippy --workspace --all-targets --all-features -- -D warnings
    if [[ $(uname -sm) == 'Linux x86_64' ]]; then
        step 'clippy of the simulation' env RUSTFLAGS='--cfg simulated' CARGO_TARGET_DIR="$target/lint/sim" \
            "$cargo" clippy --profile simulation -p tautline-sim -- -D warnings
    fi
    step documentation env RUSTDOCFLAGS='-D warnings' "$cargo" doc --workspace --all-features --no-deps --document-private-items
    step dependencies env CARGO_TARGET_DIR="$target" scripts/deny.sh
fi
echo "lint: $passed passed, $failed failed, 0 skipped"
[[ $failed -eq 0 ]]
