#!/usr/bin/env bash
# Installs Tautline and goes back, as users do:
# - `make build`, `make install` and `make uninstall`
# - programs that are built against the installation, in each way
# - each way to put Tautline under an existing program, and back (docs/start/install.md)
# - the output of scripts/need.sh on other machines
#
#   tests/ship/install/run.sh            all
#   tests/ship/install/run.sh WORD...    the checks whose names contain one of these, after the first installation
#
# Checks that need another user or a private /etc run as root only, and are skipped otherwise. Ends with
# `install: N passed, N failed, N skipped`.
# shellcheck disable=SC2046 # the output of pkg-config is several words
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cd "$root"
scripts/need.sh cargo:cargo gcc:gcc make:make pkg-config:pkg-config cmake:cmake g++:g++ gdb:gdb readelf:binutils python3:python3 \
    py=ensurepip:python3-venv >&2
# In a separate folder, so that target/release stays unchanged.
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")/test/install
export CARGO_TARGET_DIR=$target
work=$(mktemp -d "${TMPDIR:-/tmp}/install.XXXXXX")
chmod 755 "$work"
user=
clean_up() {
    [[ -z $user ]] || userdel -r "$user" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap clean_up EXIT
prefix=$work/usr
words=("$@")
passed=0 failed=0 skipped=0
unset DRAFTS DESTDIR LIBDIR PREFIX # the checks begin with the defaults
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)

