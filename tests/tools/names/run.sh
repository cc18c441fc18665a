#!/usr/bin/env bash
# `name://` in unmodified pyzmq programs: a names file that changes, one process, one host, two hosts (network namespaces, as root), names in
# DNS (dnsmasq) and in NATS (a real nats-server, with `taut names --serve`). docs/names.md says what users are promised.
#
#   tests/tools/names/run.sh                 builds and uses target/debug/libzmq.so with names, and taut with the bridge
#   tests/tools/names/run.sh LIBRARY WORD... another one; only the cases with a WORD in their names
#
# Ends with `names: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
if [[ $(uname) != Linux ]]; then
    echo "names: 0 passed, 0 failed, 1 skipped"
    exit
fi
"$root/scripts/need.sh" cargo:cargo python3:python3 py=ensurepip:python3-venv --also dnsmasq:dnsmasq-base ip:iproute2
. "$root/tests/lib/venv.sh"
library=${1:-}
if [[ -z $library ]]; then
    (cd "$root" && cargo build -p tautline-libzmq --features names)
    library=$target/debug/libzmq.so
fi
(cd "$root" && cargo whole-programs)
mkdir -p "$target/beyond"
server=$("$root/tests/lib/nats-server.sh") || server=
# The paths of sockets are short: they lie in a folder of the system's.
work=$(mktemp -d /tmp/taut-names.XXXXXX)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1
"$venv/bin/python" "$here/main.py" "$(readlink -f "$library")" "$work" "$target/debug/taut" "$server" "${@:2}"
