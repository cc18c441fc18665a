#!/usr/bin/env bash
# Fetches the source of libzmq 4.3.5, the `vendor` folder of the crate zeromq-src 0.3.6, into target/upstream, and prints its
# folder. libzmq's files stay outside the repository.
#
#   tests/wire/upstream/source.sh                            the source of libzmq
#   tests/wire/upstream/source.sh CRATE VERSION FILE         another crate, and prints the folder of its FILE
#
# Only one process may call this script at a time, so build.sh and windows-build.sh hold a lock.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
crate=${1:-zeromq-src} version=${2:-0.3.6} file=${3:-vendor/CMakeLists.txt}
out=$target/upstream/source
[[ $crate == zeromq-src ]] || out=$target/upstream/$crate
if [[ ! -e $out/vendor/$crate/$file ]]; then
    echo "upstream: fetching $crate $version" >&2
    rm -rf "$out"
    mkdir -p "$out/src"
    cat > "$out/Cargo.toml" <<TOML
[package]
name = "fetch-source"
version = "0.0.0"
edition = "2021"
[dependencies]
$crate = "=$version"
[workspace]
TOML
    : > "$out/src/lib.rs"
    (cd "$out" && cargo vendor >/dev/null 2>vendor.log) || { cat "$out/vendor.log" >&2; exit 1; }
fi
dirname "$out/vendor/$crate/$file"
