#!/usr/bin/env bash
# Go with pebbe/zmq4 by cgo. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" go:golang-go gcc:gcc pkg-config:pkg-config
cd "$here"
export PKG_CONFIG_PATH=$LIBZMQ/lib/pkgconfig GOTOOLCHAIN=local GOFLAGS=-mod=readonly
# Not the user's: it is blind to what pkg-config says, so the library's place could be that of an earlier build.
export GOCACHE=$CACHE/go-build
go build -o "$OUT" ./local_lat ./remote_lat ./local_thr ./remote_thr
{
    echo "runtime: $(go version)"
    echo "binding: $(go list -m github.com/pebbe/zmq4)"
} >"$OUT/versions.txt"
