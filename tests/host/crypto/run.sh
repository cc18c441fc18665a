#!/usr/bin/env bash
# Tests CURVE's ciphers on several processors: both implementations against Wycheproof's vectors, libsodium's results and each other,
# and the handshake with each implementation. The chosen code depends on the processor, so other processors are emulated.
#
#   tests/host/crypto/run.sh
#
# Parts that lack an emulator or a compiler are skipped. Ends with `crypto: N passed, N failed, N skipped`; exit code 0 if every
# check passed or was skipped.
set -uo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root" || exit
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
passed=0 failed=0 skipped=0
arm=aarch64-unknown-linux-gnu
# One target folder for all builds. The ciphers are optimised for the slow emulator, other dependencies are not, to build them fast.
export CARGO_TARGET_DIR=$target/crypto CARGO_PROFILE_TEST_OPT_LEVEL=2 CARGO_PROFILE_TEST_DEBUG=0
profile=(--config 'profile.test.package."*".opt-level=0' --config 'profile.test.package.dryoc.opt-level=2')
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc

skip() {
    echo "skipped $1: $2"
    skipped=$((skipped + 1))
}

# program OPTION...: builds the tests of crate proto, and sets $program to their path.
program() {
    program=$(cargo "${profile[@]}" test -p tautline-proto --lib --no-run --message-format=json-render-diagnostics "$@" |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
    [[ -n $program ]]
}

# check NAME COMMAND...: runs the tests of CURVE with this command.
check() {
    local name=$1 out p f
    shift
    echo "--- $name"
    out=$(timeout 600 "$@" curve 2>&1)
    local code=$?
    read -r p f < <(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed.*/\1 \2/p' <<<"$out") || p=0 f=1
    if [[ $code -ne 0 && $f -eq 0 ]] || [[ $p -eq 0 ]]; then f=1; fi
    # Omits the line with the counts. The script prints the sum at the end, and its caller must not add up the counts again.
    sed '/^test result: /d' <<<"$out"
    [[ $f -eq 0 ]] || echo "FAILED: $name: $* curve"
    passed=$((passed + p)) failed=$((failed + f))
}

fail() {
    echo "FAILED: $1"
    failed=$((failed + 1))
}

if program; then
    check "the default, on this processor" "$program"
    if [[ $(uname -sm) == "Linux x86_64" ]] && "$root/scripts/need.sh" qemu-x86_64-static:qemu-user-static; then
        # Processors without AVX2, and with AVX2 but without AVX-512.
        for cpu in Nehalem Haswell; do
            check "the default, x86-64 as of $cpu" qemu-x86_64-static -cpu "$cpu" "$program"
        done
    else
        skip "older x86-64" "no emulator"
    fi
else
    fail "the default cannot be built"
fi

if program --features curve-dryoc; then
    check "curve-dryoc, on this processor" "$program"
else
    fail "curve-dryoc cannot be built"
fi

if [[ $(uname -s) != Linux ]] || ! "$root/scripts/need.sh" qemu-aarch64-static:qemu-user-static \
    aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu file=/usr/aarch64-linux-gnu/lib/libc.so:libc6-dev-arm64-cross; then
    skip aarch64 "no emulator or no linker"
elif [[ ! -d $(rustc --print sysroot)/lib/rustlib/$arm ]] && ! rustup target add "$arm"; then
    skip aarch64 "no standard library of it"
else
    for features in "" curve-dryoc; do
        name="${features:-the default}, aarch64"
        if program --target "$arm" ${features:+--features "$features"}; then
            check "$name" qemu-aarch64-static -L /usr/aarch64-linux-gnu "$program"
        else
            fail "$name cannot be built"
        fi
    done
fi

echo "crypto: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
