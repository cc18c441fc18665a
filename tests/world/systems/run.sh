#!/usr/bin/env bash
# Systems of other people (bench/systems), once on libzmq and once on Tautline: each runs to its end and loads the expected library.
# The output has their figures.
#
#   tests/world/systems/run.sh                all except vLLM, which takes 6 GB
#   tests/world/systems/run.sh PLAN...        these plans, for example 'vllm engine' 'jupyter kernel'
#
# Ends with `systems: N passed, N failed, N skipped`.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root"
work=$(mktemp -d "${TMPDIR:-/tmp}/systems.XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
. tests/lib/check.sh

plans=('detector frames' 'ffmpeg packets' 'jupyter kernel' 'salt returns')
[[ $EUID -ne 0 ]] || plans+=('detector namespaces')
[[ $# -eq 0 ]] || plans=("$@")
for plan in "${plans[@]}"; do
    read -r system name <<<"$plan"
    run_check systems "$plan" "tests/world/systems/run.sh '$plan'" bench/systems/run.sh "$system" "$name" 1
    [[ ${result:-1} -ne 0 ]] || grep '^|' "$work/log"
done
echo "systems: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
