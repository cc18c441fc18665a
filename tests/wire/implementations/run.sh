#!/usr/bin/env bash
# Tests interoperability with implementations that share no code with libzmq: JeroMQ (Java), go-zeromq (Go), omq-tokio and
# zmq.rs (Rust). The cases are all patterns over tcp, both ways, with each side binding and with each mechanism of the peer.
#
#   tests/wire/implementations/run.sh                    our library, which the script builds
#   tests/wire/implementations/run.sh LIBRARY            another libzmq.so.5 in our place, to check the tests themselves
#   tests/wire/implementations/run.sh LIBRARY WORD...    only the cases with a WORD in their name
#
# The peers come from the registries in pinned versions, and stay in target/test/peers. If a peer cannot be built, its cases fail.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
[[ -n ${1:-} ]] || "$root/scripts/need.sh" cargo:cargo cc:gcc
. "$root/tests/lib/venv.sh"
library=${1:-$("$root/tests/lib/build.sh" library)/libzmq.so.5}
peers=$target/test/peers

# jar GROUP:NAME:VERSION: fetches a jar.
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

# rust_peer FOLDER: builds a crate with its own lock file.
rust_peer() {
    "$root/scripts/need.sh" cargo:cargo &&
        cargo build --quiet --locked --manifest-path "$here/peers/$1/Cargo.toml" --target-dir "$peers/rust"
}

omq_peer() { rust_peer omq-tokio; }
zmq_rs_peer() { rust_peer zmq-rs; }

# build PEER FUNCTION: builds a peer and marks it as built.
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
# The cases mostly wait, so several cases of different peers run in parallel.
run_pytest implementations "tests/wire/implementations/run.sh ''" "$here" -n 4 --assert plain --library "$(realpath "$library")" --peers "$peers" \
    "${words[@]/#/--word=}"
