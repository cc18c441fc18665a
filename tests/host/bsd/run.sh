#!/usr/bin/env bash
# Tests the code for macOS and the BSDs on Linux. `--cfg tautline_bsd` builds it on an imitation of macOS's calls
# (crates/io/src/imitation.rs). The tests show that our code for those systems uses the calls as intended. They cannot show
# the behaviour of the other kernels.
#
#   tests/host/bsd/run.sh             the tests of crates io and core, libzmq's own tests (its stable interface), tests/abi/c, tests/wire/interop
#   tests/host/bsd/run.sh PART...     some of these parts: units upstream abi interop
#
# Known failures on such systems are in expected.tsv. Ends with `bsd: N passed, N failed, N skipped`.
set -uo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root" || exit
scripts/need.sh cargo:cargo gcc:gcc || exit
parts=${*:-units upstream abi interop}
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
logs=$target/bsd/log
mkdir -p "$logs"
# The tests themselves use the builds of the other suites.
if [[ -n ${RUSTFLAGS:-} ]]; then tests=(env RUSTFLAGS="$RUSTFLAGS"); else tests=(env -u RUSTFLAGS); fi
tests+=(CARGO_TARGET_DIR="$target")
export CARGO_TARGET_DIR=$target/bsd RUSTFLAGS="${RUSTFLAGS:-} --cfg tautline_bsd"
# The speed of this build is irrelevant.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
passed=0 failed=0 skipped=0

wants() { [[ " $parts " == *" $1 "* ]]; }

# part NAME COMMAND...: runs a selected part and adds up its counts, from cargo's results or from `NAME: N passed, N failed, N skipped`.
part() {
    local name=$1 code=0 p f s
    shift
    wants "$name" || return 0
    echo "--- $name"
    # Omits the lines with counts. The script prints the sum at the end, and its caller must not add up the counts again.
    "$@" 2>&1 | tee "$logs/$name" | grep --line-buffered -vE '^test result: |^[a-z]+: [0-9]+ passed, '
    code=${PIPESTATUS[0]}
    read -r p f s < <(awk '
        /^test result: / { p += $4; f += $6; s += $8 }
        /^[a-z]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped/ { p += $2; f += $4; s += $6 }
        END { print p + 0, f + 0, s + 0 }' "$logs/$name")
    if [[ $code -ne 0 && $f -eq 0 ]] || [[ $((p + s)) -eq 0 ]]; then f=1; fi
    echo "$name: $p of $((p + f)), $s skipped"
    [[ $f -eq 0 ]] || echo "again: tests/host/bsd/run.sh $name"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

library() { cargo build --release -p tautline-libzmq; }

part units cargo test -p tautline-mem -p tautline-io -p tautline-queue -p tautline-timing -p tautline-config -p tautline-core -p tautline-host --lib --no-fail-fast
if wants upstream || wants abi || wants interop; then
    if ! library; then
        echo "bsd: $passed passed, $((failed + 1)) failed, $skipped skipped"
        exit 1
    fi
fi
built=$CARGO_TARGET_DIR/release
part upstream "${tests[@]}" SETS=stable EXPECTED="tests/wire/upstream/expected.tsv tests/host/bsd/expected.tsv" RESULTS="$logs/upstream.tsv" \
    tests/wire/upstream/run.sh "$built"
part abi "${tests[@]}" WAKE_DESCRIPTORS=2 ABI_ROUNDS="${ABI_ROUNDS:-2}" tests/abi/c/run.sh "$built"
part interop "${tests[@]}" tests/wire/interop/run.sh "$built/libzmq.so"

echo "bsd: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
