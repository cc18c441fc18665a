#!/usr/bin/env bash
# The engine in a simulated system, from fixed seeds. Each seed runs twice, and both runs must be the same to the last step: docs/simulation.md.
#
#   tests/simulation/run.sh [FROM] [SEEDS]   SEEDS seeds from FROM on, default 200 from 1 on
#
# Ends with `simulation: N passed, N failed, N skipped`; exit code 0 if nothing failed.
set -uo pipefail

cd "$(dirname "$0")/../.."
if [[ $(uname -sm) != "Linux x86_64" ]]; then
    echo "simulation: 0 passed, 0 failed, 1 skipped"
    exit
fi
exec cargo run -q -p xtask -- simulate --twice --from "${1:-1}" --seeds "${2:-200}"
