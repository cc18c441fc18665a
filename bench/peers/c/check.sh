#!/usr/bin/env bash
# Checks that zmq-bench detects faults (tests/world/benchmark): injects faults below it and checks its report.
# raw-bench only has to run without errors.
#
#   bench/peers/c/check.sh LIBRARY_DIR PROGRAMS_DIR [HARNESS [PYTHON]]
#
# With the harness, it also runs a short cell in each environment. The cell must succeed, or the harness must
# report why the environment is unavailable. With a Python that has pyzmq, it also checks the Python program.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=$1 programs=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -shared -fPIC -o "$work/faults.so" "$here/faults.c" -ldl

passed=0 failed=0 skipped=0
# holds TEXT LINE WHAT: checks that the line contains the text.
holds() {
    if [[ $2 == *"$1"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "check: $3: expected $1 in: $2"
    fi
}
# expect FAULT PATTERN TEXT [OPTION VALUE]: checks that the JSON line of a run with that fault contains the
# text.
expect() {
    local line limit=30
    echo "check: $1 in $2"
    # Only a run that must hang has a short timeout.
    [[ $3 != *hung* ]] || limit=2
    line=$(FAULT=$1 LD_PRELOAD=$work/faults.so LD_LIBRARY_PATH=$library \
        "$programs/zmq-bench" --pattern "$2" --transport tcp --size 64 --count 1000 --timeout $limit "${@:4}") || true
    holds "$3" "$line" "$1 in $2"
}
# raw MODE PATTERN TRANSPORT TEXT [OPTION VALUE]
raw() {
    local line
    echo "check: $1 $2 over $3"
    line=$("$programs/raw-bench" --mode "$1" --pattern "$2" --transport "$3" --size 64 --count 10000 --api messages \
        --timeout 30 "${@:5}") || true
    holds "$4" "$line" "$1 $2 over $3"
}
for pattern in push_pull pub_sub; do
    expect none "$pattern" '"lost":0,"reordered":0,"corrupted":0'
    expect lose "$pattern" '"lost":1,"reordered":0,"corrupted":0'
    expect swap "$pattern" '"lost":0,"reordered":1,"corrupted":0'
    expect repeat "$pattern" '"lost":0,"reordered":1,"corrupted":0'
    expect corrupt "$pattern" '"lost":0,"reordered":0,"corrupted":1'
    expect hang "$pattern" '"error":"hung'
done
expect none req_rep '"lost":0,"reordered":0,"corrupted":0'
# Every other send is a reply, so the requester detects the fault.
expect corrupt req_rep '"corrupted":1'
expect lose req_rep '"error":"'
expect hang req_rep '"error":"hung'
expect none one_way '"lost":0,"reordered":0,"corrupted":0'
# Of two sends, one is a receipt.
expect corrupt one_way '"corrupted":1' --two-processes
for pattern in push_pull pub_sub req_rep; do
    expect corrupt-inside "$pattern" '"corrupted":0'
    expect corrupt-inside "$pattern" '"corrupted":1' --filled 1
done
for pattern in filter fan_in scaling; do
    expect none "$pattern" '"lost":0,"reordered":0,"corrupted":0'
    expect lose "$pattern" '"lost":1,"reordered":0,"corrupted":0'
    expect swap "$pattern" '"lost":0,"reordered":1,"corrupted":0'
    expect corrupt "$pattern" '"corrupted":1'
done
expect none filter '"messages":1000,' --match 10 --topics 5000
expect lose latency '"lost":1,' --millis 200 --rate 10000
expect none latency '"lost":0,"reordered":0,"corrupted":0' --millis 200 --rate 1000 --burst 10
expect none dealer_router '"lost":0,"reordered":0,"corrupted":0'
expect none dealer_router '"lost":0,"reordered":0,"corrupted":0' --two-processes
expect lose dealer_router '"error":"hung' --two-processes
expect corrupt crowd_publish '"corrupted":10,' --millis 200 --connections 10
expect lose crowd_publish '"error":"hung' --millis 200 --connections 10
expect none push_pull '"lost":0,"reordered":0,"corrupted":0' --curve 1
expect none req_rep '"lost":0,"reordered":0,"corrupted":0' --curve 1
expect none ring '"lost":0,"reordered":0,"corrupted":0' --millis 200
expect none ring '"lost":0,"reordered":0,"corrupted":0' --millis 200 --window 16
# Each node sends thousands of tokens, and one of them is faulty.
expect corrupt ring '"lost":0,"reordered":0,"corrupted":2' --millis 2000 --nodes 2
expect lose ring '"error":"hung' --millis 500 --nodes 2
for pattern in push_pull router_router pub_sub fan_out; do
    expect none "$pattern" '"lost":0,"reordered":0,"corrupted":0' --hwm 0
done
# 1 GiB holds no more messages of this size. Without the option, the number stays as it is.
expect none push_pull '"count":1024,' --hwm 0 --count 3000 --size 1048448
expect none push_pull '"count":1030,' --count 1030 --size 1048448
expect none handshakes '"lost":0,"reordered":0,"corrupted":0' --curve 1 --millis 200 --window 5
expect none handshakes '"lost":0,"reordered":0,"corrupted":0' --plain 1 --millis 200 --window 5
if "$programs/zmq-bench" --pattern push_pull --transport tcp --size 64 --count 10 --tls 1 >/dev/null 2>&1; then
    expect none push_pull '"lost":0,"reordered":0,"corrupted":0' --tls 1
fi
expect none crowd_route '"lost":0,"reordered":0,"corrupted":0' --millis 200 --connections 200
for mode in copied objects; do
    for pattern in push_pull router_router; do
        raw $mode $pattern inproc '"corrupted":0'
        raw $mode $pattern inproc '"unsupported":true' --two-processes
        raw $mode $pattern tcp '"corrupted":0'
        raw $mode $pattern ipc '"corrupted":0' --two-processes
    done
done
raw stream fan_out tcp '"corrupted":0' --subscribers 3
raw copied fan_out inproc '"corrupted":0' --subscribers 3
raw copied crowd_route ipc '"corrupted":0' --millis 200 --connections 200
raw stream latency tcp '"corrupted":0' --millis 100 --rate 10000
raw blocking latency ipc '"corrupted":0' --millis 100 --rate 1000 --burst 10
# Neighbours run beside a command and end with it, also if they or the command are killed: the substitution ends when
# all have closed their output.
if [ -x "$programs/busy" ]; then
    echo "check: busy neighbours"
    status=0
    # shellcheck disable=SC2016  # for the inner shell
    line=$("$programs/busy" 2 sh -c 'echo $(wc -w <"/proc/$PPID/task/$PPID/children") children; exit 7') || status=$?
    holds '3 children, 7' "$line, $status" 'busy: two neighbours and the command'
    status=0
    # shellcheck disable=SC2016
    line=$("$programs/busy" 2 sh -c 'kill -KILL $PPID; exec sleep 100000' 2>&1) || status=$?
    holds '137' "$status" 'busy: killed'
    status=0
    # shellcheck disable=SC2016
    line=$("$programs/busy" 2 sh -c 'kill -TERM $$' 2>&1) || status=$?
    holds '143' "$status" 'busy: the command is killed'
fi
# environment NAME PATTERN TRANSPORT PROCESSES [FIELD]: runs it once on either side, and checks that the
# environment is removed.
environment() {
    local said left pid
    echo "check: $2 over $3 in $1"
    cat >"$work/environment.toml" <<END
title = "One cell"
peers = ["tautline", "tautline-nospin"]
pairs = 1
target_ms = 20
timeout_s = 60
calibration_ms = 1
[[cells]]
environment = ["$1"]
pattern = ["$2"]
transport = ["$3"]
size = [64]
processes = [$4]
${5:-}
END
    "$harness" run --scenario "$work/environment.toml" --ours "$library" --peers "$here/.." --programs "$programs" \
        --out "$work/out" >"$work/said" 2>&1 &
    pid=$!
    wait $pid || true
    said=$(<"$work/said")
    left=$(find /run/netns /sys/fs/cgroup /sys/fs/cgroup/cpu -maxdepth 1 -name "taut-bench-$pid-*" 2>/dev/null || true)
    if [[ $said == *"not there: $1"* ]]; then
        skipped=$((skipped + 1))
        grep "^not there: $1" <<<"$said"
    else
        holds 'Nothing lost, reordered or corrupted; no run failed.' "$said" "$2 over $3 in $1"
    fi
    holds "left: ." "left: $left." "$2 over $3 in $1: what it made is removed"
}
# asyncio FAULT PATTERN TEXT: the same as `expect`, with the Python program.
asyncio() {
    local line
    echo "check: $1 in $2 of Python"
    line=$(FAULT=$1 LD_PRELOAD="$work/faults.so libzmq.so.5" LD_LIBRARY_PATH=$library \
        "$python" -B "$here/../python/main.py" --on preload --pattern "$2" --transport ipc --api asyncio --size 1024 --count 1000 \
        --timeout "${4:-30}" --two-processes) || true
    holds "$3" "$line" "$1 in $2 of Python"
}
python=${4:-}
if [ -z "$python" ]; then
    :
elif "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    for pattern in req_rep push_pull engine_trip engine_answers; do
        asyncio none $pattern '"lost": 0, "reordered": 0, "corrupted": 0'
        asyncio corrupt-message $pattern '"corrupted": 1'
    done
    for pattern in push_pull engine_answers; do asyncio lose-message $pattern '"lost": 1, "reordered": 0, "corrupted": 0'; done
    asyncio lose-message req_rep '"error": "hung' 2
else
    skipped=$((skipped + 1))
    echo "skipped the Python program: it needs Python 3.11"
fi
harness=${3:-}
if [ -n "$harness" ]; then
    for name in one-core half-core veth veth-delay veth-loss-0.1 veth-loss-1 busy-2 busy-8; do
        for pattern in push_pull req_rep dealer_router; do environment $name $pattern tcp 2; done
    done
    environment veth fan_out tcp 2 'subscribers = [8]'
    environment no-shared-memory push_pull ipc 2
    environment one-core push_pull inproc 1
    environment busy-4 ring ipc 1 'millis = 50'
fi
echo "peers: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
