#!/usr/bin/env bash
# Runs libzmq 4.3.5's own behaviour tests, built for Windows, on a libzmq.dll under wine.
#
#   tests/wire/upstream/windows.sh LIBDIR                 the library in LIBDIR, where there is libzmq.dll.a too
#   tests/wire/upstream/windows.sh baseline               libzmq 4.3.5 itself, built with MinGW, for reference
#   tests/wire/upstream/windows.sh LIBDIR test_name       one program, its output shown
#   tests/wire/upstream/windows.sh LIBDIR 'test_re*' ...  several programs, by shell pattern
#
# The programs are those with libzmq's draft interface, except those that need features missing from Windows: windows-build.sh.
# `cargo xtask cross x86_64-pc-windows-gnu upstream` makes the library and wine's folder, target/cross/wine, and runs this.
#
# Each program runs in a network namespace of its own, where wine has a copy of that folder and a server of its own: a server's
# sockets are those of its namespace. Results go to target/upstream/windows/results.tsv, and the exit code is 0 when every program that
# failed is listed, with its reason, in windows-expected.tsv. JOBS, LIMIT and RETRY are those of run.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
export OUT=$target/upstream/windows WINE=$target/cross/wine START=$root/tests/ship/cross/wine.sh
results=$OUT/results.tsv logs=$OUT/log
expected=("$here/windows-expected.tsv")
# Debian has it where the PATH has not.
SERVER=$(command -v wineserver || echo /usr/lib/wine/wineserver64)
export SERVER LIMIT=${LIMIT:-120}
jobs=${JOBS:-2}
. "$here/rows.sh"

[[ $# -gt 0 && -e $WINE/stamp ]] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
export SCRIPT=tests/wire/upstream/windows.sh GIVEN=$1
LIBDIR=$1
if [[ $1 == baseline ]]; then
    "$here/windows-build.sh" baseline
    LIBDIR=$OUT/lib
fi
LIBDIR=$(realpath "$LIBDIR")
"$here/windows-build.sh" "$LIBDIR/libzmq.dll.a"
shift

# Beside wine's folder: its files are linked, not copied.
mkdir -p "$OUT/run"
WORK=$(mktemp -d "$OUT/run/XXXXXX")
trap 'rm -rf "$WORK"' EXIT
export LIBDIR WORK
namespaces

program() {
    local directory code=0
    directory=$(mktemp -d "$WORK/run.XXXXXX")
    cp -al "$WINE" "$directory/wine"
    # A program takes the library that lies beside it.
    mkdir "$directory/bin"
    cp "$OUT/bin/$1.exe" "$LIBDIR/libzmq.dll" "$directory/bin"
    cd "$directory"
    within "$1" "'$START' wine bin/$1.exe" || code=$?
    cd "$WORK"
    WINEPREFIX=$directory/wine/prefix "$SERVER" -k || true
    rm -rf "$directory"
    return "$code"
}
export -f program

names=$(cd "$OUT/bin" && printf '%s\n' *.exe | sed 's/\.exe$//')
if [[ $# -eq 1 ]] && grep -qxF "$1" <<<"$names"; then
    code=0
    program "$1" || code=$?
    echo "upstream: $1 on $LIBDIR/libzmq.dll: exit code $code"
    exit "$code"
fi
[[ $# -eq 0 ]] || results=''
names=$(chosen "$names" "$@")

echo "upstream: $(wc -w <<<"$names") programs on $LIBDIR/libzmq.dll under wine, $jobs at a time, $LIMIT s each"
run_all "$names"
