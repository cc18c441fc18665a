#!/usr/bin/env bash
# locust, a load generator: a master and two workers talk over ROUTER and DEALER, while the workers query a small web server.
set -euo pipefail

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start locust "$@"
python_environment
pyzmq_built

cd "$work"
"$python" -u "$here/locust/server.py" >port 2>server.log &
processes+=($!)
until [[ -s port ]]; do sleep 0.05; done
common=("$python" -m locust -f "$here/locust/locustfile.py" --headless --host "http://127.0.0.1:$(<port)")
env "${witnessing[@]}" "${common[@]}" --master --master-bind-host 127.0.0.1 --master-bind-port 0 --expect-workers 2 -u 6 -r 6 \
    --json-file result --exit-code-on-error 1 >master.log 2>&1 &
master=$!
processes+=("$master")
until [[ -s master_port ]]; do kill -0 "$master" || { cat master.log; exit 1; }; sleep 0.05; done
env "${witnessing[@]}" "${common[@]}" --worker --master-host 127.0.0.1 --master-port "$(<master_port)" >first.log 2>&1 &
first=$!
env "${witnessing[@]}" "${common[@]}" --worker --master-host 127.0.0.1 --master-port "$(<master_port)" >second.log 2>&1 &
second=$!
processes+=("$first" "$second")

ended() { # ended PID LOG
    local code=0
    wait "$1" || code=$?
    [[ $code -eq 0 ]] || { echo "exit code $code"; tail -n 20 "$2"; return 1; }
}
check "the master exits with 0" ended "$master" master.log
check "the first worker exits with 0" ended "$first" first.log
check "the second worker exits with 0" ended "$second" second.log
check "the master loads only this libzmq" witnessed "$master"
check "the first worker loads only this libzmq" witnessed "$first"
check "the second worker loads only this libzmq" witnessed "$second"
all_answered() {
    "$python" -c 'import json, sys
rows = json.load(open("result.json"))
requests, failures = (sum(row[key] for row in rows) for key in ("num_requests", "num_failures"))
print(requests, "requests,", failures, "failures")
sys.exit(requests == 0 or failures > 0)'
}
check "the master counts requests of the workers without a failure" all_answered
all_answered
finish
