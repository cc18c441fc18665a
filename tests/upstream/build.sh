#!/usr/bin/env bash
# Builds libzmq 4.3.5 with its own behaviour tests into target/upstream/build (nothing of it enters the repository).
#
# The source is the `vendor` folder of the crate zeromq-src 0.3.6. The programs are linked dynamically and without an
# rpath, so that LD_LIBRARY_PATH alone decides which libzmq.so.5 they run on. The reference library is
# target/upstream/build/lib. Quick when everything is there; safe to call from several processes at once.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
out=$root/target/upstream
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9
[[ -e $out/build/.complete ]] && exit 0

"$root/scripts/need.sh" cmake:cmake g++:g++ make:make pkg-config:pkg-config lib=libsodium:libsodium-dev >&2

source=$out/source/vendor/zeromq-src/vendor
if [[ ! -e $source/CMakeLists.txt ]]; then
    echo "upstream: fetching zeromq-src 0.3.6" >&2
    rm -rf "$out/source"
    mkdir -p "$out/source/src"
    cat > "$out/source/Cargo.toml" <<'TOML'
[package]
name = "fetch-libzmq-source"
version = "0.0.0"
edition = "2021"
[dependencies]
zeromq-src = "=0.3.6"
[workspace]
TOML
    : > "$out/source/src/lib.rs"
    (cd "$out/source" && cargo vendor >/dev/null 2>vendor.log) || { cat "$out/source/vendor.log" >&2; exit 1; }
fi

echo "upstream: building libzmq 4.3.5 and its tests (about a minute)" >&2
rm -rf "$out/build"
log=$out/build.log
cmake -S "$source" -B "$out/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED=ON -DBUILD_STATIC=OFF -DBUILD_TESTS=ON \
    -DENABLE_DRAFTS=OFF -DWITH_LIBSODIUM=ON -DENABLE_CURVE=ON -DWITH_DOCS=OFF -DWITH_PERF_TOOL=OFF \
    -DCMAKE_SKIP_RPATH=ON >"$log" 2>&1 || { tail -20 "$log" >&2; exit 1; }
cmake --build "$out/build" -j "${BUILD_JOBS:-2}" >>"$log" 2>&1 || { tail -20 "$log" >&2; exit 1; }
touch "$out/build/.complete"
