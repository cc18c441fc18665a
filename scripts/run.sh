#!/usr/bin/env bash
# The main job (`make run`): Tautline and libzmq 4.3.5 side by side, on the same C programs.
#
# Builds what is missing (Tautline, the baseline, the C programs, the harness), runs a scenario and says where the
# report is. `make bench SCENARIO=NAME` is the same for the longer scenarios. Environment:
#   FULL=1            the scenario `full` instead of `quick`
#   SCENARIO=NAME     another file of bench/scenarios, or the path of one
# Arguments go to the harness, for example: scripts/run.sh --only pattern=push_pull,transport=tcp --pairs 3
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

scenario=${SCENARIO:-quick}
if [ "${FULL:-0}" = 1 ]; then scenario=full; fi
[ "$scenario" != profiles ] || exec scripts/profiles.sh "$@"
file=$scenario
[ -f "$file" ] || file=bench/scenarios/$scenario.toml
[ -f "$file" ] || { echo "run: no scenario $file; there are:" bench/scenarios/*.toml; exit 2; }

target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/bench
result=$out
[ "$scenario" = quick ] || result=$out/$(basename "$file" .toml)

# All at once, before anything is built; a scenario with WebSocket has a libzmq with it, too.
wanted=baseline
! grep -q '"libzmq-ws"' "$file" || wanted=baseline-ws
scripts/need.sh cargo:cargo cc:gcc make:make "$wanted"
. scripts/progress.sh
mkdir -p "$out/ours" "$result"
step "run: 1 of 5, building Tautline" "$out/library.log" cargo build --release -p tautline-libzmq
# Not the speed of this one is measured.
step "run: 2 of 5, building the harness" "$out/harness.log" cargo build -p tautline-bench
step "run: 3 of 5, libzmq 4.3.5" "$out/baseline.log" scripts/libzmq-baseline.sh "$target/baseline"

ln -sfn "$target/release/libzmq.so" "$out/ours/libzmq.so.5"

# Compiled once against the public header; which library they run on is the loader's choice.
step "run: 4 of 5, the C programs" "$out/programs.log" bench/peers/c/build.sh "$root/include" "$target/baseline/libzmq/lib" "$out/bin"

# The peers that are crates, where the scenario has any; each libzmq of theirs is a folder of the programs' directory.
mapfile -t peers < <(sed -n '/^peers *=/,/\]/p' "$file" | grep -o '"[^"]*"' | tr -d '"')
crates=() libraries=()
for peer in "${peers[@]}"; do
    if [ "$peer" = libzmq-ws ]; then
        step "run: 4 of 5, libzmq with WebSocket" "$out/baseline-ws.log" scripts/libzmq-baseline.sh --ws "$target/baseline"
        libraries+=(--library "ws=$target/baseline/libzmq-ws/lib")
    fi
    grep -q '^build *=' "bench/peers/$peer.toml" || continue
    crates+=("$peer")
    library=$(sed -n 's/^library *= *"\(.*\)"/\1/p' "bench/peers/$peer.toml")
    [ -z "$library" ] || libraries+=(--library "$library=$out/bin/$library")
done
if [ ${#crates[@]} -gt 0 ]; then
    step "run: 4 of 5, the peers in Rust" "$out/peers.log" bench/peers/build.sh "$out/bin" "${crates[@]}"
    grep -B1 'could not be built' "$out/peers.log" || true
fi

# A machine that compiles something else at the same time measures that.
read -r load _ </proc/loadavg || load=0
echo "run: 5 of 5, measuring; load average $load: anything else that runs now will show in the figures"
exec "$target/debug/tautline-bench" run --scenario "$file" --ours "$out/ours" \
    --baseline "$target/baseline/libzmq/lib" "${libraries[@]}" --programs "$out/bin" --out "$result" "$@"
