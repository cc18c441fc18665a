#!/usr/bin/env bash
# Builds libzmq 4.3.5's own behaviour tests for Windows, with MinGW and the draft interface, into target/upstream/windows/bin.
#
#   tests/wire/upstream/windows-build.sh LIBRARY     programs linked with this import library, libzmq.dll.a
#   tests/wire/upstream/windows-build.sh baseline    libzmq.dll of libzmq itself, into target/upstream/windows/lib
#
# libzmq's CMake builds about half of the programs for Windows. This script builds all programs that MinGW compiles. They lack ipc, because
# libzmq with ipc does not compile with MinGW. The script is fast if all files exist. Several processes may call it at the same time.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
export OUT=$target/upstream/windows
mkdir -p "$OUT"/{bin,objects,platform,include/sodium}
exec 9>"$OUT/.lock"
flock 9

"$root/scripts/need.sh" cargo:cargo x86_64-w64-mingw32-g++:g++-mingw-w64-x86-64 >&2
SOURCE=$("$root/tests/wire/upstream/source.sh")
# libsodium, built for MinGW.
sodium=$("$root/tests/wire/upstream/source.sh" libsodium-sys 0.2.7 Cargo.toml)
export SOURCE SODIUM=$sodium/mingw/win64/libsodium.a
cp -ru "$sodium"/libsodium/src/libsodium/include/. "$OUT/include"
cp -u "$sodium/libsodium/builds/msvc/version.h" "$OUT/include/sodium"

# Programs that need features which Windows lacks.
left_out=(
    '*_fuzzer'                             # read a corpus from files with POSIX functions
    '*_tipc' '*_vmci' test_security_gssapi # transports and a mechanism of some Linux systems
    '*_ipc' test_ipc_wildcard              # see above
    test_fork test_zmq_ppoll_signals       # fork, signals
    test_zmq_poll_fd                       # polls descriptors that are not sockets
    test_busy_poll test_pair_tcp_cap_net_admin # ZMQ_BUSY_POLL, ZMQ_BINDTODEVICE
    test_wss_transport                     # the library of `cargo xtask cross` lacks TLS
)

# wanted NAME: true if the program is not in that list.
wanted() {
    local pattern
    for pattern in "${left_out[@]}"; do
        # shellcheck disable=SC2053 # a pattern
        if [[ $1 == $pattern ]]; then return 1; fi
    done
}

flags=(-w -O1 -DZMQ_CUSTOM_PLATFORM_HPP -DZMQ_BUILD_DRAFT_API -D_WIN32_WINNT=0x0A00 -DSODIUM_STATIC
    -DUNITY_EXCLUDE_FLOAT -DUNITY_USE_COMMAND_LINE_ARGS
    -I"$OUT"/{platform,include} -I"$SOURCE"/{include,src,external/unity,tests})
export FLAGS="${flags[*]@Q}"

# object FILE: compiles a source file, unless its object exists.
object() {
    local object name=${1##*/} compiler=x86_64-w64-mingw32-g++
    object=$OUT/objects/${name%.*}.o
    [[ $name != *.c ]] || compiler=x86_64-w64-mingw32-gcc
    if [[ ! -e $object ]]; then
        eval "$compiler $FLAGS -c -o '$object.new' '$1'" && mv "$object.new" "$object"
    fi
}
export -f object

programs() {
    local name names=() sources=("$SOURCE"/tests/testutil*.cpp "$SOURCE"/src/{err,random,clock}.cpp "$SOURCE/external/unity/unity.c")
    cat > "$OUT/platform/platform.hpp" <<'HPP'
#define ZMQ_HAVE_WINDOWS
#define ZMQ_HAVE_CURVE
#define ZMQ_USE_LIBSODIUM
#define ZMQ_HAVE_WS
#define ZMQ_USE_CV_IMPL_WIN32API
#define ZMQ_IOTHREAD_POLLER_USE_SELECT
#define ZMQ_POLL_BASED_ON_SELECT
#define ZMQ_CACHELINE_SIZE 64
HPP
    for name in "$SOURCE"/tests/test_*.cpp; do
        name=$(basename "$name" .cpp)
        if wanted "$name"; then
            sources+=("$SOURCE/tests/$name.cpp")
            names+=("$name")
        fi
    done
    printf '%s\0' "${sources[@]}" | xargs -0 -P "${BUILD_JOBS:-2}" -I{} bash -c 'object {}' || return
    for name in "${names[@]}"; do
        [[ ! $OUT/bin/$name.exe -nt $1 ]] || continue
        x86_64-w64-mingw32-g++ -o "$OUT/bin/$name.exe" "$OUT/objects/$name.o" "$OUT"/objects/{testutil*,unity,err,random,clock}.o \
            "$1" "$SODIUM" -static -lpthread -lws2_32 -ladvapi32 || return
        echo "linked $name"
    done
}

baseline() {
    local build=$OUT/build
    # IN_WINPTHREAD: MinGW's pthread.h would misinterpret libzmq's macro DLL_EXPORT as its own.
    cmake -S "$SOURCE" -B "$build" -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_VERSION=10.0 -DCMAKE_SYSTEM_PROCESSOR=x86_64 \
        -DCMAKE_C_COMPILER=x86_64-w64-mingw32-gcc -DCMAKE_CXX_COMPILER=x86_64-w64-mingw32-g++ \
        -DCMAKE_RC_COMPILER=x86_64-w64-mingw32-windres -DCMAKE_BUILD_TYPE=Release -DCMAKE_SHARED_LINKER_FLAGS=-static \
        -DBUILD_SHARED=ON -DBUILD_STATIC=OFF -DBUILD_TESTS=OFF -DWITH_DOCS=OFF -DWITH_PERF_TOOL=OFF -DENABLE_DRAFTS=ON \
        -DENABLE_CURVE=ON -DWITH_LIBSODIUM=ON -DWITH_LIBSODIUM_STATIC=ON -DSODIUM_INCLUDE_DIRS="$OUT/include" \
        -DSODIUM_LIBRARIES="$SODIUM" -DZMQ_CV_IMPL=win32api -DZMQ_HAVE_IPC=OFF -DCMAKE_CXX_FLAGS=-DIN_WINPTHREAD &&
        cmake --build "$build" -j "${BUILD_JOBS:-2}" &&
        mkdir -p "$OUT/lib" && cp "$build"/lib/libzmq.dll.a "$build"/bin/libzmq.dll "$OUT/lib"
}

. "$root/scripts/step.sh"
log=$OUT/build.log
if [[ $1 == baseline ]]; then
    [[ ! -e $OUT/lib/libzmq.dll ]] || exit 0
    "$root/scripts/need.sh" cmake:cmake pkg-config:pkg-config >&2
    step "upstream: building libzmq 4.3.5 for Windows" "$log" baseline >&2
else
    step "upstream: building libzmq 4.3.5's tests for Windows" "$log" programs "$(realpath "$1")" >&2
fi
