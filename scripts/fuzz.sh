#!/usr/bin/env bash
# Coverage-guided fuzzing: each target of fuzz/ for SECONDS (60), with AddressSanitizer.
#
#   scripts/fuzz.sh [SECONDS [TARGET...]]
#
# SANITIZER=none disables the sanitizer. The stable compiler suffices: the instrumentation is an ordinary option, and the sanitizer is in
# it too, behind RUSTC_BOOTSTRAP. The seeds go to fuzz/corpus, where new inputs are added. An input that breaks a target is saved in
# fuzz/artifacts: fix the fault, and put the input into fuzz/regressions/TARGET for the test (`cargo test -p tautline-fuzz`).
# Ends with `fuzz: N passed, N failed, N skipped`.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/need.sh cargo:cargo g++:g++
seconds=${1:-60}
shift || true
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')

flags=(--cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module)
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=("-Cllvm-args=-sanitizer-coverage-$option")
done
if [ "${SANITIZER:-address}" != none ]; then
    flags+=("-Zsanitizer=${SANITIZER:-address}")
    export RUSTC_BOOTSTRAP=1
fi
# With --target, cargo does not apply the flags to build scripts.
RUSTFLAGS=${flags[*]} cargo build -p tautline-fuzz --features libfuzzer --profile fuzz --target "$host" --target-dir "$target" --bins

RUSTFLAGS=${flags[*]} cargo run --quiet -p tautline-fuzz --features libfuzzer --profile fuzz --target "$host" --target-dir "$target" --bin seeds
names=("$@")
if [ ${#names[@]} -eq 0 ]; then mapfile -t names < <(cd fuzz/fuzz_targets && printf '%s\n' *.rs | sed 's/\.rs$//'); fi
passed=0 failed=0
for name in "${names[@]}"; do
    mkdir -p "fuzz/artifacts/$name"
    log=$target/$name.log
    # Several fuzzers may share one machine, so a slow input is not a fault. An input of two minutes is.
    if "$target/$host/fuzz/$name" -max_total_time="$seconds" -timeout=120 -rss_limit_mb=2048 -max_len=4096 -len_control=20 \
        -detect_leaks=0 -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$name/" "fuzz/corpus/$name" \
        >"$log" 2>&1; then
        passed=$((passed + 1))
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, $(grep -o 'cov: [0-9]*' "$log" | tail -n 1)"
    else
        failed=$((failed + 1))
        echo "FAILED $name: $log"
        tail -n 40 "$log"
    fi
done
echo "fuzz: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
