#!/usr/bin/env bash
# The C ABI's tests with AddressSanitizer, which finds accesses outside of objects, uses after free, and leaks. The library and the C
# programs are both instrumented. `make asan`; ends with `asan: N passed, N failed, N skipped`.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/need.sh cargo:cargo gcc:gcc
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/asan
host=$(rustc -vV | sed -n 's/^host: //p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! echo 'int main(void) { return 0; }' | gcc -fsanitize=address -x c - -o "$work/probe" 2>/dev/null; then
    echo "skipped all: gcc has no AddressSanitizer here"
    echo "asan: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
# The stable compiler contains the sanitizer, but accepts the option only with RUSTC_BOOTSTRAP.
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cdebug-assertions" CARGO_PROFILE_RELEASE_LTO=off \
    cargo build --release -p tautline-libzmq --target "$host" --target-dir "$target"

programs=(tests/abi/c/{check,runtime,handles,messages,traffic,fork,drafts,endings,routing_ids}.c)
gcc -std=c99 -g -O1 -fsanitize=address -Wall -Wextra -I include "${programs[@]}" "$target/$host/release/libzmq.a" \
    -pthread -ldl -lm -o "$work/runtime"
code=0
ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=0 "$work/runtime" >"$work/log" 2>&1 || code=$?
cat "$work/log"
if [ "$code" -eq 0 ] && ! grep -q 'ERROR: \(Address\|Leak\)Sanitizer' "$work/log"; then
    echo "asan: 1 passed, 0 failed, 0 skipped"
else
    echo "asan: 0 passed, 1 failed, 0 skipped"
    exit 1
fi
