#!/usr/bin/env bash
# Compares the events of zmq_socket_monitor, and the results of the calls around them, in about two hundred situations. The events
# of libzmq 4.3.5 are recorded in libzmq-4.3.5.tsv.
#
#   tests/abi/events/run.sh                 compares the shared library of the suites
#   tests/abi/events/run.sh LIBDIR          compares the libzmq.so.5, or else libzmq.so, in LIBDIR
#   tests/abi/events/run.sh LIBDIR NAME     plays the situations whose names begin with NAME, and prints their lines
#   tests/abi/events/run.sh record          plays libzmq 4.3.5 and rewrites its table: version 1 of the events on the stable
#                                       library, version 2 on a library with drafts and WebSocket
#
# differences.tsv has the permitted differences, each line with its reason, which is a row of docs/reference/events.md. After a
# change, `tests/abi/events/compare.py --write` rewrites it from the last run. New lines have the reason `?`. Ends with
# `events: N passed, N failed, N skipped`; exit code 0 if every check passed or was skipped.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/events
mkdir -p "$out"
TMPDIR=$(mktemp -d /tmp/events.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# build LIBRARY: builds the program for any library. It runs without the parts of the draft interface that the library lacks.
build() {
    "${CC:-cc}" -std=gnu11 -Wall -Wextra -Werror -O1 -I "$root/include" "$here"/*.c "$1" -pthread -o "$out/events"
}

# play LIBDIR VERSION [NAME]: prints the table of the library in LIBDIR.
play() {
    LD_LIBRARY_PATH=$1 timeout 1800 "$out/events" "${@:2}"
}

if [[ ${1:-} == record ]]; then
    "$root/scripts/libzmq-baseline.sh"
    "$root/scripts/libzmq-baseline.sh" --ws
    stable=$target/baseline/libzmq/lib drafts=$target/baseline/libzmq-ws/lib
    build "$drafts/libzmq.so.5"
    # libzmq aborts in one situation, as the table shows.
    { play "$stable" 1 && play "$drafts" 2; } >"$out/recorded.tsv"
    mv "$out/recorded.tsv" "$here/libzmq-4.3.5.tsv"
    wc -l "$here/libzmq-4.3.5.tsv"
    exit
fi

libdir=${1:-}
[[ -n $libdir ]] || libdir=$("$root/tests/lib/build.sh" library)
libdir=$(cd "$libdir" && pwd)
if [[ ! -e $libdir/libzmq.so.5 ]]; then
    ln -sf "$libdir/libzmq.so" "$out/libzmq.so.5"
    libdir=$out
fi
build "$libdir/libzmq.so.5"
if [[ -n ${2:-} ]]; then
    play "$libdir" 1 "$2"
    play "$libdir" 2 "$2"
    exit
fi
{ play "$libdir" 1 && play "$libdir" 2; } >"$out/played.tsv"
exec "$here/compare.py"
