#!/usr/bin/env bash
# rsyslog with its module omczmq ships 10,000 lines of a log file to a PULL socket.
set -euo pipefail

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start rsyslog "$@"
need apt-get:apt dpkg:dpkg
python_environment
pyzmq_wheel

fetch rsyslog-debian unpack_debs rsyslog rsyslog-czmq libczmq4 libestr0 libfastjson4 liblognorm5
debian=$cache/rsyslog-debian
libraries=$(dirname "$(find "$debian" -name 'libczmq.so.4' | head -n 1)")
daemon=$(find "$debian" -name rsyslogd -type f | head -n 1)
modules=$(dirname "$(find "$debian" -name omczmq.so | head -n 1)")

cd "$work"
# The receiver runs on libzmq from the wheel, so that the lines go from one library to the other.
env -u LD_LIBRARY_PATH "$python" "$here/rsyslog/receive.py" 10000 >received 2>receive.log &
receiver=$!
processes+=("$receiver")
until [[ -s received ]]; do kill -0 "$receiver"; sleep 0.05; done

cat >rsyslog.conf <<CONF
global(workDirectory="$work")
module(load="imfile" mode="inotify")
module(load="omczmq")
template(name="line" type="string" string="%msg%")
input(type="imfile" file="$work/input.log" tag="program:" ruleset="ship")
ruleset(name="ship") {
    action(type="omczmq" endpoints=">tcp://127.0.0.1:$(head -n 1 received)" socktype="PUSH" template="line")
}
CONF
: >input.log
env "${witnessing[@]}" LD_LIBRARY_PATH="$prefix/lib:$libraries" "$daemon" -n -f rsyslog.conf -i "$work/rsyslogd.pid" -M "$modules" \
    >rsyslogd.log 2>&1 &
daemon_pid=$!
processes+=("$daemon_pid")
seq -f 'line %.0f of the log' 10000 >>input.log

arrived() {
    local code=0
    timeout 300 tail --pid="$receiver" -f /dev/null || true
    kill -0 "$receiver" 2>/dev/null && { echo "after 300 s: $(wc -l <received) lines"; cat rsyslogd.log; return 1; }
    wait "$receiver" || code=$?
    cat receive.log
    [[ $code -eq 0 ]] && diff <(tail -n +2 received) input.log
}
check "10,000 lines arrive, in order and unchanged" arrived
ends() {
    local code=0
    kill -TERM "$daemon_pid"
    timeout 120 tail --pid="$daemon_pid" -f /dev/null || return 1
    wait "$daemon_pid" || code=$?
    [[ $code -eq 0 ]] || { echo "exit code $code"; cat rsyslogd.log; return 1; }
}
check "rsyslogd exits with 0 after SIGTERM" ends
check "rsyslogd loads only this libzmq" witnessed
finish
