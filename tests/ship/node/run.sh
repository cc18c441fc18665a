#!/usr/bin/env bash
# Builds the addon of the Node.js binding and runs its tests with Node's own test runner. Then runs the exchanges over every pattern that
# tests/world/programs runs on the package `zeromq`, with the import changed. Checks that these tests and `make node` put no file into the
# sources. Ends with `node: N passed, N failed, N skipped`.
#
# npm fetches the TypeScript compiler, two bundlers, and zeromq with the examples of its README, once, into target/bindings. Without the
# registry, the tests that need these packages are skipped. LIBRARY is the libzmq.so that zeromq runs on, by default the library that the
# suites share.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
binding=$root/bindings/node
tools=$target/bindings/node-tools
if [[ ${LIMITED:-} != node-binding ]]; then
    LIMITED=node-binding exec timeout -k 10 "${LIMIT:-2000}" "$0" "$@"
fi

if ! "$root/scripts/need.sh" cargo:cargo node:nodejs npm:npm >&2; then
    echo "skipped all: the Node.js binding needs cargo, node and npm"
    echo "node: 0 passed, 0 failed, 1 skipped"
    exit 0
fi

# The versions are pinned, so that the tests stay the same from day to day.
pinned="typescript@5.9.3 @types/node@20.19.25 zeromq@6.8.0
    esbuild@0.28.2 rollup@4.68.8 @rollup/plugin-node-resolve@16.0.3 @rollup/plugin-commonjs@29.0.3"
if [[ $(cat "$tools/.complete" 2>/dev/null) != "$pinned" ]]; then
    rm -rf "$tools" && mkdir -p "$tools"
    # shellcheck disable=SC2086
    if npm install --ignore-scripts --no-audit --no-fund --no-save --prefix "$tools" $pinned >"$tools.log" 2>&1; then
        echo "$pinned" >"$tools/.complete"
    else
        tail -n 5 "$tools.log"
    fi
fi
if [[ -e $tools/.complete ]]; then
    export TOOLS=$tools TSC=$tools/node_modules/.bin/tsc ZEROMQ_README=$tools/node_modules/zeromq/README.md
fi

if [[ -z ${LIBRARY:-} ]]; then
    LIBRARY=$("$root/tests/lib/build.sh" library)/libzmq.so
fi
export LIBRARY CERTIFICATES=$root/crates/testkit/src/certificates
# The tests check the addon's behaviour, not its speed.
export CARGO_TARGET_DIR=$target/test/node CARGO_PROFILE_ADDON_LTO=off CARGO_PROFILE_ADDON_CODEGEN_UNITS=16 CARGO_PROFILE_ADDON_OPT_LEVEL=1
sources() { find "$binding" | sort; }
before=$(sources)
# The tests run in a copy, so that they write no files into the sources.
tree=$target/bindings/node-tree copy=$target/bindings/node-tree/bindings/node
rm -rf "$tree" && mkdir -p "$copy"
node "$binding/scripts/build.mjs" --out "$copy"
cp -r "$binding"/{test,scripts,zeromq} "$copy"
mkdir -p "$tree/tests/world/programs" "$copy/node_modules"
ln -s "$tools/node_modules/@types" "$copy/node_modules/@types"
cp -r "$root"/LICENSE-* "$root/include" "$tree"
cp -r "$root/tests/world/programs/node" "$tree/tests/world/programs"

work=$(mktemp -d "${TMPDIR:-/tmp}/node-binding.XXXXXX")
trap 'rm -rf "$work"' EXIT
code=0
(cd "$copy" && node --test --test-reporter=tap test/) 2>&1 | tee "$work/tap" |
    grep --line-buffered -vE '^ *# Subtest|duration_ms|^ *(---|\.\.\.)$' || code=$?
sum() { sed -n "s/^# $1 \([0-9]*\)$/\1/p" "$work/tap"; }
passed=$(sum pass) failed=$(($(sum fail) + $(sum cancelled))) skipped=$(sum skipped)

mkdir "$work/node_modules"
ln -s "$copy" "$work/node_modules/tautline"
sed 's/require("zeromq")/require("tautline")/' "$root/tests/world/programs/node/exchange.js" >"$work/exchange.js"
(cd "$work" && timeout 120 node exchange.js) | tee "$work/exchange.log" | grep -v '^ok ' || true
passed=$((passed + $(grep -c '^ok ' "$work/exchange.log" || true)))
failed=$((failed + $(grep -c '^not ok ' "$work/exchange.log" || true)))
grep -q '^end$' "$work/exchange.log" || failed=$((failed + 1))
[[ $code -eq 0 || $failed -gt 0 ]] || failed=1

if make --no-print-directory -C "$root" node CARGO_TARGET_DIR="$target/test" >"$work/make.log" 2>&1 && left=$(diff <(echo "$before") <(sources)); then
    echo "ok - make node works, and the sources have no new files"
    passed=$((passed + 1))
else
    echo "not ok - make node works, and the sources have no new files"
    tail -n 5 "$work/make.log"
    echo "${left:-}"
    failed=$((failed + 1))
fi

echo "node: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
