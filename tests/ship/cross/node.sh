#!/usr/bin/env bash
# Puts the Node.js addon for another system where npm would put it. Runs exchanges over all patterns with a Node.js of that system.
#
#   tests/ship/cross/node.sh NODE PLATFORM ADDON     NODE is a command, which may have several words; PLATFORM as in linux-arm64-musl
#
# Ends with `node: N passed, N failed, 0 skipped`; exit code 0 if every check passed.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/cross-node.XXXXXX")
trap 'rm -rf "$work"' EXIT

main=$work/node_modules/tautline package=$work/node_modules/@tautline/$2
mkdir -p "$main/lib" "$package"
cp "$root"/bindings/node/{package.json,draft.js} "$main"
cp "$root"/bindings/node/lib/*.js "$main/lib"
echo "{ \"main\": \"tautline.$2.node\" }" >"$package/package.json"
cp "$3" "$package/tautline.$2.node"
sed 's/require("zeromq")/require("tautline")/' "$root/tests/world/programs/node/exchange.js" >"$work/exchange.js"

# shellcheck disable=SC2086 # a command is words
(cd "$work" && WATCHDOG=300 timeout 1800 $1 exchange.js) >"$work/log" 2>&1 || true
cat "$work/log"
passed=$(grep -c '^ok ' "$work/log" || true) failed=$(grep -c '^not ok ' "$work/log" || true)
grep -q '^end$' "$work/log" || failed=$((failed + 1))
echo "node: $passed passed, $failed failed, 0 skipped"
[[ $failed -eq 0 ]]
