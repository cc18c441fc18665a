#!/usr/bin/env bash
# Exchanges messages over tcp between two programs built from exchange.c, each with another library. Each program binds once per case.
#
#   tests/ship/cross/interop.sh OURS THEIRS     commands, which may have several words
#
# Ends with `interop: N passed, N failed, 0 skipped`; exit code 0 if every check passed.
set -uo pipefail

passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/endpoint"

# exchange CASE BINDING CONNECTING
exchange() {
    local binder connecter code=0 endpoint
    # shellcheck disable=SC2086 # commands are words
    $2 "$1" bind >"$work/endpoint" 2>"$work/log" &
    binder=$!
    read -r endpoint <"$work/endpoint"
    endpoint=${endpoint%$'\r'}
    # shellcheck disable=SC2086
    $3 "$1" connect "$endpoint" 2>>"$work/log" &
    connecter=$!
    # If one program fails, the other would wait forever.
    wait -n "$binder" "$connecter" || code=$?
    [[ $code -eq 0 ]] || kill "$binder" "$connecter" 2>/dev/null
    wait "$binder" || code=$?
    wait "$connecter" || code=$?
    if [[ $code -eq 0 ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1, $2 binds"
        head -n 10 "$work/log"
    fi
}

for case in push pull req dealer sub curve; do
    echo "  $case"
    exchange "$case" "$1" "$2"
    exchange "$case" "$2" "$1"
done
echo "interop: $passed passed, $failed failed, 0 skipped"
[[ $failed -eq 0 ]]
