#!/usr/bin/env bash
# Tests unmodified programs (pyzmq, Node.js and C) under the policies of docs/operate/policy.md: refusals, warnings and wraps, and places
# that must not contain keys. test_page.py follows docs/operate/security.md as a reader would.
#
#   tests/tools/policy/run.sh                  the library under test
#   tests/tools/policy/run.sh LIBRARY WORD...  another library, unless LIBRARY is empty; only the cases with a WORD in their names
#
# Ends with `policy: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
. "$root/tests/lib/tools.sh"
begin_on_linux policy cc:gcc node:nodejs npm:npm gcore:gdb
use_library "${1:-}"
use_node_zeromq

work=$(mktemp -d /tmp/taut-policy.XXXXXX)
trap 'rm -rf "$work"' EXIT
ln -s "$LIBRARY" "$work/libzmq.so.5"
PEER_C=$work/peer
gcc -std=gnu11 -O1 -Wall -Wextra -Werror -pedantic -I "$root/include" "$here/peer.c" "$work/libzmq.so.5" -Wl,-rpath,"$work" -o "$PEER_C"
export PEER_C

words=()
for word in "${@:2}"; do words+=(--word "$word"); done
# `loadfile` runs the cases of a file in one worker, because each command of the page depends on the previous ones.
run_pytest policy "tests/tools/policy/run.sh '${1:-}'" "$here" --basetemp "$work/cases" -n 4 --dist loadfile ${words[@]+"${words[@]}"}
