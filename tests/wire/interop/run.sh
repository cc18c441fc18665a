#!/usr/bin/env bash
# Tests the interoperability of our library with libzmq 4.3.5 (the build in the pyzmq wheel, and a build with WebSocket), and with peers
# from raw bytes.
#
#   tests/wire/interop/run.sh                     our library, which the script builds
#   tests/wire/interop/run.sh LIBRARY             another libzmq.so.5 in our place, to check the tests themselves
#   tests/wire/interop/run.sh LIBRARY WORD...     only the cases with a WORD in their name
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
[[ -n ${1:-} ]] || "$root/scripts/need.sh" cargo:cargo cc:gcc
. "$root/tests/lib/venv.sh"

library=${1:-$("$root/tests/lib/build.sh" library)/libzmq.so.5}
reference=$("$root/tests/lib/build.sh" baseline)/libzmq.so.5
words=("${@:2}")
# The cases mostly wait, so several cases run in parallel processes.
run_pytest interop "tests/wire/interop/run.sh ''" "$here" -n 4 --assert plain --library "$(realpath "$library")" \
    --reference "$reference" "${words[@]/#/--word=}"
