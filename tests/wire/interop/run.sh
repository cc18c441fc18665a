#!/usr/bin/env bash
# Interoperability: our library against libzmq 4.3.5 (the one in the pyzmq wheel, and one with WebSocket) and against peers from raw bytes.
#
#   tests/wire/interop/run.sh                     our library, which it builds
#   tests/wire/interop/run.sh LIBRARY             another libzmq.so.5 in our place, to check the tests themselves
#   tests/wire/interop/run.sh LIBRARY WORD...     only the cases whose name contains a WORD
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
[[ -n ${1:-} ]] || "$root/scripts/need.sh" cargo:cargo cc:gcc
. "$root/tests/lib/venv.sh"

library=${1:-$("$root/tests/lib/build.sh" library)/libzmq.so.5}
reference=$("$root/tests/lib/build.sh" baseline)/libzmq.so.5
words=("${@:2}")
# The cases mostly wait, so several run at a time, in processes of their own.
run_pytest interop "tests/wire/interop/run.sh ''" "$here" -n 4 --assert plain --library "$(realpath "$library")" \
    --reference "$reference" "${words[@]/#/--word=}"
