#!/usr/bin/env bash
# C++ with cppzmq, the baseline of all. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" g++:g++
if [[ ! -e $CACHE/.complete ]]; then
    # Unpacked, not installed: the package would install another libzmq into the loader's default path.
    cd "$CACHE"
    apt-get download cppzmq-dev || { apt-get update && apt-get download cppzmq-dev; }
    for deb in *.deb; do dpkg -x "$deb" .; done
    touch .complete
fi
for program in local_lat remote_lat local_thr remote_thr; do
    g++ -std=c++17 -O3 -march=native -flto -Wall -Wextra -I "$LIBZMQ/include" -isystem "$CACHE/usr/include" "$here/$program.cpp" \
        "$LIBZMQ/lib/libzmq.so.5" -Wl,--allow-shlib-undefined -pthread -o "$OUT/$program"
done
{
    echo "runtime: $(g++ --version | head -n 1)"
    echo "binding: cppzmq $(ls "$CACHE" | sed -n 's/^cppzmq-dev_\(.*\)_.*\.deb$/\1/p')"
} >"$OUT/versions.txt"