. tests/lib/check.sh
check() { # check NAME COMMAND...
    local name=$1 word
    shift
    if [[ ${#words[@]} -gt 0 && $passed -gt 1 ]]; then
        for word in "${words[@]}"; do [[ $name != *"$word"* ]] || break; done
        [[ $name == *"$word"* ]] || return 0
    fi
    run_check install "$name" "tests/ship/install/run.sh '$name'" "$@"
}
fails() { ! "$@"; }

check 'make build' make --no-print-directory build
check 'make install' make --no-print-directory install PREFIX="$prefix"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig

cat >"$work/main.c" <<'C'
#include <zmq.h>
#include <stdio.h>
int main(void)
{
    int major, minor, patch;
    void *context = zmq_ctx_new();
    zmq_version(&major, &minor, &patch);
    printf("%d.%d.%d\n", major, minor, patch);
    return context == NULL || zmq_ctx_term(context) != 0;
}
C

# A program that needs the draft interface, and compiles only if the header announces the drafts.
cat >"$work/drafts.c" <<'C'
#include <zmq.h>
#ifndef ZMQ_BUILD_DRAFT_API
#error "the draft interface is not announced"
#endif
int main(void)
{
    void *context = zmq_ctx_new(), *server = zmq_socket(context, ZMQ_SERVER);
    int bad = zmq_has("draft") != 1 || zmq_disconnect_peer(server, 1) != -1 || zmq_errno() != EHOSTUNREACH;
    return zmq_close(server) != 0 || zmq_ctx_term(context) != 0 || bad;
}
C

# In a pipe, use `grep >/dev/null` instead of `grep -q`: `grep -q` exits at the first match, and a program that then writes fails.
shared() { # built by pkg-config, loaded from the prefix
    gcc "$work/main.c" -o "$work/shared" $(pkg-config --cflags --libs libzmq) &&
        ldd "$work/shared" | grep 'libzmq\.so\.5' >/dev/null &&
        [[ $(LD_LIBRARY_PATH=$prefix/lib "$work/shared") == "$(pkg-config --modversion libzmq)" ]]
}
static() {
    gcc "$work/main.c" -o "$work/static" -I"$prefix/include" "$prefix/lib/libzmq.a" \
        $(sed -n 's/^Libs.private://p' "$prefix/lib/pkgconfig/libzmq.pc") &&
        ! ldd "$work/static" | grep libzmq >/dev/null && "$work/static"
}
alone() { # without any shared library
    gcc "$work/main.c" -o "$work/alone" -static $(pkg-config --static --cflags --libs libzmq) &&
        ! readelf -dW "$work/alone" | grep NEEDED && [[ $("$work/alone") == 4.3.5 ]]
}
with_cmake() {
    mkdir -p "$work/cmake" && cp "$work/main.c" "$work/cmake/"
    cat >"$work/cmake/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.10)
project(user C)
find_package(ZeroMQ 4.3 REQUIRED)
foreach(variable ZeroMQ_FOUND ZeroMQ_INCLUDE_DIR ZeroMQ_LIBRARY ZeroMQ_STATIC_LIBRARY)
  if(NOT ${variable})
    message(FATAL_ERROR "${variable} is not set")
  endif()
endforeach()
add_executable(with_shared main.c)
target_link_libraries(with_shared libzmq)
add_executable(with_static main.c)
target_link_libraries(with_static libzmq-static)
add_executable(alone main.c)
target_link_libraries(alone libzmq-static -static)
add_executable(with_namespace main.c)
target_link_libraries(with_namespace ZeroMQ::libzmq)
add_executable(with_static_namespace main.c)
target_link_libraries(with_static_namespace ZeroMQ::libzmq-static)
add_executable(with_variables main.c)
target_include_directories(with_variables PRIVATE ${ZeroMQ_INCLUDE_DIR})
target_link_libraries(with_variables ${ZeroMQ_LIBRARY})
CMAKE
    cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$work/cmake/build" &&
        for program in with_shared with_static alone with_namespace with_static_namespace with_variables; do "$work/cmake/build/$program" || return 1; done
}
# builds_drafts OPTION...: compiles drafts.c with these options and runs it. Returns 1 if it does not compile, 2 if it does not run.
builds_drafts() {
    gcc "$work/drafts.c" -o "$work/drafts" "$@" || return 1
    LD_LIBRARY_PATH=$prefix/lib "$work/drafts" || return 2
}
refused() { # refused COMMAND...: the command must end with 1
    local code=0
    "$@" || code=$?
    [[ $code -eq 1 ]]
}
drafts_by_pkg_config() { # the module libzmq-drafts announces the drafts, the module libzmq does not
    refused builds_drafts $(pkg-config --cflags --libs libzmq) && builds_drafts $(pkg-config --cflags --libs libzmq-drafts) &&
        builds_drafts -DZMQ_BUILD_DRAFT_API=1 $(pkg-config --cflags --libs libzmq)
}
# cmake_drafts FIND_PACKAGE PREFIX: builds drafts.c on both targets that find_package finds, and runs it. Returns 1 if neither
# target builds, 2 if only one target builds or a program does not run.
cmake_drafts() {
    rm -rf "$work/cmake-drafts" && mkdir -p "$work/cmake-drafts" && cp "$work/drafts.c" "$work/cmake-drafts/"
    cat >"$work/cmake-drafts/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.10)
project(user C)
find_package($1)
add_executable(with_shared drafts.c)
target_link_libraries(with_shared libzmq)
add_executable(with_static drafts.c)
target_link_libraries(with_static libzmq-static)
CMAKE
    cmake -S "$work/cmake-drafts" -B "$work/cmake-drafts/build" -DCMAKE_PREFIX_PATH="$2" || return 1
    local code=0 program
    cmake --build "$work/cmake-drafts/build" -- -k || code=1
    for program in with_shared with_static; do
        if [[ $code -ne 0 ]]; then
            [[ ! -e $work/cmake-drafts/build/$program ]] || return 2
        else
            "$work/cmake-drafts/build/$program" || return 2
        fi
    done
    return "$code"
}
drafts_by_cmake() { # only the component `drafts` announces the drafts; other components are ignored
    refused cmake_drafts 'ZeroMQ 4.3 REQUIRED' "$prefix" && cmake_drafts 'ZeroMQ 4.3 REQUIRED COMPONENTS drafts' "$prefix" &&
        cmake_drafts 'ZeroMQ 4.3 REQUIRED COMPONENTS others OPTIONAL_COMPONENTS drafts' "$prefix" &&
        refused cmake_drafts 'ZeroMQ 4.3 REQUIRED COMPONENTS others' "$prefix"
}
drafts_for_everybody() { # with DRAFTS=1 the installation announces the drafts, like a libzmq that was built with them
    local announced=$work/drafts-usr
    make --no-print-directory install PREFIX="$announced" DRAFTS=1 &&
        builds_drafts $(PKG_CONFIG_PATH=$announced/lib/pkgconfig pkg-config --cflags --libs libzmq) &&
        cmake_drafts 'ZeroMQ 4.3 REQUIRED' "$announced" &&
        make --no-print-directory uninstall PREFIX="$announced" && [[ ! -e $announced ]]
}
newer_is_refused() {
    sed -i 's/ZeroMQ 4.3 REQUIRED/ZeroMQ 4.4 REQUIRED/' "$work/cmake/CMakeLists.txt"
    ! cmake -S "$work/cmake" -B "$work/cmake/build2" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1
}
uninstalled() {
    make --no-print-directory uninstall PREFIX="$prefix" && [[ ! -e $prefix ]]
}
readme() { # the first program of the README
    awk '/^```c$/ {inside = 1; next} /^```/ {inside = 0} inside' README.md >"$work/hello.c"
    gcc -Wall -Wextra -Werror -std=c89 -pedantic "$work/hello.c" -o "$work/hello" $(pkg-config --cflags --libs libzmq) &&
        LD_LIBRARY_PATH=$prefix/lib timeout 20 "$work/hello" | tee /dev/stderr | grep '^answered: Tautline.$' >/dev/null
}
check 'shared, by pkg-config' shared
check "the README's program" readme
check 'static' static
check 'static, without any shared library' alone
check 'find_package(ZeroMQ)' with_cmake
check 'find_package refuses a newer version' newer_is_refused
check 'drafts by pkg-config' drafts_by_pkg_config
check 'drafts by find_package' drafts_by_cmake
check 'drafts announced to every program' drafts_for_everybody
. "$here/places.sh"
. "$here/ways.sh"
. "$here/others.sh"
. "$here/languages.sh"
check 'make uninstall leaves no file' uninstalled
echo "install: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
