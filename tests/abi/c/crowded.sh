#!/usr/bin/env bash
# Runs a program several times in parallel, on one processor, on another processor and on all of them. This reveals races that
# depend on the interrupted thread.
#
#   tests/abi/c/crowded.sh ROUNDS PROGRAM...
#
# Exits with 0 if all runs ended with 0. Prints the output of other runs.
set -uo pipefail

rounds=$1
shift
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT # ctrl-C does not reach jobs in the background
allowed=$(taskset -cp $$ | sed 's/.*: //')
first=${allowed%%[,-]*} last=${allowed##*[,-]}

# repeat NAME PREFIX...: runs the program ROUNDS times in a row
repeat() {
    local name=$1 round
    shift
    for ((round = 1; round <= rounds; round++)); do
        "$@" >"$work/$name" 2>&1 || {
            echo "round $round of $name ended with $?"
            tail -n 20 "$work/$name"
            return 1
        }
    done
}

jobs=()
repeat free-1 "$@" & jobs+=($!)
repeat free-2 "$@" & jobs+=($!)
repeat first taskset -c "$first" "$@" & jobs+=($!)
repeat last taskset -c "$last" "$@" & jobs+=($!)
code=0
for job in "${jobs[@]}"; do
    wait "$job" || code=1
done
exit $code
