#!/usr/bin/env bash
# Runs a program for Windows under wine: tests/ship/cross/wine.sh FOLDER PROGRAM [ARGUMENT...]
#
# FOLDER has wine's own files, and a bcryptprimitives.dll built from prng.c. Rust's standard library takes random bytes from a function of
# this DLL, which wine has only since version 9.
set -euo pipefail

folder=$(realpath "$1")
shift
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)
export WINEPREFIX=$folder/prefix WINEDEBUG=${WINEDEBUG:--all} WINEDLLOVERRIDES='mscoree,mshtml=;bcryptprimitives=n,b'
export WINEPATH="Z:${folder//\//\\}"
exec "$wine" "$@"
