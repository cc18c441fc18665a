#!/usr/bin/env bash
# Unmodified programs, pyzmq and C, under the policies of docs/policy.md: what is refused, warned of and wrapped. And docs/security.md,
# followed as a reader would (`page.py`).
#
#   tests/policy/run.sh               builds and uses target/release/libzmq.so, and taut
#   tests/policy/run.sh LIBRARY WORD  another one; only the cases with WORD in their names, or `page`
#
# Ends with the counts of both.
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
    (cd "$root" && cargo build --release -p tautline-libzmq)
    library=$target/release/libzmq.so
fi
work=$target/policy
rm -rf "$work"
mkdir -p "$work"
ln -sfn "$(realpath "$library")" "$work/libzmq.so.5"
gcc -std=gnu11 -O1 -Wall -Wextra -Werror -pedantic -I "$root/include" "$here/peer.c" "$work/libzmq.so.5" -Wl,-rpath,"$work" -o "$work/peer"
export PYTHONDONTWRITEBYTECODE=1
library=$(readlink -f "$library") code=0
if [[ ${2:-page} == page ]]; then
    (cd "$root" && cargo build -p tautline-cli)
    "$venv/bin/python" "$here/page.py" "$root/docs/security.md" "$library" "$target/debug/taut" "$work/page" || code=1
fi
if [[ ${2:-} != page ]]; then
    "$venv/bin/python" "$here/cases.py" "$library" "$work/peer" "$work" "${@:2}" || code=1
fi
exit $code
