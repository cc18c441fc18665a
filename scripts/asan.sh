#!/usr/bin/env bash
# The C ABI's tests and those of the Python module with AddressSanitizer, which finds accesses outside of objects, uses after free, and
# leaks. The library, the module and the C programs are instrumented. `make asan`; ends with `asan: N passed, N failed, N skipped`.
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
build() {
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cdebug-assertions" CARGO_PROFILE_RELEASE_LTO=off \
        cargo build --release -p "$1" --target "$host" --target-dir "$target"
}
passed=0 failed=0 skipped=0

build tautline-libzmq
programs=(tests/abi/c/{check,runtime,handles,messages,traffic,fork,drafts,endings,routing_ids}.c)
gcc -std=c99 -g -O1 -fsanitize=address -Wall -Wextra -I include "${programs[@]}" "$target/$host/release/libzmq.a" \
    -pthread -ldl -lm -o "$work/runtime"
code=0
ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=0 "$work/runtime" >"$work/log" 2>&1 || code=$?
cat "$work/log"
if [ "$code" -eq 0 ] && ! grep -q 'ERROR: \(Address\|Leak\)Sanitizer' "$work/log"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
fi

# The Python module in an interpreter without the sanitizer, whose runtime library is loaded first. Python keeps memory until its end,
# which would count as leaks.
runtime=$(readlink -f "$(gcc -print-file-name=libasan.so)")
build tautline-python
code=0
LD_PRELOAD=$runtime ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0:abort_on_error=0:handle_segv=0:log_path=$work/report PYTHONMALLOC=malloc \
    MODULE=$target/$host/release/lib_native.so bindings/python/tests/run.sh >"$work/log" 2>&1 || code=$?
cat "$work/log"
# A refused huge allocation is a warning.
if grep -hs 'ERROR: AddressSanitizer' "$work"/report.*; then
    cat "$work"/report.*
    failed=$((failed + 1))
elif [ "$code" -ne 0 ]; then
    failed=$((failed + 1))
elif grep -q '^python: 0 passed' "$work/log"; then
    skipped=$((skipped + 1))
else
    passed=$((passed + 1))
fi
echo "asan: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
