#!/usr/bin/env bash
# Builds libzmq 4.3.5's own behaviour tests with this folder's CMakeLists.txt into target/upstream. libzmq's files stay outside the
# repository.
#
#   tests/wire/upstream/build.sh
#
# The source and the linked library come from scripts/libzmq-baseline.sh. The script is fast if all files exist. Several processes may
# call it at the same time.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/upstream
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9
libraries=$("$root/tests/lib/build.sh" baseline)
"$root/scripts/need.sh" cmake:cmake g++:g++ make:make pkg-config:pkg-config lib=libsodium:libsodium-dev >&2
baseline=$target/baseline
if ! {
    cmake -S "$here" -B "$out" -DSOURCE="$baseline/src/vendor/zeromq-src/vendor" -DPLATFORM="$baseline/build-ws" \
        -DLIBRARY="$libraries/libzmq.so" && cmake --build "$out" -j "${BUILD_JOBS:-2}"
} >"$out/build.log" 2>&1; then
    tail -n 20 "$out/build.log" >&2
    exit 1
fi
