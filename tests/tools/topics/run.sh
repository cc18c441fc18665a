#!/usr/bin/env bash
# Tests topics between three hosts on one machine. Each host is a network namespace with a server of a NATS cluster, an agent
# (`taut names --serve`) and programs that only use `taut topics`. Then the server of the first host is killed. Connections stay, and
# the agents still find a later program.
#
#   tests/tools/topics/run.sh          the shared build of taut
#   TAUT=... tests/tools/topics/run.sh another build
#
# Needs root. Ends with `topics: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
skip() {
    echo "skipped all: $1"
    echo "topics: 0 passed, 0 failed, 1 skipped"
    exit
}
[[ $(uname) == Linux && $EUID == 0 ]] || skip "network namespaces need Linux and root"
"$root/scripts/need.sh" cargo:cargo ip:iproute2
nats=$("$root/tests/lib/nats-server.sh")
[[ -n ${TAUT:-} ]] || TAUT=$("$root/tests/lib/build.sh" programs)/taut
# The path must be short because it contains ipc sockets.
work=$(mktemp -d /tmp/taut-topics.XXXXXX)
hosts=(a b c)
prefix=taut-$$
# shellcheck disable=SC2329 # the trap calls it
end() {
    jobs -p | xargs -r kill 2>/dev/null || true
    for host in "${hosts[@]}" hub; do
        ip netns del "$prefix-$host" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap end EXIT

# ---- three hosts on a switch

ip netns add "$prefix-hub" 2>"$work/why" || skip "network namespaces: $(cat "$work/why")"
ip -n "$prefix-hub" link add name hub type bridge
ip -n "$prefix-hub" link set dev hub up
address() {
    case $1 in a) echo 10.99.8.1 ;; b) echo 10.99.8.2 ;; c) echo 10.99.8.3 ;; esac
}
# begin HOST COMMAND...: runs a command on a host. It replaces this shell, so that signals reach the command.
begin() {
    local host=$1
    shift
    exec ip netns exec "$prefix-$host" env TAUT_NAMES="$work/$host.toml" "$@"
}
on() { (begin "$@"); }
for host in "${hosts[@]}"; do
    ip netns add "$prefix-$host"
    ip -n "$prefix-hub" link add name "$host" type veth peer name eth netns "$prefix-$host"
    ip -n "$prefix-hub" link set dev "$host" master hub up
    ip -n "$prefix-$host" addr add "$(address "$host")/24" dev eth
    ip -n "$prefix-$host" link set eth up
    ip -n "$prefix-$host" link set lo up
done

# ---- a server of the cluster and an agent on each host

routes=nats://10.99.8.1:6222,nats://10.99.8.2:6222,nats://10.99.8.3:6222
declare -A server
for host in "${hosts[@]}"; do
    own=$(address "$host")
    cat >"$work/$host.toml" <<EOF
[folder]
path = "$work/$host"
tcp = "tcp://$own:*"

[nats]
servers = ["nats://10.99.8.1:4222", "nats://10.99.8.2:4222", "nats://10.99.8.3:4222"]
lease = 3
replicas = 3
EOF
    begin "$host" "$nats" -n "$host" -a "$own" -p 4222 -js -sd "$work/js-$host" --cluster_name topics --cluster "nats://$own:6222" \
        --routes "$routes" >"$work/nats-$host.log" 2>&1 &
    server[$host]=$!
    begin "$host" "$TAUT" names --serve --file "$work/$host.toml" >"$work/agent-$host.log" 2>&1 &
done

# ---- programs that know only the name of a space

failed=0
check() {
    # Messages of several publishers may overtake each other.
    if diff <(printf '%s\n' "${@:2}" | sort) <(sort "$work/$1"); then
        echo "ok $1"
    else
        failed=$((failed + 1))
        echo "FAILED $1"
    fi
}
subscriber() {
    begin "$1" timeout 120 "$TAUT" topics sub "${@:3}" >"$work/$2" 2>>"$work/said" &
}
# Each publisher waits for all three subscribers.
subscriber a all-on-a '**' -n 3
subscriber a winds-on-a 'weather.*.wind' -n 2
subscriber b winds-on-b 'weather.*.wind' -n 2
mapfile -t first < <(jobs -p | tail -n 3)
on c timeout 120 "$TAUT" topics pub weather.lund.wind '7 m/s' --wait 3 || true
on a timeout 120 "$TAUT" topics pub weather.lund.rain none --wait 3 || true
on b timeout 120 "$TAUT" topics pub weather.rome.wind '3 m/s' --wait 3 || true
for job in "${first[@]}"; do wait "$job" || true; done
check all-on-a $'weather.lund.wind\t7 m/s' $'weather.lund.rain\tnone' $'weather.rome.wind\t3 m/s'
check winds-on-a $'weather.lund.wind\t7 m/s' $'weather.rome.wind\t3 m/s'
check winds-on-b $'weather.lund.wind\t7 m/s' $'weather.rome.wind\t3 m/s'

kill -KILL "${server[a]}"
wait "${server[a]}" 2>/dev/null || true
subscriber b after-a-server-died 'weather.**' -n 1
last=$!
on c timeout 120 "$TAUT" topics pub weather.lund.wind '9 m/s' || true
wait "$last" || true
check after-a-server-died $'weather.lund.wind\t9 m/s'

((failed == 0)) || { tail -n 5 "$work"/*.log "$work/said"; echo "again: tests/tools/topics/run.sh"; }
echo "topics: $((4 - failed)) passed, $failed failed, 0 skipped"
exit "$((failed > 0))"
