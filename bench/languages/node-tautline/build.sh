#!/usr/bin/env bash
# Node.js with our own binding, packed and installed. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" cargo:cargo node:nodejs npm:npm
app=$CACHE/app
node=$("$here/../node.sh" "$CACHE/node")
rm -rf "$app"
mkdir -p "$app"
echo '{ "private": true }' >"$app/package.json"
CARGO_TARGET_DIR=$CACHE/target node "$ROOT/bindings/node/scripts/build.mjs" --out "$CACHE/package"
(cd "$CACHE/package" && npm pack --silent --pack-destination "$app")
npm install --silent --offline --no-audit --no-fund --prefix "$app" "$app"/tautline-*.tgz
# The programs of the zeromq package, with the import changed.
for program in "$here"/../node-zeromq/*.mjs; do
    sed 's/from "zeromq"/from "tautline"/' "$program" >"$app/$(basename "$program")"
done
for program in local_lat remote_lat local_thr remote_thr; do
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$node" "$app/$program.mjs" >"$OUT/$program"
    chmod +x "$OUT/$program"
done
{
    echo "runtime: Node.js $("$node" --version)"
    echo "binding: tautline $(node -p "require('$app/node_modules/tautline/package.json').version") ($(git -C "$ROOT" describe --always --dirty 2>/dev/null || echo 'no commit'))"
} >"$OUT/versions.txt"
