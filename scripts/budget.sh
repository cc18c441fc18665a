#!/usr/bin/env bash
# Compares the instructions of each send and receive in the hot loop with bench/budget/budget.txt. `make budget`.
#
#   scripts/budget.sh            fails when a count is more than the margin above its budget
#   scripts/budget.sh --write    writes the counts as the new budget
#
# Callgrind counts the instructions, so a busy machine does not change the result. One thread runs twice over inproc, once longer.
# The difference of the two counts, divided by the number of messages, excludes the start and the first segments. Over tcp only the
# sender is counted; the receiver is another process.
#
# Then compares the source files that a call enters with bench/budget/walk.txt: cargo xtask walk --check (--write).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
# Tolerance for other compilers and for the memcpy of other C libraries.
margin_percent=8
short=10 long=50 batch=500 # rounds, and messages in each

scripts/need.sh cargo:cargo cc:gcc valgrind:valgrind
libraries=$(tests/lib/build.sh library)
work=$(mktemp -d)
sink=
trap '[[ -z $sink ]] || kill "$sink"; rm -rf "$work"' EXIT
ln -s "$libraries/libzmq.so.5" "$work/libzmq.so.5"
${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -I"$root/include" -o "$work/hot" bench/budget/hot.c "$work/libzmq.so.5"

LD_LIBRARY_PATH=$work "$work/hot" sink >"$work/sink" &
sink=$!
until [[ -s $work/sink ]]; do
    kill -0 "$sink"
    sleep 0.1
done
SINK=$(<"$work/sink")
export SINK

# instructions FUNCTION ROUNDS ARGUMENTS...: instructions of the function and its callees in such a run.
instructions() {
    local function=$1 rounds=$2
    shift 2
    LD_LIBRARY_PATH=$work valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
        --toggle-collect="$function" "$work/hot" "$@" "$rounds" 2>"$work/log" >/dev/null ||
        { cat "$work/log" >&2; return 1; }
    awk '/Collected/ { print $NF }' "$work/log"
}

budget=bench/budget/budget.txt
passed=0 failed=0
{
    echo "# Instructions for one message, by pattern, API, size and direction: scripts/budget.sh --write."
    for case in "push_pull buffers 64" "push_pull messages 64" "pub_sub buffers 64" "router_dealer buffers 64" "router_in_turn buffers 64" \
        "dealer_router buffers 64" \
        "push_pull buffers 1024" "push_pull messages 1024" "push_pull_monitored buffers 64" "router_dealer_monitored buffers 64" \
        "push_pull_tcp buffers 64"; do
        for function in send_batch receive_batch; do
            [[ $case != push_pull_tcp* || $function == send_batch ]] || continue
            echo "budget: counting $case ${function%_batch}" >&2
            # shellcheck disable=SC2086 # the case is three arguments
            few=$(instructions $function $short $case)
            # shellcheck disable=SC2086
            many=$(instructions $function $long $case)
            echo "$case ${function%_batch} $(((many - few) / ((long - short) * batch)))"
        done
    done
} >"$work/counts"

if [[ ${1:-} == --write ]]; then
    cp "$work/counts" "$budget"
    cat "$budget"
    exec cargo xtask walk --write
fi
while read -r pattern api size direction count; do
    [[ $pattern != \#* ]] || continue
    name="$pattern $api $size $direction"
    allowed=$(awk -v name="$name" '$0 ~ "^" name " " { print $NF }' "$budget")
    if [[ -z $allowed ]]; then
        echo "$name: $count instructions, but no budget; write one: scripts/budget.sh --write"
        failed=$((failed + 1))
    elif ((count * 100 > allowed * (100 + margin_percent))); then
        echo "$name: $count instructions, more than $allowed and $margin_percent %"
        failed=$((failed + 1))
    else
        echo "$name: $count instructions of $allowed"
        passed=$((passed + 1))
    fi
done <"$work/counts"
# Each case of the walks is a test, too: one line for each case, then an indented line for each count that has grown.
walks=$(cargo xtask walk --check) || true
echo "$walks"
grown=$(grep -c '^  ' <<<"$walks" || true)
passed=$((passed + $(grep -c ' returns$' <<<"$walks" || true)))
failed=$((failed + grown))
grep -q '^walks: ok$' <<<"$walks" || [[ $grown -gt 0 ]] || failed=$((failed + 1))
echo "budget: $passed passed, $failed failed, 0 skipped"
[[ $failed -eq 0 ]] || echo "budget: if the extra instructions are justified, write the new budget: scripts/budget.sh --write"
[[ $failed -eq 0 ]]
