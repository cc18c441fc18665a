#!/usr/bin/env bash
# Tests wheels for other systems with a Python of that system, first without pyzmq, then with PyPI's pyzmq:
#
#   tests/ship/wheel/other.sh [SYSTEM...]                   by default all
#   WHEELS=FOLDER tests/ship/wheel/other.sh [SYSTEM...]     with existing wheels, for example target/dist
#
# | system    | Python                                                                    | wheels               |
# |-----------|---------------------------------------------------------------------------|----------------------|
# | arm64     | Debian's 3.13 for 64-bit ARM with glibc, unpacked, under qemu-user         | py3-none, cp311-abi3 |
# | arm64-3.9 | the same with 3.9                                                         | cp39-cp39            |
# | musl      | x86-64 with musl: 3.13, which musl-gcc builds here from Debian's sources  | py3-none             |
#
# packaging/python/build.sh builds the wheels. pip gets all wheels in target/wheels and must select the right one. Downloads from Debian
# and PyPI are kept in target/wheels/cache. Ends with `wheel: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cd "$root"
systems=("$@")
[[ ${#systems[@]} -gt 0 ]] || systems=(arm64 arm64-3.9 musl)
mkdir -p "${CARGO_TARGET_DIR:-target}/wheels/cache"
wheels=$(realpath "${CARGO_TARGET_DIR:-target}/wheels")
cache=$wheels/cache
passed=0 failed=0 skipped=0
work=$(mktemp -d "${TMPDIR:-/tmp}/wheel-other.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset "${!TAUTLINE_@}" "${!PYTHON@}" "${!PYZMQ@}" LD_PRELOAD LD_LIBRARY_PATH

scripts/need.sh mmdebstrap:mmdebstrap file=/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring >&2
. packaging/tools.sh
. tests/lib/check.sh
pinned_tools "$wheels/tools" packaging/python/requirements.txt

# check NAME COMMAND...
check() {
    local name=$1
    shift
    run_check wheel "$system: $name" "tests/ship/wheel/other.sh $system" "$@"
}

# ---- the Pythons; each function sets `python`, a command in which PLACE stands for the folder of an environment, and pip's names

arm64() { debian_arm64 trixie 3.13 /usr; }
arm64-3.9() { debian_arm64 bullseye 3.9 ''; }
# debian_arm64 RELEASE VERSION FOLDER: FOLDER has the C library below `lib`.
debian_arm64() {
    local place=$cache/python-$1-arm64
    scripts/need.sh qemu-aarch64-static:qemu-user-static >&2
    if [[ ! -e $place.complete ]]; then
        echo "wheel: unpacking Debian's Python $2 for 64-bit ARM into $place"
        rm -rf "$place"
        mmdebstrap --quiet --variant=extract --architectures=arm64 --include="python$2,libstdc++6" "$1" "$place" \
            http://deb.debian.org/debian >&2
        touch "$place.complete"
    fi
    version=$2 home=$place/usr/bin
    # The name of the Python is that of its script, so that it finds the environment, and so that programs can start it again.
    python=(qemu-aarch64-static -0 PLACE/bin/python -L "$place$3" "$home/python$2")
    machine=aarch64 target=aarch64-unknown-linux-gnu.2.17 platforms=(manylinux_2_17_aarch64 manylinux2014_aarch64 manylinux_2_28_aarch64)
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
    python=(env PYTHONUSERBASE=PLACE "$place/loader/usr/lib/ld-musl-x86_64.so.1" "$place/Python-3.13.5/python")
    version=3.13 home=
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

# environment FOLDER: makes an empty virtual environment. The Python for musl takes the folder as that of the user's packages.
environment() {
    local words
    mkdir -p "$1/bin" "$1/lib/python$version/site-packages"
    [[ -z $home ]] || printf 'home = %s\ninclude-system-site-packages = false\n' "$home" >"$1/pyvenv.cfg"
    printf -v words ' %q' "${python[@]//PLACE/$1}"
    printf '#!/bin/sh\nexec%s "$@"\n' "$words" >"$1/bin/python"
    chmod +x "$1/bin/python"
}

# install FOLDER PACKAGE...: pip selects a wheel of each package, by its names for this system.
install() {
    local folder=$1 platform options=()
    shift
    for platform in "${platforms[@]}"; do options+=(--platform "$platform"); done
    "$tools/bin/pip" --disable-pip-version-check --quiet install --target "$folder/lib/python$version/site-packages" --find-links "$built" \
        --only-binary :all: --implementation cp --python-version "$version" "${options[@]}" "$@"
}

# runs ARGUMENT...: runs the Python of the environment `place`.
runs() { timeout 3600 "$place/bin/python" "$@"; }

# shows TEXT ARGUMENT...: runs that Python. Its output contains TEXT. An environment without pyzmq makes `status` end with 1.
shows() {
    local text=$1 output
    shift
    output=$(trap - ERR; runs "$@" 2>&1) || true
    echo "$output"
    grep -qF -e "$text" <<<"$output"
}

# ---- tests of the wheel with the native module

# selected TAG: the installed wheel has this tag, and its files are those of RECORD.
selected() {
    python3 - "$place/lib/python$version/site-packages" "$1" <<'PY'
import base64, csv, glob, hashlib, os, sys

site, tag = sys.argv[1:]
(info,) = glob.glob(f"{site}/tautline_zmq-*.dist-info")
with open(f"{info}/WHEEL") as file:
    tags = [line.split()[1] for line in file if line.startswith("Tag:")]
print(*tags)
assert tags and all(one.startswith(tag + "-") for one in tags), tag
listed = 0
with open(f"{info}/RECORD", newline="") as file:
    for path, checksum, _ in csv.reader(file):
        if checksum:
            kind, value = checksum.split("=", 1)
            with open(os.path.join(site, path), "rb") as content:
                assert base64.urlsafe_b64encode(hashlib.new(kind, content.read()).digest()).rstrip(b"=").decode() == value, path
            listed += 1
print(listed, "files")
assert listed > 30
PY
}
without_pyzmq() {
    shows 'tls+tcp, curve, name, draft, tautline' -m tautline_zmq info
    shows "cannot import pyzmq: No module named 'zmq'" -m tautline_zmq status
    shows 'pip install pyzmq' -m tautline_zmq doctor
}
extras() {
    # With other versions of Python, the tests that need these packages are left out.
    [[ $version != 3.13 ]] || install "$place" anyio==4.11.0 trio==0.32.0 uvloop==0.22.1 numpy==2.3.5
}
native_tests=() pyzmq_tests=()
for file in bindings/python/tests/test_*.py; do
    name=${file##*/}
    # test_run tests the script run.sh, and pyzmq 25 has no wheels for all of these systems.
    [[ $name != test_run.py && $name != test_pyzmq_25.py ]] || continue
    if [[ $name == test_native_* ]]; then native_tests+=("${name%.py}"); else pyzmq_tests+=("${name%.py}"); fi
done
# module_tests NAME...: runs tests of bindings/python/tests, and adds their numbers to ours.
module_tests() {
    local line name names=()
    for name in "$@"; do [[ $version == 3.13 || $name != test_native_anyio ]] && names+=("$name"); done
    echo "wheel: $system: tests of the module: ${names[*]}"
    (cd bindings/python/tests && PATIENCE=600 runs -m summary "${names[@]}") >"$work/log" 2>&1 || true
    line=$(grep -E '^python: [0-9]+ passed' "$work/log" || echo "python: 0 passed, 1 failed, 0 skipped")
    [[ $line == *' 0 failed,'* ]] || { echo "FAILED the tests of the module" && cat "$work/log" && echo "again: tests/ship/wheel/other.sh $system"; }
    grep '^skipped ' "$work/log" || true
    echo "wheel: $system: ${line#python: }"
    read -r _ passed_here _ failed_here _ skipped_here _ <<<"$line"
    passed=$((passed + passed_here)) failed=$((failed + failed_here)) skipped=$((skipped + skipped_here))
}

# ---- tests with PyPI's pyzmq

exchanges() { shows "$machine $1" "$here/exchange.py"; }
on_the_library() {
    exchanges "True True"
    shows "pyzmq 27.1.0 runs on Tautline" -m tautline_zmq status
    shows "pyzmq runs on Tautline." -m tautline_zmq doctor
}
off_by_variable() { TAUTLINE_PYZMQ=0 exchanges "False False"; }
off_and_on() {
    runs -m tautline_zmq off
    exchanges "False False"
    shows "$1" -m tautline_zmq on
    exchanges "True True"
}
on_the_backend() {
    shows "by its native backend" -m tautline_zmq status
    shows "Tautline's native backend" -m tautline_zmq doctor
}
# The figures prove nothing under an emulator.
measured() { shows "More per second is better." -m tautline_zmq bench --rounds 1 --seconds 0.2; }

for system in "${systems[@]}"; do
    "$system"
    built=${WHEELS:-$wheels}
    [[ -n ${WHEELS:-} ]] || TAGS=$([[ $system != musl ]] || echo py3-none) packaging/python/build.sh "$target" >/dev/null
    if [[ $version == 3.13 ]]; then
        # pip selects the wheel without the module only if there is no other.
        place=$work/$system-library
        mkdir "$place.wheels"
        cp "$built"/tautline_zmq-*-py3-none-*.whl "$place.wheels"
        environment "$place"
        built=$place.wheels check 'the wheel without the module' install "$place" --no-index tautline-zmq
        check 'pyzmq beside it' install "$place" pyzmq==27.1.0
        check 'its files' selected py3-none
        check 'pyzmq runs on the library' on_the_library
        check 'the variable turns it off' off_by_variable
        check 'off and on' off_and_on 'not on the native backend'
    fi
    [[ $system != musl ]] || continue
    place=$work/$system
    environment "$place"
    check 'the wheel with the module' install "$place" --no-index tautline-zmq
    check 'its files' selected "$([[ $version == 3.9 ]] && echo cp39-cp39 || echo cp311-abi3)"
    check 'info without pyzmq' without_pyzmq
    check 'packages for tests' extras
    module_tests "${native_tests[@]}"
    check 'pyzmq' install "$place" pyzmq==27.1.0
    check 'pyzmq on the library' on_the_library
    check 'off by variable' off_by_variable
    check 'off, and on with the native backend' off_and_on 'native backend, which passed a test'
    check 'pyzmq on the native backend' on_the_backend
    check 'measurements end' measured
    PYZMQ_BACKEND=tautline_zmq.backend module_tests "${pyzmq_tests[@]}"
done
echo "wheel: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
