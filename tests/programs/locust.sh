#!/usr/bin/env bash
# locust, a load generator: a master and two workers talk over ROUTER and DEALER while they ask a small web server.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start locust "$@"
python_environment
pyzmq_built

cd "$work"
"$python" -u "$here/locust/server.py" >port 2>server.log &
processes+=($!)
until [[ -s port ]]; do sleep 0.05; done
master_port=$("$python" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')

common=(-m locust -f "$here/locust/locustfile.py" --headless --host "http://127.0.0.1:$(<port)")
"$python" "${common[@]}" --master --master-bind-host 127.0.0.1 --master-bind-port "$master_port" --expect-workers 2 -u 6 -r 6 -t 4s \
    --csv result --exit-code-on-error 1 >master.log 2>&1 &
master=$!
"$python" "${common[@]}" --worker --master-host 127.0.0.1 --master-port "$master_port" >first.log 2>&1 &
first=$!
"$python" "${common[@]}" --worker --master-host 127.0.0.1 --master-port "$master_port" >second.log 2>&1 &
second=$!
processes+=("$master" "$first" "$second")

until grep -q 'All users spawned' master.log || ! kill -0 "$master" 2>/dev/null; do sleep 0.1; done
check "the master has this library in its memory, and no other" maps "$master"
check "so has the first worker" maps "$first"
check "so has the second one" maps "$second"

ended() { # ended PID LOG
    local code=0
    wait "$1" || code=$?
    [[ $code -eq 0 ]] || { echo "exit code $code"; tail -n 20 "$2"; return 1; }
}
check "the master ends well" ended "$master" master.log
check "so does the first worker" ended "$first" first.log
check "so does the second one" ended "$second" second.log
# Of the closing row: requests, failures.
all_answered() {
    awk -F, '$2 == "Aggregated" {print $3 " requests, " $4 " failures"; exit !($3 > 0 && $4 == 0)}' result_stats.csv
}
check "requests of both workers were counted, none failed" all_answered
tail -n 1 result_stats.csv | cut -d, -f2-4
finish
