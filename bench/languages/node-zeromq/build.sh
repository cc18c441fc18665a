#!/usr/bin/env bash
# Node.js with the package zeromq as npm installs it. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" node:nodejs npm:npm
app=$CACHE/app
node=$("$here/../node.sh" "$CACHE/node")
mkdir -p "$app"
[[ -e $app/package.json ]] || echo '{ "private": true }' >"$app/package.json"
if [[ ! -e $app/.complete ]]; then
    npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$app" zeromq@6.8.0
    touch "$app/.complete"
fi
cp "$here"/*.mjs "$app"
for program in local_lat remote_lat local_thr remote_thr; do
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$node" "$app/$program.mjs" >"$OUT/$program"
    chmod +x "$OUT/$program"
done
{
    echo "runtime: Node.js $("$node" --version)"
    echo "binding: zeromq $(node -p "require('$app/node_modules/zeromq/package.json').version")"
} >"$OUT/versions.txt"
