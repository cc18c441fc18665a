#!/usr/bin/env bash
# The Go package github.com/go-zeromq/goczmq by cgo, on CZMQ as Debian has it, under its own tests.
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
# It also asks pkg-config for libsodium, which it does not use.
mkdir "$work/pkgconfig"
printf 'Name: libczmq\nDescription: CZMQ\nVersion: 4\nCflags: -I%s\nLibs: -L%s -lczmq\n' "$debian/usr/include" "$libraries" \
    >"$work/pkgconfig/libczmq.pc"
printf 'Name: libsodium\nDescription: nothing\nVersion: 1\n' >"$work/pkgconfig/libsodium.pc"
export PKG_CONFIG_PATH=$work/pkgconfig:$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib:$libraries
cd "$work/source"
# Not the user's: it is blind to what pkg-config says, so the library's place could be that of an earlier build.
export GOCACHE=$work/go-build
GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local go test -c -o tests .
# Two of its tests publish while another goroutine subscribes: they also fail on libzmq, every twentieth time.
racy='^TestPubSubChanneler(NoInitialSubscription)?$'
# Its ports are fixed.
alone timeout 300 ./tests -test.v -test.skip "$racy" >"$work/tests.log" 2>&1 || echo "the test program's exit code: $?"
grep -E '^ *--- (FAIL|SKIP)' -B 12 "$work/tests.log" || tail -n 3 "$work/tests.log"
count "$(grep -cE '^--- PASS' "$work/tests.log" || true)" "$(grep -cE '^--- FAIL' "$work/tests.log" || true)" \
    "$(grep -cE '^--- SKIP' "$work/tests.log" || true)"
check "it came to its end" grep -qE '^(PASS|FAIL)$' "$work/tests.log"
check "it ran on this library and no other" witnessed
finish
