#!/usr/bin/env bash
# Runs the tests of the Go package github.com/pebbe/zmq4, which calls libzmq by cgo.
set -euo pipefail

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
# The user's build cache ignores the output of pkg-config, so its library path could be that of an earlier build.
export GOCACHE=$work/go-build
# The module has no dependencies, so Go fetches no other modules here.
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local

# run NAME: runs the test program ./NAME, whose ports are fixed.
run() {
    alone timeout 300 "./$1" -test.v >"$work/$1.log" 2>&1 || echo "the exit code of $1: $?"
    grep -E '^ *--- (FAIL|SKIP)' -B 12 "$work/$1.log" || tail -n 3 "$work/$1.log"
    count "$(grep -cE '^--- PASS' "$work/$1.log" || true)" "$(grep -cE '^--- FAIL' "$work/$1.log" || true)" \
        "$(grep -cE '^--- SKIP' "$work/$1.log" || true)"
    check "$1 run to their end" grep -qE '^(PASS|FAIL)$' "$work/$1.log"
}
go test -c -o tests .
run tests
# The package with the draft interface asks pkg-config for the same module. A libzmq without drafts lacks the symbols that
# the package needs.
if nm -D "$library" | grep ' zmq_join$' >/dev/null; then
    CGO_CFLAGS="-g -O2 -DZMQ_BUILD_DRAFT_API=1" go test -c -o draft-tests ./draft
    run draft-tests
else
    echo "skipped: this libzmq has no draft interface for the package draft"
    count 0 0 1
fi
check "the tests load only this libzmq" witnessed
finish
