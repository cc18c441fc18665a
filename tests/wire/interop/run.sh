#!/usr/bin/env bash
# Interoperability: our library against libzmq 4.3.5 (the one in the pyzmq wheel) and against peers from raw bytes.
#
#   tests/wire/interop/run.sh              ours: builds (with TLS) and uses target/release/libzmq.so
#   tests/wire/interop/run.sh LIBRARY      another libzmq.so.5 in our place, to check the tests themselves
#   tests/wire/interop/run.sh LIBRARY sub  only the cases whose name contains "sub"
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
[[ -n ${1:-} ]] || "$root/scripts/need.sh" cargo:cargo cc:gcc python3:python3 py=ensurepip:python3-venv
. "$here/venv.sh"

library=${1:-}
if [[ -z $library ]]; then
    (cd "$root" && cargo build --release -p tautline-libzmq --features tls,names)
    library=$target/release/libzmq.so
fi
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" "$here/main.py" "$(readlink -f "$library")" "${@:2}"
