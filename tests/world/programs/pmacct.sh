#!/usr/bin/env bash
# pmacctd with its plugin pipe over ZeroMQ: the core process publishes to plugins that it forked, with PLAIN and a ZAP handler.
. "$(dirname "$0")/common.sh"
start pmacct "$@"
need apt-get:apt dpkg:dpkg python3:python3

fetch pmacct-debian unpack_debs pmacct libjansson4 libmariadb3 libmaxminddb0 libnetfilter-log1 libnfnetlink0 libpcap0.8 libpq5 \
    librabbitmq4 librdkafka1 libsqlite3-0
debian=$cache/pmacct-debian
libraries=$(dirname "$(find "$debian" -name 'libpcap.so.0.8' | head -n 1)")
export LD_LIBRARY_PATH=$prefix/lib:$libraries
missing=$(ldd "$debian/usr/sbin/pmacctd" | awk '/not found/ {print $1}')
[[ -z $missing ]] || give_up "pmacctd needs $missing"

# Each plugin receives some messages of 1 MB. A plugin is a process that subscribes while the core waits
# for `pcap_savefile_delay`. The plugins count the packets in memory and answer queries. The first query
# comes after the core has read the capture: a plugin forks a child for each query, and the exit of the
# child moves the file offset that it shares with the core. The core would then stop reading.
packets=20000
python3 "$here/pmacct/capture.py" "$work/packets.pcap" "$packets"
cat >"$work/pmacctd.conf" <<CONF
daemonize: false
pcap_savefile: $work/packets.pcap
pcap_savefile_wait: true
pcap_savefile_delay: 5
plugins: memory[a], memory[b]
plugin_pipe_zmq: true
plugin_pipe_zmq_profile: large
aggregate: src_host, dst_host
imt_path[a]: $work/a.pipe
imt_path[b]: $work/b.pipe
CONF
env "${witnessing[@]}" "$debian/usr/sbin/pmacctd" -f "$work/pmacctd.conf" >"$work/pmacctd.log" 2>&1 &
daemon=$!
processes+=("$daemon")

# counted PLUGIN: prints the number of packets that the plugin has counted until now.
counted() {
    [[ -S $work/$1.pipe ]] || return 0
    "$debian/usr/bin/pmacct" -s -p "$work/$1.pipe" 2>/dev/null | awk '/^[0-9]+\.[0-9]/ {sum += $3} END {print sum + 0}' || true
}
# all_counted PLUGIN: waits until the plugin has counted all packets. The script's own time limit ends the wait.
all_counted() {
    local now='' last=''
    until now=$(counted "$1"); [[ $now == "$packets" ]]; do
        [[ $now == "$last" ]] || echo "$now packets"
        last=$now
        kill -0 "$daemon" || { cat "$work/pmacctd.log"; return 1; }
        sleep 0.1
    done
}
finished() {
    until grep -q 'finished reading PCAP' "$work/pmacctd.log"; do
        kill -0 "$daemon" || { cat "$work/pmacctd.log"; return 1; }
        sleep 0.1
    done
}
check "the capture is read" finished
check "the plugin a counts $packets packets" all_counted a
check "the plugin b counts $packets packets" all_counted b
read -ra plugins <<<"$(cat "/proc/$daemon/task/$daemon/children")"
processes+=("${plugins[@]}")
check "there are two plugins" test "${#plugins[@]}" = 2
check "pmacctd loads only this libzmq" witnessed
finish
