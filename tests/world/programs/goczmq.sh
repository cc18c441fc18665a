#!/usr/bin/env bash
# Runs the tests of the Go package github.com/go-zeromq/goczmq, which calls Debian's CZMQ by cgo.
set -euo pipefail

. "$(dirname "$0")/common.sh"
start goczmq "$@"
need go:golang-go gcc:gcc pkg-config:pkg-config apt-get:apt dpkg:dpkg

module=github.com/go-zeromq/goczmq/v4@v4.2.2
fetch_module() {
    printf 'module fetch\n\ngo 1.21\n' >go.mod && GOMODCACHE=$PWD/mod GOFLAGS=-modcacherw go mod download "$module" &&
        cp -r "mod/$module" source
}
fetch goczmq-4.2.2 fetch_module
fetch goczmq-debian unpack_debs libczmq-dev libczmq4
debian=$cache/goczmq-debian
libraries=$(dirname "$(find "$debian" -name 'libczmq.so.4' | head -n 1)")

cp -r "$cache/goczmq-4.2.2/source" "$work/source"
chmod -R u+w "$work/source"
# The package also asks pkg-config for libsodium, but does not use it.
mkdir "$work/pkgconfig"
printf 'Name: libczmq\nDescription: CZMQ\nVersion: 4\nCflags: -I%s\nLibs: -L%s -lczmq\n' "$debian/usr/include" "$libraries" \
    >"$work/pkgconfig/libczmq.pc"
printf 'Name: libsodium\nDescription: nothing\nVersion: 1\n' >"$work/pkgconfig/libsodium.pc"
export PKG_CONFIG_PATH=$work/pkgconfig:$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib:$libraries
cd "$work/source"
# The user's build cache ignores the output of pkg-config, so its library path could be that of an earlier build.
export GOCACHE=$work/go-build
GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local go test -c -o tests .
# Two tests publish while another goroutine subscribes. They also fail on libzmq, in one of twenty runs.
racy='^TestPubSubChanneler(NoInitialSubscription)?$'
# The tests use fixed ports.
alone timeout 300 ./tests -test.v -test.skip "$racy" >"$work/tests.log" 2>&1 || echo "the test program's exit code: $?"
grep -E '^ *--- (FAIL|SKIP)' -B 12 "$work/tests.log" || tail -n 3 "$work/tests.log"
count "$(grep -cE '^--- PASS' "$work/tests.log" || true)" "$(grep -cE '^--- FAIL' "$work/tests.log" || true)" \
    "$(grep -cE '^--- SKIP' "$work/tests.log" || true)"
check "the tests run to their end" grep -qE '^(PASS|FAIL)$' "$work/tests.log"
check "the tests load only this libzmq" witnessed
finish
