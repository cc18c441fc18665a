#!/usr/bin/env bash
# Builds a pinned version of nats-server with Go in target/beyond, and prints its path. If that is impossible, the exit code is 1 and the
# last line on standard error has the reason.
set -euo pipefail

version=v2.15.3
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
folder=$target/beyond/nats-server-$version
mkdir -p "$target/beyond"
# Several suites may run this script at once.
exec 9>"$target/beyond/.lock"
flock 9
if [[ ! -x $folder/nats-server ]]; then
    PATH=$PATH:/usr/local/go/bin
    "$root/scripts/need.sh" --also go:golang-go >&2
    if ! command -v go >/dev/null; then
        echo "nats-server $version is built with Go, which is not installed" >&2
        exit 1
    fi
    work=$(mktemp -d "$target/beyond.XXXXXX")
    trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
    echo "beyond: building nats-server $version" >&2
    if ! GOBIN=$work GOFLAGS=-modcacherw CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' "github.com/nats-io/nats-server/v2@$version" >"$work/log" 2>&1; then
        cat "$work/log" >&2
        echo "nats-server $version could not be built" >&2
        exit 1
    fi
    mkdir -p "$folder"
    mv "$work/nats-server" "$folder/nats-server"
fi
echo "$folder/nats-server"
