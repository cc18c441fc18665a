#!/usr/bin/env bash
# Runs libzmq 4.3.5's own behaviour tests, built for Windows, on a libzmq.dll under wine.
#
#   tests/wire/upstream/windows.sh LIBDIR                 the library in LIBDIR, which also has libzmq.dll.a
#   tests/wire/upstream/windows.sh baseline               libzmq 4.3.5 itself, built with MinGW, for reference
#   tests/wire/upstream/windows.sh LIBDIR test_name       one program, its output shown
#   tests/wire/upstream/windows.sh LIBDIR 'test_re*' ...  several programs, by shell pattern
#
# windows-build.sh builds the programs with libzmq's draft interface, and omits programs that need features missing from Windows.
# `cargo xtask cross x86_64-pc-windows-gnu upstream` creates the library and wine's folder, target/cross/wine, and runs this script.
#
# Each program runs in its own network namespace, with its own copy of wine's folder and its own wine server, because a server's sockets
# belong to its namespace. Results go to target/upstream/windows/results.tsv. The exit code is 0 if windows-expected.tsv lists each failed
# program with its reason. JOBS, LIMIT and RETRY are the variables of run.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
export OUT=$target/upstream/windows WINE=$target/cross/wine START=$root/tests/ship/cross/wine.sh
results=$OUT/results.tsv logs=$OUT/log
expected=("$here/windows-expected.tsv")
# Debian installs wineserver outside of the PATH.
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

# WORK is beside wine's folder, because the copies of this folder are hard links.
mkdir -p "$OUT/run"
WORK=$(mktemp -d "$OUT/run/XXXXXX")
trap 'rm -rf "$WORK"' EXIT
export LIBDIR WORK
namespaces

program() {
    local directory code=0
    directory=$(mktemp -d "$WORK/run.XXXXXX")
    cp -al "$WINE" "$directory/wine"
    # A program loads the library in its own folder.
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
