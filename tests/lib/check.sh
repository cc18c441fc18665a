# shellcheck shell=bash
# For suites whose checks are bash functions: `. tests/lib/check.sh`. The suite has set `work`, a folder, and the counters `passed`,
# `failed` and `skipped`, which run_check updates.

# run_check SUITE NAME AGAIN COMMAND...: runs COMMAND in a subshell, and sets `result` to its exit code. The first failing step ends the
# check. Do not call run_check in a condition, because `set -e` has no effect there. AGAIN is the command that repeats the check.
run_check() {
    local check_of=$1 name=$2 repeat=$3 code=0
    shift 3
    echo "$check_of: $name"
    (trap - EXIT; set -Eeuo pipefail; trap 'echo "failed: $BASH_COMMAND"' ERR; "$@") >"$work/log" 2>&1 &
    wait $! || code=$?
    if [[ $code -eq 0 ]]; then
        passed=$((passed + 1))
    elif [[ $code -eq 77 ]]; then
        skipped=$((skipped + 1))
        echo "skipped $name: $(tail -n 1 "$work/log")"
    else
        failed=$((failed + 1))
        echo "FAILED $name"
        tail -n 30 "$work/log"
        echo "again: $repeat"
    fi
    result=$code
}

# skip REASON: ends the check that calls it, as skipped.
skip() {
    echo "$1"
    exit 77
}
