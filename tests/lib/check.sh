# shellcheck shell=bash
# For suites of checks that are functions of bash: `. tests/lib/check.sh`. The suite has set `work`, a folder, and `passed`, `failed` and
# `skipped`, which are counted here.

# run_check SUITE NAME AGAIN COMMAND...: runs it in a shell of its own, where a step that fails ends it; `result` is its exit code. Not to
# be called in a condition, where it would not. AGAIN is the command that repeats it.
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

# skip WHY: within a check
skip() {
    echo "$1"
    exit 77
}
