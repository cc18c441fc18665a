#!/usr/bin/env bash
# The Go package github.com/pebbe/zmq4 by cgo, under its own tests.
. "$(dirname "$0")/common.sh"
start gozmq "$@"
need go:golang-go gcc:gcc pkg-config:pkg-config

module=github.com/pebbe/zmq4@v1.4.0
fetch_module() {
    printf 'module fetch\n\ngo 1.21\n' >go.mod && GOMODCACHE=$PWD/mod GOFLAGS=-modcacherw go mod download "$module" &&
        cp -r "mod/$module" source
}
fetch gozmq-1.4.0 fetch_module
cp -r "$cache/gozmq-1.4.0/source" "$work/source"
chmod -R u+w "$work/source"
cd "$work/source"
# Not the user's: it is blind to what pkg-config says, so the library's place could be that of an earlier build.
export GOCACHE=$work/go-build
# Its module file asks for nothing else, so nothing is fetched here.
PKG_CONFIG_PATH=$prefix/lib/pkgconfig GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local go test -c -o tests .
# Its ports are fixed, and others' are the same.
witness flock "$cache/fixed-ports" timeout 300 ./tests -test.v >"$work/tests.log" 2>&1 || echo "the test program's exit code: $?"
grep -E '^ *--- (FAIL|SKIP)' -A 12 "$work/tests.log" || tail -n 3 "$work/tests.log"
count "$(grep -cE '^--- PASS' "$work/tests.log" || true)" "$(grep -cE '^--- FAIL' "$work/tests.log" || true)" \
    "$(grep -cE '^--- SKIP' "$work/tests.log" || true)"
check "it came to its end" grep -qE '^(PASS|FAIL)$' "$work/tests.log"
check "it ran on this library and no other" witnessed
finish
