#!/usr/bin/env bash
# The tests of the engine and of its I/O with ThreadSanitizer, which finds data races. The standard
# library is also instrumented, so the script needs its sources.
# FILTER="inbound:: pipe::" runs the tests with these names.
# `make tsan`; ends with `tsan: N passed, N failed, N skipped`.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/need.sh cargo:cargo gcc:gcc
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/tsan
host=$(rustc -vV | sed -n 's/^host: //p')
if [ ! -e "$(rustc --print sysroot)/lib/rustlib/src/rust/library/std" ]; then
    if ! command -v rustup >/dev/null; then
        echo "skipped all: the sources of the standard library are missing, and rustup, which installs them, too"
        echo "tsan: 0 passed, 0 failed, 1 skipped"
        exit 0
    fi
    rustup component add rust-src
fi
mkdir -p "$target"
code=0
# The stable compiler contains the sanitizer, but accepts the option only with RUSTC_BOOTSTRAP.
# A forked child may start a thread that closes descriptors or ends loans, so `die_after_fork` is off.
# shellcheck disable=SC2086 # several filters
RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=thread TSAN_OPTIONS="halt_on_error=0 die_after_fork=0" \
    cargo test -Zbuild-std --target "$host" --target-dir "$target" --no-fail-fast \
    -p tautline-mem -p tautline-io -p tautline-queue -p tautline-timing -p tautline-config -p tautline-core -p tautline-host --lib -- ${FILTER:-} 2>&1 | tee "$target/log" || code=$?
read -r passed failed < <(awk '/^test result: / { p += $4; f += $6 } END { print p + 0, f + 0 }' "$target/log")
races=$(grep -c '^WARNING: ThreadSanitizer' "$target/log" || true)
[ "$code" -eq 0 ] || [ $((failed + races)) -gt 0 ] || failed=1
echo "tsan: $passed passed, $((failed + races)) failed, 0 skipped"
[ $((failed + races)) -eq 0 ] && [ "$passed" -gt 0 ]
