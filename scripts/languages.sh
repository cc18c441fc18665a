#!/usr/bin/env bash
# The cross-language benchmark (`make languages`): every language on libzmq 4.3.5 and on Tautline, into docs/results.
#
# Installs missing tools, builds the programs, prints the plan and runs it. Environment:
#   ONLY=node-zeromq,python   these folders of bench/languages, and the C++ baseline; `node` means all names that begin with it
#   QUICK=1                   a tenth of the shortest counts, twice, into target/languages/quick: for a first try
# Arguments go to the harness: --sizes 64 --kind throughput --repeats 3 --short --part 600 --fresh
# The same command continues an interrupted run.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/languages

all=()
for descriptor in bench/languages/*/language.toml; do
    all+=("$(basename "$(dirname "$descriptor")")")
done
names=()
if [[ -n ${ONLY:-} ]]; then
    for word in ${ONLY//,/ }; do
        matching=()
        for name in "${all[@]}"; do
            [[ $name == "$word" || $name == "$word"-* ]] && matching+=("$name")
        done
        [[ ${#matching[@]} -gt 0 ]] || { echo "languages: unknown language $word; known languages: ${all[*]}"; exit 2; }
        names+=("${matching[@]}")
    done
else
    names=("${all[@]}")
fi

# Installs all tools at once, before the builds. A language without its tools is skipped.
tools=()
for name in "${names[@]}"; do
    case $name in
        node-*) tools+=(node:nodejs npm:npm) ;;
        go | go-*) tools+=(go:golang-go gcc:gcc pkg-config:pkg-config) ;;
        java) tools+=(javac:default-jdk-headless) ;;
        jeromq) tools+=(javac:default-jdk-headless mvn:maven) ;;
        dotnet | dotnet-* | mono) tools+=(mcs:mono-mcs mono:mono-runtime) ;;
        python | python-*) tools+=(python3:python3 py=ensurepip:python3-venv) ;;
    esac
done
scripts/need.sh cargo:cargo g++:g++ make:make baseline --also ${tools[@]+"${tools[@]}"}
. scripts/step.sh
mkdir -p "$out/tautline"
step "languages: 1 of 5, building Tautline" "$out/library.log" cargo build --release -p tautline-libzmq
# The harness itself is not measured, so it needs no optimisation.
step "languages: 2 of 5, building the harness" "$out/harness.log" cargo build -p tautline-bench
step "languages: 3 of 5, libzmq 4.3.5" "$out/baseline.log" scripts/libzmq-baseline.sh "$target/baseline"
# A copy, so that a build during the run does not replace the measured library.
cp "$target/release/libzmq.so" "$out/tautline/libzmq.so.5"

build=(cpp)
for name in "${names[@]}"; do [[ $name == cpp ]] || build+=("$name"); done
step "languages: 4 of 5, the programs" "$out/programs.log" bench/languages/build.sh "$out" "$target/baseline/libzmq" "${build[@]}"
grep ': skipping' "$out/programs.log" || true

arguments=(--programs "$out" --libzmq "$target/baseline/libzmq/lib/libzmq.so.5" --tautline "$out/tautline/libzmq.so.5")
arguments+=(--only "$(IFS=,; echo "${names[*]}")")
if [[ ${QUICK:-0} == 1 ]]; then arguments+=(--quick --out "$out/quick"); fi
read -r load _ </proc/loadavg || load=0
echo "languages: 5 of 5, measuring; load average $load; other running programs distort the results"
exec "$target/debug/tautline-bench" languages "${arguments[@]}" "$@"
