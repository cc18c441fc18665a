#!/usr/bin/env bash
# Tries the recipes of packaging/recipes, each with its own tool. If the tool is not available, stand-ins replace its functions.
#
#   tests/ship/distro/recipes.sh [NAME...]   conan, conda, vcpkg, homebrew
#
# The recipes use a built library: LIBRARIES=DIR has it, by default the folder of the library that the suites share. Ends with
# `recipes: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cd "$root"
scripts/need.sh cargo:cargo gcc:gcc make:make cmake:cmake pkg-config:pkg-config ruby:ruby patchelf:patchelf python3:python3 \
    py=ensurepip:python3-venv >&2
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
libraries=$(realpath "${LIBRARIES:-$("$root/tests/lib/build.sh" library)}")
work=$(mktemp -d "${TMPDIR:-/tmp}/recipes.XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

tools=$target/systems/recipes/$(sha1sum <"$here/requirements.txt" | cut -c1-12)
if [[ ! -e $tools/.complete ]]; then
    echo "recipes: installing Conan and rattler-build into $tools" >&2
    rm -rf "$target/systems/recipes"
    python3 -m venv "$tools"
    "$tools/bin/pip" --disable-pip-version-check install --quiet -r "$here/requirements.txt" >&2
    touch "$tools/.complete"
fi

# The recipes call make, which finds the built library in this folder, and which gets a cargo that ignores `build`.
mkdir -p "$work/target/release"
cp "$libraries/libzmq.a" "$work/target/release/"
cp "$(ls "$libraries/libzmq.so.5" "$libraries/libzmq.so" 2>/dev/null | head -n 1)" "$work/target/release/libzmq.so"
printf '#!/bin/sh\n[ "$1" = build ] || exec "%s" "$@"\n' "$(command -v cargo)" >"$work/cargo"
chmod +x "$work/cargo"
built() { env CARGO="$work/cargo" CARGO_TARGET_DIR="$work/target" "$@"; }

runs_there() { # runs_there PREFIX: builds the README's program by CMake and by pkg-config, and runs it
    local prefix=$1
    mkdir -p "$prefix.program"
    awk '/^```c$/ {inside = 1; next} /^```/ {inside = 0} inside' README.md >"$prefix.program/hello.c"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.10)' 'project(hello C)' 'find_package(ZeroMQ 4.3 REQUIRED)' \
        'add_executable(hello hello.c)' 'target_link_libraries(hello libzmq)' >"$prefix.program/CMakeLists.txt"
    cmake -S "$prefix.program" -B "$prefix.program/build" -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$prefix.program/build"
    "$prefix.program/build/hello" | grep '^answered: Tautline\.$'
    # shellcheck disable=SC2046 # several words
    gcc "$prefix.program/hello.c" -o "$prefix.program/hello" $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs libzmq)
    LD_LIBRARY_PATH=$prefix/lib "$prefix.program/hello" | grep '^answered: Tautline\.$'
}

conan() {
    export CONAN_HOME=$work/conan
    local shared
    cp -r packaging/recipes/conan/test_package "$work/test_package"
    "$tools/bin/conan" profile detect
    for shared in True False; do
        "$tools/bin/conan" create packaging/recipes/conan --test-folder="$work/test_package" -o "tautline/*:shared=$shared" \
            -c "user.tautline:libraries=$work/target/release" 2>&1 | tee "$work/said"
        grep '^answered: answer$' "$work/said"
    done
}
conda() {
    local package
    package=$(built "$tools/bin/python" "$here/conda.py" packaging/recipes/conda/recipe.yaml "$work/conda")
    mkdir -p "$work/unpacked" "$work/conda-prefix"
    python3 -m zipfile -e "$package" "$work/unpacked"
    tar -C "$work/conda-prefix" --zstd -xf "$work"/unpacked/pkg-*.tar.zst
    [[ -f $work/conda-prefix/lib/libzmq.so.5 && -f $work/conda-prefix/include/zmq.h ]]
}
vcpkg() {
    python3 -m json.tool packaging/recipes/vcpkg/tautline/vcpkg.json
    mkdir -p "$work/buildtrees" "$work/vcpkg"
    ln -s "$work/target" "$work/buildtrees/target"
    TAUTLINE_SOURCE=$root built cmake -DPORT="$root/packaging/recipes/vcpkg/tautline" -DPREFIX="$work/vcpkg" -DBUILD="$work/buildtrees" \
        -P "$here/vcpkg.cmake"
    [[ $(find "$work/vcpkg/share" -type f) == "$work/vcpkg/share/tautline/copyright" ]]
    runs_there "$work/vcpkg"
}
homebrew() {
    ruby -wc packaging/recipes/homebrew/tautline.rb
    built ruby "$here/formula.rb" packaging/recipes/homebrew/tautline.rb "$work/homebrew"
    runs_there "$work/homebrew"
}

[[ $# -gt 0 ]] || set -- conan conda vcpkg homebrew
for name in "$@"; do
    echo "recipes: $name"
    # The first failing step ends the check. It runs in the background, because `set -e` has no effect in a condition.
    (trap - EXIT; set -Eeuo pipefail; trap 'echo "failed: $BASH_COMMAND"' ERR; "$name") >"$work/log" 2>&1 &
    if wait $!; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name"
        tail -n 30 "$work/log"
        echo "again: tests/ship/distro/recipes.sh $name"
    fi
done
echo "recipes: $passed passed, $failed failed, 0 skipped"
[[ $failed -eq 0 ]]
