#!/usr/bin/env bash
# Tests wheels for other systems with PyPI's pyzmq and a Python of that system:
#
#   tests/ship/wheel/other.sh [SYSTEM...]     by default arm64 and musl
#
# | arm64 | 64-bit ARM with glibc: Debian's Python, unpacked, under qemu-user |
# | musl  | x86-64 with musl: a Python that musl-gcc builds here from Debian's sources, in some minutes |
#
# `cargo xtask cross` builds the libraries of the wheels. WHEEL=FILE takes an existing wheel, for one system. Downloads from Debian
# and PyPI are kept in target/wheels/cache. Ends with `wheel: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cd "$root"
systems=("$@")
[[ ${#systems[@]} -gt 0 ]] || systems=(arm64 musl)
mkdir -p "${CARGO_TARGET_DIR:-target}/wheels/cache"
wheels=$(realpath "${CARGO_TARGET_DIR:-target}/wheels")
cache=$wheels/cache
passed=0 failed=0 skipped=0
work=$(mktemp -d "${TMPDIR:-/tmp}/wheel-other.XXXXXX")
trap 'rm -rf "$work"' EXIT

. packaging/tools.sh
pinned_tools "$wheels/tools" packaging/python/requirements.txt
. tests/lib/check.sh
check() {
    local name=$1
    shift
    run_check wheel "$system: $name" "tests/ship/wheel/other.sh $system" "$@"
}

# ---- the Pythons; each function sets `python`, a command, and pip's names of the system

arm64() {
    local place=$cache/python-trixie-arm64
    scripts/need.sh mmdebstrap:mmdebstrap qemu-aarch64-static:qemu-user-static >&2
    if [[ ! -e $place.complete ]]; then
        echo "wheel: unpacking Debian's Python for 64-bit ARM into $place"
        rm -rf "$place"
        mmdebstrap --quiet --variant=extract --architectures=arm64 --include=python3.13,libstdc++6 trixie "$place" >&2
        touch "$place.complete"
    fi
    python=(qemu-aarch64-static -L "$place/usr" "$place/usr/bin/python3.13")
    machine=aarch64 target=aarch64-unknown-linux-gnu.2.17 platforms=(manylinux2014_aarch64 manylinux_2_28_aarch64)
}

musl() {
    local place=$cache/python-musl
    scripts/need.sh mmdebstrap:mmdebstrap musl-gcc:musl-tools curl:curl make:make xz:xz-utils \
        file=/usr/include/linux/limits.h:linux-libc-dev >&2
    if [[ ! -e $place.complete ]]; then
        echo "wheel: building a Python for musl in $place"
        rm -rf "$place"
        mkdir -p "$place"
        # A separate shell, because `set -e` has no effect on the left side of `||`. It ends with the first failing step.
        (cd "$place" && bash -euo pipefail -c "$(declare -f source_of build_python); build_python") >"$place.log" 2>&1 ||
            { tail -n 20 "$place.log" && return 1; }
        touch "$place.complete"
    fi
    python=("$place/loader/usr/lib/ld-musl-x86_64.so.1" "$place/Python-3.13.5/python")
    machine=x86_64 target=x86_64-unknown-linux-musl platforms=(musllinux_1_1_x86_64 musllinux_1_2_x86_64)
}
# source_of FILE SHA256: downloads a source from Debian's pool, checks it and unpacks it.
source_of() {
    curl -fsS -O "http://deb.debian.org/debian/pool/main/$1"
    sha256sum --quiet --check <<<"$2  ${1##*/}"
    tar -xf "${1##*/}"
}
build_python() {
    # The libraries from Alpine in pyzmq's wheel need musl 1.2.4 or newer.
    mmdebstrap --quiet --variant=extract --architectures=amd64 --include=musl trixie loader
    source_of libf/libffi/libffi_3.4.4.orig.tar.gz d66c56ad259a82cf2a9dfc408b32bf5da52371500b84745f7fb8b645712df676
    source_of p/python3.13/python3.13_3.13.5.orig.tar.xz 93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640
    # Adds the kernel's headers, which musl-gcc does not have, but not glibc's headers. Changes the multiarch name from glibc's to musl's.
    mkdir kernel
    ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" kernel
    cat >cc <<SH
#!/bin/sh
case " \$* " in *print-multiarch*) echo x86_64-linux-musl ;; *) exec musl-gcc -idirafter '$PWD/kernel' "\$@" ;; esac
SH
    chmod +x cc
    (cd libffi-3.4.4 && ./configure --quiet CC="$PWD/../cc" CFLAGS=-O1 --disable-shared --with-pic --disable-docs \
        --disable-multi-os-directory --prefix="$PWD/../ffi" && make -s -j"$(nproc)" install)
    cd Python-3.13.5
    PKG_CONFIG=false LIBFFI_CFLAGS="-I$PWD/../ffi/include" LIBFFI_LIBS="-L$PWD/../ffi/lib -lffi" \
        ./configure --quiet CC="$PWD/../cc" CFLAGS=-O1 --without-ensurepip --disable-test-modules
    make -s -j"$(nproc)"
}

# ---- tests of each wheel

# runs ARGUMENT...: runs that Python. The folder of user packages has its packages.
runs() { env -u PYTHONPATH PYTHONUSERBASE="$work/$system" PYTHONDONTWRITEBYTECODE=1 timeout 600 "${python[@]}" "$@"; }

installed() {
    local name options=()
    for name in "${platforms[@]}"; do options+=(--platform "$name"); done
    "$tools/bin/pip" --disable-pip-version-check --quiet install --target "$work/$system/lib/python3.13/site-packages" --no-deps \
        --only-binary :all: --implementation cp --python-version 3.13 "${options[@]}" pyzmq==27.1.0 "$wheel"
}
pyzmq_on_it() { [[ $(runs "$here/exchange.py" | tee /dev/stderr) == "$machine True True" ]]; }
told() { runs -m tautline_zmq status | tee /dev/stderr | grep -F "pyzmq 27.1.0 runs on Tautline"; }
off_by_variable() { [[ $(TAUTLINE_PYZMQ=0 runs "$here/exchange.py" | tee /dev/stderr) == "$machine False False" ]]; }
off_and_on() {
    runs -m tautline_zmq off
    [[ $(runs "$here/exchange.py" | tee /dev/stderr) == "$machine False False" ]]
    runs -m tautline_zmq on
    [[ $(runs "$here/exchange.py" | tee /dev/stderr) == "$machine True True" ]]
}

for system in "${systems[@]}"; do
    "$system"
    wheel=${WHEEL:-$(TAGS=py3-none packaging/python/build.sh "$target")}
    check 'installed by pip' installed
    check 'pyzmq runs on it' pyzmq_on_it
    check 'status shows Tautline' told
    check 'the variable turns it off' off_by_variable
    check 'off and on' off_and_on
done
echo "wheel: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
