#!/usr/bin/env bash
# Runs a program that uses most classes of cppzmq, the header-only C++ interface.
. "$(dirname "$0")/common.sh"
start cppzmq "$@"
need g++:g++ apt-get:apt dpkg:dpkg

fetch cppzmq-4.9.0 unpack_debs cppzmq-dev
g++ -std=c++17 -O1 -Wall -I "$prefix/include" -isystem "$cache/cppzmq-4.9.0/usr/include" "$here/cppzmq/exchange.cpp" \
    -L "$prefix/lib" -lzmq -pthread -o "$work/exchange"

run() {
    witness timeout 120 "$work/exchange"
}
run >"$work/exchange.log" 2>&1 || true
cat "$work/exchange.log"
count "$(grep -c '^ok ' "$work/exchange.log" || true)" "$(grep -c '^not ok ' "$work/exchange.log" || true)" 0
check "the program runs to its end" grep -q '^end$' "$work/exchange.log"
check "the program loads only this libzmq" witnessed
finish
