#!/usr/bin/env bash
# Runs one step of a long command. Prints its start time and its run time. The output goes to a file, whose end is printed on failure.
#
#   scripts/step.sh TITLE LOG COMMAND...
#   . scripts/step.sh                       the same as a function: step TITLE LOG COMMAND..., where COMMAND may be a function

step() {
    local title=$1 log=$2 start=$SECONDS
    shift 2
    mkdir -p "$(dirname "$log")"
    printf '%s, since %(%T)T: tail -f %q\n' "$title" -1 "$log" >&2
    if ("$@") </dev/null >"$log" 2>&1; then
        echo "$title: done ($((SECONDS - start)) s)"
        return
    fi
    echo "--- $title: failed; the end of $log"
    tail -n 100 "$log"
    printf -- '--- again:'
    printf ' %q' "$@"
    echo
    return 1
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    step "$@"
fi
