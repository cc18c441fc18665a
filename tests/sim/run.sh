#!/usr/bin/env bash
# The engine in a simulated system: docs/develop/simulation.md.
#
#   tests/sim/run.sh                 seeds 1 to 50, each twice: both runs must be the same. Then each seed that finds a
#                                    planted fault must pass without that fault.
#   tests/sim/run.sh --new SECONDS   new seeds for this many seconds. The first line shows the first seed.
#
# Ends with `simulation: N passed, N failed, N skipped`; exit code 0 if every check passed or was skipped.
set -euo pipefail

cd "$(dirname "$0")/../.."
if [[ $(uname -sm) != "Linux x86_64" ]]; then
    echo "skipped simulation: it needs Linux on x86-64"
    echo "simulation: 0 passed, 0 failed, 1 skipped"
    exit
fi
if [[ ${1:-} == --new ]]; then
    # The current time gives each run a different first seed.
    options=(--seconds "${2:?how many seconds?}" --from "$(date +%s)000")
else
    options=(--seeds 50 --twice --named)
fi
echo "simulation: cargo xtask simulate ${options[*]}"
cargo run -q -p xtask -- simulate "${options[@]}"
