#!/usr/bin/env bash
# Unmodified programs, pyzmq, Node.js and C, under the policies of docs/policy.md: what is refused, warned of and wrapped; and where keys
# must not be found. And docs/security.md, followed as a reader would (`page.py`).
#
#   tests/tools/policy/run.sh               builds and uses target/release/libzmq.so, and taut
#   tests/tools/policy/run.sh LIBRARY WORD  another one; only the cases with WORD in their names, or `page`
#
# Ends with the counts of both.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
if [[ $(uname) != Linux ]]; then
    echo "policy: 0 passed, 0 failed, 1 skipped"
    exit
fi
[[ -n ${1:-} ]] || "$root/scripts/need.sh" cargo:cargo cc:gcc python3:python3 py=ensurepip:python3-venv --also node:nodejs npm:npm gcore:gdb
. "$root/tests/lib/venv.sh"

library=${1:-}
if [[ -z $library ]]; then
    (cd "$root" && cargo build --release -p tautline-libzmq --features tls,names)
    library=$target/release/libzmq.so
fi
work=$target/policy
rm -rf "$work"
mkdir -p "$work"
ln -sfn "$(realpath "$library")" "$work/libzmq.so.5"
gcc -std=gnu11 -O1 -Wall -Wextra -Werror -pedantic -I "$root/include" "$here/peer.c" "$work/libzmq.so.5" -Wl,-rpath,"$work" -o "$work/peer"

# The npm package zeromq. Without the registry, or without Node.js, the other languages go on alone.
node=$target/policy-node/zeromq-6.8.0
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    node=
elif [[ ! -e $node/.complete ]]; then
    mkdir -p "$node"
    (cd "$node" && npm install --silent --ignore-scripts --no-save --prefix . zeromq@6.8.0 && touch .complete) >"$work/npm.log" 2>&1 || node=
fi
[[ -n $node ]] || echo "policy: without Node.js: it, npm and the package zeromq are needed"

export PYTHONDONTWRITEBYTECODE=1
library=$(readlink -f "$library") taut=$target/debug/taut code=0
(cd "$root" && cargo whole-programs)
if [[ ${2:-page} == page ]]; then
    "$venv/bin/python" "$here/page.py" "$root/docs/security.md" "$library" "$taut" "$work/page" || code=1
fi
if [[ ${2:-} != page ]]; then
    "$venv/bin/python" "$here/cases.py" "$library" "$work/peer" "$node" "$taut" "$work" "${@:2}" || code=1
fi
exit $code
