#!/usr/bin/env bash
# Tests `name://` in unmodified pyzmq programs: a changing names file, one process, one host, two hosts (network namespaces, as
# root), names in DNS (dnsmasq) and in NATS (a real nats-server, with `taut names --serve`). docs/use/names.md describes the
# guarantees for users.
#
#   tests/tools/names/run.sh                  the library under test
#   tests/tools/names/run.sh LIBRARY WORD...  another library, unless LIBRARY is empty; only the cases with a WORD in their names
#
# Ends with `names: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
. "$root/tests/lib/tools.sh"
begin_on_linux names dnsmasq:dnsmasq-base ip:iproute2
use_library "${1:-}"
NATS_SERVER=$("$root/tests/lib/nats-server.sh")
export NATS_SERVER

# The path must be short because it contains ipc sockets.
work=$(mktemp -d /tmp/taut-names.XXXXXX)
trap 'rm -rf "$work"' EXIT
words=()
for word in "${@:2}"; do words+=(--word "$word"); done
run_pytest names "tests/tools/names/run.sh '${1:-}'" "$here" --basetemp "$work/t" -n 4 --dist worksteal ${words[@]+"${words[@]}"}
