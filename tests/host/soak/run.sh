#!/usr/bin/env bash
# The soak: processes connect, are killed, reconnect and terminate for SOAK_SECONDS (1800). In parallel it runs sockets that wait for each
# other in all ways, connections that are cut, and publishers with slow subscribers. At the end it checks for leaks under valgrind.
#
#   tests/host/soak/run.sh           the library that the suites share
#   tests/host/soak/run.sh LIBDIR    the libzmq.so.5 in LIBDIR, to check the soak itself
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
"$root/scripts/need.sh" cargo:cargo gcc:gcc python3:python3 valgrind:valgrind >&2

work=$(mktemp -d "${TMPDIR:-/tmp}/soak.XXXXXX")
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT # ctrl-C does not reach jobs in the background
libdir=${1:-}
if [[ -z $libdir ]]; then
    libdir=$("$root/tests/lib/build.sh" library)
fi
export LD_LIBRARY_PATH=$libdir

flags=(-std=gnu11 -O2 -g -Wall -Wextra -I"$root/include" -pthread)
gcc "${flags[@]}" "$here/soak.c" "$here/checked.c" -o "$work/soak" -l:libzmq.so.5 -L"$libdir"
gcc "${flags[@]}" "$here/leak.c" "$here/checked.c" -o "$work/leak" -l:libzmq.so.5 -L"$libdir"
gcc "${flags[@]}" "$here/waiting.c" "$here/checked.c" -o "$work/waiting" -l:libzmq.so.5 -L"$libdir"
gcc "${flags[@]}" "$here/cuts.c" "$here/relay.c" "$here/checked.c" -o "$work/cuts" -l:libzmq.so.5 -L"$libdir"
gcc "${flags[@]}" "$here/crowd.c" "$here/checked.c" -o "$work/crowd" -l:libzmq.so.5 -L"$libdir"

# Some of these processes share one processor, which reveals races that depend on the interrupted thread.
allowed=$(taskset -cp $$ | sed 's/.*: //')
waiting=()
cuts=()
crowds=()
for seed in 1 2 3 4; do
    case $seed in
    1) on=${allowed%%[,-]*} ;;
    2) on=${allowed##*[,-]} ;;
    *) on=$allowed ;;
    esac
    taskset -c "$on" "$work/waiting" "${SOAK_SECONDS:-1800}" "$seed" &
    waiting+=($!)
    if [[ $seed -le 2 ]]; then
        taskset -c "$on" "$work/cuts" "${SOAK_SECONDS:-1800}" "$seed" &
        cuts+=($!)
    else
        taskset -c "$on" "$work/crowd" "${SOAK_SECONDS:-1800}" "$seed" &
        crowds+=($!)
    fi
done

# joined NAME JOB...: waits for the jobs and prints the number of passed ones. Fails if a job failed.
joined() {
    local name=$1 passed=0 job
    shift
    for job in "$@"; do
        wait "$job" && passed=$((passed + 1)) || true
    done
    echo "$name: $passed passed, $(($# - passed)) failed, 0 skipped"
    [[ $passed -eq $# ]]
}

code=0
python3 "$here/soak.py" "$work/soak" "$work" "${SOAK_SECONDS:-1800}" || code=1
joined waiting "${waiting[@]}" || code=1
joined cuts "${cuts[@]}" || code=1
joined crowd "${crowds[@]}" || code=1

if timeout 300 "$work/leak" && timeout 600 valgrind --quiet --leak-check=full --show-leak-kinds=definite,indirect \
    --errors-for-leak-kinds=definite,indirect --error-exitcode=9 --fair-sched=yes "$work/leak"; then
    echo 'leaks: 1 passed, 0 failed, 0 skipped'
else
    echo 'leaks: 0 passed, 1 failed, 0 skipped'
    code=1
fi
exit $code
