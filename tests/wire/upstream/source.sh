#!/usr/bin/env bash
# Fetches the source of libzmq 4.3.5, the `vendor` folder of the crate zeromq-src 0.3.6, into target/upstream, and prints where it
# is. Its files stay outside the repository.
#
#   tests/wire/upstream/source.sh                            that
#   tests/wire/upstream/source.sh CRATE VERSION FILE         another crate with such a folder: its own, in which there is FILE
#
# Not safe to call from several processes at once: build.sh and windows-build.sh hold a lock.
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
