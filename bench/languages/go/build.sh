#!/usr/bin/env bash
# Go with pebbe/zmq4 by cgo. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" go:golang-go gcc:gcc pkg-config:pkg-config
cd "$here"
export PKG_CONFIG_PATH=$LIBZMQ/lib/pkgconfig GOTOOLCHAIN=local GOFLAGS=-mod=readonly
# Go caches a compiled package together with the flags from pkg-config, and does not notice when pkg-config
# changes them. So we use a separate cache, and pass the folders in variables, which the cache compares. They
# replace Go's own flags, -O2 -g.
export GOCACHE=$CACHE/go-build
CGO_CFLAGS="-O2 -g $(pkg-config --cflags libzmq)"
CGO_LDFLAGS="-O2 -g $(pkg-config --libs-only-L libzmq)"
export CGO_CFLAGS CGO_LDFLAGS
go build -o "$OUT" ./local_lat ./remote_lat ./local_thr ./remote_thr
{
    echo "runtime: $(go version)"
    echo "binding: $(go list -m github.com/pebbe/zmq4)"
} >"$OUT/versions.txt"
