#!/usr/bin/env bash
# Preloads our library for the prebuilt addon of the npm package zeromq 6, which has libzmq linked in, and tries every pattern.
. "$(dirname "$0")/common.sh"
start node "$@"
need node:nodejs npm:npm

fetch node-zeromq-6.8.0 npm install --ignore-scripts --no-save --prefix . zeromq@6.8.0
unset LD_LIBRARY_PATH
cp "$here/node/exchange.js" "$work/"
ln -s "$cache/node-zeromq-6.8.0/node_modules" "$work/node_modules"

exchange() {
    (cd "$work" && LD_PRELOAD=$library LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT=$work/bindings \
        timeout 120 node exchange.js) >"$work/exchange.log" 2>&1
    local code=$?
    cat "$work/exchange.log"
    return "$code"
}

# True if each call of the addon to libzmq goes to our library. A call that stays within the addon would mix two libraries.
all_calls_are_ours() {
    grep -oE 'zmq_[a-z0-9_]+ ?\(' "$prefix/include/zmq.h" | sed -E 's/(.*[^ ]) ?\(/symbol `\1'"'"'/' >"$work/interface" &&
        grep -h 'binding file .*addon\.node' "$work"/bindings.* | grep -F -f "$work/interface" >"$work/calls" &&
        ! grep -v " to $library " "$work/calls"
}

exchange || true
count "$(grep -c '^ok ' "$work/exchange.log" || true)" "$(grep -c '^not ok ' "$work/exchange.log" || true)" 0
check "the addon calls only this library" all_calls_are_ours
check "the program runs to its end" grep -q '^end$' "$work/exchange.log"
finish
