#!/usr/bin/env bash
# Unmodified programs, pyzmq and C, under the policies of docs/policy.md: what is refused, warned of and wrapped.
#
#   tests/policy/run.sh               builds and uses target/release/libzmq.so
#   tests/policy/run.sh LIBRARY WORD  another one; only the cases with WORD in their names
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
if [[ $(uname) != Linux ]]; then
    echo "policy: 0 passed, 0 failed, 1 skipped"
    exit
fi
[[ -n ${1:-} ]] || "$root/scripts/need.sh" cargo:cargo cc:gcc python3:python3 py=ensurepip:python3-venv
. "$root/tests/interop/venv.sh"

library=${1:-}
if [[ -z $library ]]; then
    (cd "$root" && cargo build --release -p tautline-libzmq --features tls)
    library=$target/release/libzmq.so
fi
work=$target/policy
rm -rf "$work"
mkdir -p "$work"
ln -sfn "$(realpath "$library")" "$work/libzmq.so.5"
gcc -std=gnu11 -O1 -Wall -Wextra -Werror -pedantic -I "$root/include" "$here/peer.c" "$work/libzmq.so.5" -Wl,-rpath,"$work" -o "$work/peer"
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" "$here/cases.py" "$(readlink -f "$library")" "$work/peer" "$work" "${@:2}"
