#!/usr/bin/env bash
# Builds the libzmq that Tautline is measured against: 4.3.5, from the source in the `vendor` folder of the Rust
# crate zeromq-src 0.3.6, by that source's own CMake in Release with libsodium, as a distribution would build it.
# (The crate's own static build leaves out eventfd and would be an unfairly slow baseline.)
#
#   scripts/libzmq-baseline.sh [DEST]        DEST defaults to target/baseline
#   scripts/libzmq-baseline.sh --ws [DEST]   with drafts, WebSocket and GnuTLS, beside it: DEST/libzmq-ws
#
# Leaves DEST/src (the vendored source), DEST/build and DEST/libzmq (the install prefix). Quick when already done.
set -euo pipefail

crate_version=0.3.6
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
variant=
if [ "${1:-}" = --ws ]; then
    variant=-ws
    shift
fi
dest=${1:-$target/baseline}
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
prefix=$dest/libzmq$variant
build=$dest/build$variant
stamp=$prefix/.built
recipe="zeromq-src $crate_version cmake Release shared sodium curve$variant"
features=(-DENABLE_DRAFTS=OFF)
[ -z "$variant" ] || features=(-DENABLE_DRAFTS=ON -DENABLE_WS=ON -DWITH_TLS=ON)

. "$root/scripts/step.sh"
say() { printf 'baseline: %s\n' "$*"; }

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$recipe" ] && [ -e "$prefix/lib/libzmq.so.5" ]; then
    say "libzmq 4.3.5 is ready in $prefix"
    exit 0
fi

# One build at a time: the test suite and the benchmark may both ask for it.
exec 9>"$dest/.lock"
if ! flock -n 9; then
    say "waiting for another build of libzmq 4.3.5; its log is $build.log"
    flock 9
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$recipe" ]; then
        say "libzmq 4.3.5 is ready in $prefix"
        exit 0
    fi
fi

"$root/scripts/need.sh" cmake:cmake c++:g++ make:make pkg-config:pkg-config lib=libsodium:libsodium-dev
[ -z "$variant" ] || "$root/scripts/need.sh" lib=gnutls:libgnutls28-dev

source_dir=$dest/src/vendor/zeromq-src/vendor
if [ ! -f "$source_dir/CMakeLists.txt" ]; then
    rm -rf "$dest/src"
    mkdir -p "$dest/src/src"
    : >"$dest/src/src/lib.rs"
    # The empty [workspace] keeps this manifest out of Tautline's own workspace.
    cat >"$dest/src/Cargo.toml" <<TOML
[package]
name = "baseline-source"
version = "0.0.0"
edition = "2021"

[workspace]

[dependencies]
zeromq-src = "=$crate_version"
TOML
    step "baseline: fetching the source (crate zeromq-src $crate_version)" "$dest/src/cargo-vendor.log" \
        cargo vendor --manifest-path "$dest/src/Cargo.toml" "$dest/src/vendor"
fi

rm -rf "$build" "$prefix"
build() {
    cmake -S "$source_dir" -B "$build" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
        -DBUILD_SHARED=ON -DBUILD_STATIC=OFF -DBUILD_TESTS=OFF "${features[@]}" \
        -DWITH_LIBSODIUM=ON -DENABLE_CURVE=ON -DWITH_PERF_TOOL=OFF -DWITH_DOCS=OFF \
        -DCMAKE_POLICY_VERSION_MINIMUM=3.5 &&
        cmake --build "$build" --parallel 2 &&
        cmake --install "$build"
}
step "baseline: building libzmq 4.3.5$variant" "$build.log" build

[ -e "$prefix/lib/libzmq.so.5" ] || { say "the build produced no libzmq.so.5"; exit 1; }
printf '%s\n' "$recipe" >"$stamp"
say "libzmq 4.3.5 is ready in $prefix"
