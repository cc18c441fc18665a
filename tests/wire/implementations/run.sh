#!/usr/bin/env bash
# Interoperability with implementations that share no code with libzmq: JeroMQ (Java), go-zeromq (Go), omq-tokio and
# zmq.rs (Rust), every pattern over tcp, both ways, each side binding, with each mechanism that the other one has.
#
#   tests/wire/implementations/run.sh                    our library, which it builds
#   tests/wire/implementations/run.sh LIBRARY            another libzmq.so.5 in our place, to check the tests themselves
#   tests/wire/implementations/run.sh LIBRARY WORD...    only the cases whose name contains a WORD
#
# The peers come from the registries, in pinned versions, and are kept in target/test/peers. The cases of one that cannot be had fail.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
[[ -n ${1:-} ]] || "$root/scripts/need.sh" cargo:cargo cc:gcc
. "$root/tests/lib/venv.sh"
library=${1:-$("$root/tests/lib/build.sh" library)/libzmq.so.5}
peers=$target/test/peers

# jar GROUP:NAME:VERSION
jar() {
    local name=${1#*:}
    [[ -e $peers/java/${name/:/-}.jar ]] || mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
        -Dartifact="$1" -DoutputDirectory="$peers/java"
}

java_peer() {
    "$root/scripts/need.sh" javac:default-jdk-headless mvn:maven && mkdir -p "$peers/java" &&
        jar org.zeromq:jeromq:0.6.0 && jar eu.neilalexander:jnacl:1.0.0 &&
        javac -nowarn -Xlint:-deprecation -cp "$peers/java/*" -d "$peers/java/classes" "$here/peers/java/Peer.java"
}

go_peer() {
    "$root/scripts/need.sh" go:golang-go && (cd "$here/peers/go" && GOTOOLCHAIN=local go build -o "$peers/go/peer" .)
}

# rust_peer FOLDER: a crate with a lock file of its own.
rust_peer() {
    "$root/scripts/need.sh" cargo:cargo &&
        cargo build --quiet --locked --manifest-path "$here/peers/$1/Cargo.toml" --target-dir "$peers/rust"
}

omq_peer() { rust_peer omq-tokio; }
zmq_rs_peer() { rust_peer zmq-rs; }

# build PEER FUNCTION
build() {
    rm -f "$peers/$1.built"
    if "$2" >"$peers/$1.log" 2>&1; then
        touch "$peers/$1.built"
    else
        echo "$1 cannot be had:"
        tail -n 5 "$peers/$1.log"
    fi
}
mkdir -p "$peers"
build JeroMQ java_peer &
build go-zeromq go_peer &
build omq-tokio omq_peer &
build zmq.rs zmq_rs_peer &
wait

words=("${@:2}")
# The cases mostly wait, so several run at a time, of different peers.
run_pytest implementations "tests/wire/implementations/run.sh ''" "$here" -n 4 --assert plain --library "$(realpath "$library")" --peers "$peers" \
    "${words[@]/#/--word=}"
