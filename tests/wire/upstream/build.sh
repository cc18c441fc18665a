#!/usr/bin/env bash
# Builds libzmq 4.3.5 with its own behaviour tests (nothing of it enters the repository), twice: without its draft
# interface into target/upstream/stable, with it into target/upstream/draft.
#
#   tests/wire/upstream/build.sh [stable|draft]...    default: both
#
# The source is what source.sh gets. The programs are linked dynamically and without an
# rpath, so that LD_LIBRARY_PATH alone decides which libzmq.so.5 they run on. The reference libraries are in
# target/upstream/stable/lib and target/upstream/draft/lib. Quick when everything is there; safe to call from several
# processes at once.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/upstream
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9
[[ $# -gt 0 ]] || set -- stable draft
complete=.complete-4
missing=()
for set in "$@"; do [[ -e $out/$set/$complete ]] || missing+=("$set"); done
[[ ${#missing[@]} -gt 0 ]] || exit 0

"$root/scripts/need.sh" cargo:cargo cmake:cmake g++:g++ make:make pkg-config:pkg-config lib=libsodium:libsodium-dev lib=gnutls:libgnutls28-dev >&2

source=$("$root/tests/wire/upstream/source.sh")

# build SET
build() {
    local set=$1 drafts=OFF define=()
    [[ $set == stable ]] || drafts=ON define=(-DZMQ_BUILD_DRAFT_API)
    rm -rf "${out:?}/$set"
    # Unoptimised: how fast it is says nothing here, and most of the time goes into building it.
    # Without TIPC: the tests ask of zmq_has("tipc") what this build has, and hardly a kernel lets the programs for it do more than skip.
    cmake -S "$source" -B "$out/$set" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE='-O0 -DNDEBUG' \
        -DCMAKE_C_FLAGS_RELEASE='-O0 -DNDEBUG' -DBUILD_SHARED=ON -DBUILD_STATIC=OFF \
        -DBUILD_TESTS=ON -DZMQ_HAVE_TIPC=0 -DENABLE_DRAFTS=$drafts -DWITH_LIBSODIUM=ON -DENABLE_CURVE=ON -DWITH_DOCS=OFF \
        -DWITH_PERF_TOOL=OFF -DCMAKE_SKIP_RPATH=ON &&
        cmake --build "$out/$set" -j "${BUILD_JOBS:-2}" || return
    # Its CMake leaves this one out on Linux.
    g++ -std=c++11 -w -O1 -DZMQ_CUSTOM_PLATFORM_HPP -D_GNU_SOURCE -DUNITY_EXCLUDE_FLOAT "${define[@]}" -I"$out/$set" \
        -I"$source"/{include,src,external/unity,tests} -o "$out/$set/bin/test_security_curve" \
        "$source"/tests/test_security_curve.cpp "$source"/src/{err,ip,random,clock}.cpp \
        "$out/$set"/lib/lib{testutil,unity}.a -L"$out/$set/lib" -lzmq -lsodium -lpthread -lrt || return
    touch "$out/$set/$complete"
}

. "$root/scripts/progress.sh"
for set in "${missing[@]}"; do
    log=$out/$set.log
    progress "upstream: building libzmq 4.3.5 and its $set tests" "$log" build "$set" || { tail -20 "$log" >&2; exit 1; }
done
