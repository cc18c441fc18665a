#!/usr/bin/env bash
# The main benchmark (`make run`): Tautline and libzmq 4.3.5 side by side, on the same C programs.
#
# Builds missing parts (Tautline, the baseline, the C programs, the harness), runs a scenario and prints the place of
# the report. `make bench SCENARIO=NAME` is the same for the longer scenarios. Environment:
#   FULL=1            the scenario `full` instead of `quick`
#   SCENARIO=NAME     another file of bench/scenarios, or the path of one
# Arguments go to the harness, for example: scripts/run.sh --only pattern=push_pull,transport=tcp --pairs 3
#
#   scripts/run.sh ablate RULE... [OPTION...]
#                     Tautline compared with itself without a rule of its timing, in the scenario `environments`, without libzmq.
#                     `cargo xtask ablate` is the same for all rules.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

command=run
if [ "${1:-}" = ablate ]; then
    command=ablate SCENARIO=${SCENARIO:-environments}
    shift
fi
scenario=${SCENARIO:-quick}
if [ "${FULL:-0}" = 1 ]; then scenario=full; fi
[ "$scenario" != profiles ] || exec scripts/profiles.sh "$@"
file=$scenario
[ -f "$file" ] || file=bench/scenarios/$scenario.toml
[ -f "$file" ] || { echo "run: $file does not exist; the scenarios are:" bench/scenarios/*.toml; exit 2; }

target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/bench
result=$out
[ "$scenario" = quick ] || result=$out/$(basename "$file" .toml)
[ "$command" = run ] || result=$out/ablation

# values FILE KEY: prints the strings of a list in a scenario file.
values() { awk -v key="$2" '$0 ~ "^" key " *=" { on = 1 } on; on && /\]/ { exit }' "$1" | grep -o '"[^"]*"' | tr -d '"' || true; }

# The peers of --peer, by default those of the scenario and of the scenarios that it names. Words after the name of a peer are
# variables of its environment.
peers=() words=("$@")
for ((i = 0; i < $#; i++)); do
    if [ "${words[i]}" = --peer ]; then peers+=("${words[i + 1]:-}"); fi
done
if [ ${#peers[@]} -eq 0 ] && [ "$command" = run ]; then
    mapfile -t peers < <(values "$file" peers; for also in $(values "$file" also); do values "$(dirname "$file")/$also.toml" peers; done)
fi
peers=("${peers[@]%% *}")

# Installs all tools at once, before the builds. A scenario with WebSocket also needs a libzmq with WebSocket.
wanted=(baseline)
case " ${peers[*]} " in
    *" libzmq-ws "*) wanted=(baseline-ws) ;;
esac
[ "$command" = run ] || wanted=()
# Tools that create environments. They are optional: the harness reports environments that it cannot create.
! grep -q '^environment' "$file" || wanted+=(--also ip:iproute2 taskset:util-linux iptables:iptables)
scripts/need.sh cargo:cargo cc:gcc make:make ${wanted[@]+"${wanted[@]}"}
. scripts/step.sh
mkdir -p "$out/ours" "$result"
ours=$target/release
build=(cargo build --release -p tautline-libzmq)
! grep -q 'tls = ' "$file" || build+=(--features tls)
# Ablation switches cost time, so the library that has them is built separately. VARIABLE=VALUE needs no switch.
for word in "$@"; do
    [[ $command == ablate && $word != -* ]] || break
    [[ $word != *=* ]] || continue
    ours=$target/ablation/release
    build=(cargo build --release -p tautline-libzmq --features ablation --target-dir "$target/ablation")
done
step "run: 1 of 5, building Tautline" "$out/library.log" "${build[@]}"
# The harness itself is not measured, so it needs no optimisation.
step "run: 2 of 5, building the harness" "$out/harness.log" cargo build -p tautline-bench
ln -sfn "$ours/libzmq.so" "$out/ours/libzmq.so.5"
linked=$out/ours sides=(--ours "$out/ours")
if [ "$command" = run ]; then
    step "run: 3 of 5, libzmq 4.3.5" "$out/baseline.log" scripts/libzmq-baseline.sh "$target/baseline"
    linked=$target/baseline/libzmq/lib sides+=(--baseline "$target/baseline/libzmq/lib")
fi

# The programs are compiled once against the public header. The loader chooses their library at run time.
step "run: 4 of 5, the C programs" "$out/programs.log" bench/peers/c/build.sh "$root/include" "$linked" "$out/bin"

# Peers of the scenario that are crates or Python programs. Each libzmq that they bring is a folder in the directory of the programs.
built=() libraries=()
for peer in ${peers[@]+"${peers[@]}"}; do
    if [ "$peer" = libzmq-ws ]; then
        step "run: 4 of 5, libzmq with WebSocket" "$out/baseline-ws.log" scripts/libzmq-baseline.sh --ws "$target/baseline"
        libraries+=(--library "ws=$target/baseline/libzmq-ws/lib")
    fi
    grep -q '^build *=' "bench/peers/$peer.toml" || continue
    built+=("$peer")
    library=$(sed -n 's/^library *= *"\(.*\)"/\1/p' "bench/peers/$peer.toml")
    [ -z "$library" ] || [ "$library" = ours ] || libraries+=(--library "$library=$out/bin/$library")
done
if [ ${#built[@]} -gt 0 ]; then
    LIBRARY=$ours/libzmq.so step "run: 4 of 5, the other peers" "$out/peers.log" bench/peers/build.sh "$out/bin" "${built[@]}"
    grep -B1 'could not be built' "$out/peers.log" || true
fi

# Other work on the machine, such as a build, distorts the figures.
read -r load _ </proc/loadavg || load=0
echo "run: 5 of 5, measuring; load average $load: other running programs distort the results"
exec "$target/debug/tautline-bench" "$command" --scenario "$file" "${sides[@]}" "${libraries[@]}" --programs "$out/bin" --out "$result" "$@"
