#!/usr/bin/env bash
# Interoperability with implementations that share no code with libzmq: JeroMQ (Java), go-zeromq (Go), omq-tokio and
# zmq.rs (Rust), every pattern over tcp, both ways, each side binding, with each mechanism that the other one has.
#
#   tests/wire/implementations/run.sh                    ours: builds and uses target/release/libzmq.so
#   tests/wire/implementations/run.sh LIBRARY            another libzmq.so.5 in our place, to check the tests themselves
#   tests/wire/implementations/run.sh LIBRARY PUB        only the cases whose name contains "PUB"
#
# The peers come from the registries, in pinned versions, and are kept in target/interop. One that cannot be had is skipped.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
[[ -n ${1:-} ]] || "$root/scripts/need.sh" cargo:cargo cc:gcc python3:python3 py=ensurepip:python3-venv --also \
    javac:openjdk-17-jdk-headless mvn:maven go:golang-go
. "$here/venv.sh"
cache=$target/interop
library=${1:-}
if [[ -z $library ]]; then
    (cd "$root" && cargo build --release -p tautline-libzmq)
    library=$target/release/libzmq.so
fi
library=$(readlink -f "$library")

# jar GROUP:NAME:VERSION
jar() {
    local name=${1#*:}
    [[ -e $cache/java/${name/:/-}.jar ]] || mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
        -Dartifact="$1" -DoutputDirectory="$cache/java"
}

java_peer() {
    "$root/scripts/need.sh" javac:openjdk-17-jdk-headless mvn:maven && mkdir -p "$cache/java" &&
        jar org.zeromq:jeromq:0.6.0 && jar eu.neilalexander:jnacl:1.0.0 &&
        javac -nowarn -Xlint:-deprecation -cp "$cache/java/*" -d "$cache/java/classes" "$here/peers/java/Peer.java"
}

go_peer() {
    "$root/scripts/need.sh" go:golang-go && (cd "$here/peers/go" && GOTOOLCHAIN=local go build -o "$cache/go/peer" .)
}

# rust_peer FOLDER: a crate with a lock file of its own.
rust_peer() {
    "$root/scripts/need.sh" cargo:cargo &&
        cargo build --quiet --locked --manifest-path "$here/peers/$1/Cargo.toml" --target-dir "$cache/rust"
}

omq_peer() { rust_peer omq-tokio; }
zmq_rs_peer() { rust_peer zmq-rs; }

mkdir -p "$cache/peers"
# peer NAME BUILD COMMAND
peer() {
    local log=$cache/peers/$1.log
    echo "  $1: building"
    if "$2" >"$log" 2>&1; then
        echo "  $1: running"
        PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" "$here/peers.py" "$library" "$1" "$3" "${parts[@]}" >"$log" 2>&1 || true
        grep -qE '^peers: [0-9]' "$log" || echo 'peers: 0 passed, 1 failed, 0 skipped' >>"$log"
    else
        tail -n 5 "$log"
        echo "skipped $1: it could not be had" | tee -a "$log"
        echo 'peers: 0 passed, 0 failed, 1 skipped' >>"$log"
    fi
}
parts=("${@:2}")
peer JeroMQ java_peer "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp $cache/java/*:$cache/java/classes Peer" &
peer go-zeromq go_peer "$cache/go/peer" &
peer omq-tokio omq_peer "$cache/rust/debug/peer-omq-tokio" &
peer zmq.rs zmq_rs_peer "$cache/rust/debug/peer-zmq-rs" &
wait

for name in JeroMQ go-zeromq omq-tokio zmq.rs; do
    echo "--- $name"
    grep -vE '^(peers:|passed )' "$cache/peers/$name.log" || true
    grep '^peers:' "$cache/peers/$name.log" | tail -n 1 | sed "s/^peers/  $name/"
done
cat "$cache"/peers/*.log | awk '
    /^peers: [0-9]+ passed/ { passed += $2; failed += $4; skipped += $6 }
    END { printf "peers: %d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }'
