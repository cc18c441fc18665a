#!/usr/bin/env bash
# The engine in a simulated system: docs/simulation.md. Fixed seeds, each of which runs twice, and both runs must be the same to the last
# step; then new seeds, for as long as there is time, with what processor time other programs leave.
#
#   tests/sim/run.sh [SEEDS [SECONDS]]   how many fixed seeds (50), and for how long others (300)
#
# Ends with `simulation: N passed, N failed, N skipped`; exit code 0 if nothing failed.
set -uo pipefail

cd "$(dirname "$0")/../.."
if [[ $(uname -sm) != "Linux x86_64" ]]; then
    echo "simulation: 0 passed, 0 failed, 1 skipped"
    exit
fi
simulate() { cargo run -q -p xtask -- simulate "$@"; }
code=0
simulate --twice --from 1 --seeds "${1:-50}" || code=1
# The time as the first seed: another one each time, and large enough to lie behind the fixed ones.
nice -n 19 cargo run -q -p xtask -- simulate --seconds "${2:-300}" --from "$(date +%s)000" || code=1
exit $code
