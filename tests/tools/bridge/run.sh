#!/usr/bin/env bash
# `taut bridge` between unmodified pyzmq programs and real NATS servers, alone and a cluster of three: what it forwards, what it keeps when
# one of them is killed with SIGKILL or cut off, and what it says of a file that is wrong. docs/beyond.md has the promises.
#
#   tests/tools/bridge/run.sh                 a handful of kills of each kind
#   tests/tools/bridge/run.sh --short         one or two, a cluster only once; what `make test` runs
#   tests/tools/bridge/run.sh --long          200 kills of each kind; KILLS=50 as many; MINUTES=10 no new ones after so long
#   tests/tools/bridge/run.sh [--long] WORD   only the cases with WORD in their names
#   tests/tools/bridge/run.sh --speed [N]     each route beside NATS alone, N pairs each (5), as docs/results/beyond.md has them
#
# Ends with a table promise | killed | kills | sent | lost | doubled, and `beyond: N passed, N failed, N skipped`. Where no nats-server can be
# had, everything is skipped. Network namespaces and small disks are for root; without, those cases are skipped.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")

kills=${KILLS:-5} speed='' words=()
for argument in "$@"; do
    case $argument in
        --long) kills=${KILLS:-200} ;;
        --short) kills=short ;;
        --speed) speed=1 ;;
        *) words+=("$argument") ;;
    esac
done
"$root/scripts/need.sh" cargo:cargo cc:gcc python3:python3 py=ensurepip:python3-venv --also ip:iproute2
if ! server=$("$here/nats-server.sh"); then
    echo "beyond: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
cd "$root"
if [[ $speed ]]; then
    cargo build --release -p tautline-cli --features bridge
    cargo build --release -p tautline-bridge --example speed
    exec "$target/release/examples/speed" "$server" "$target/release/taut" "$target/beyond/speed" ${words[@]+"${words[@]}"}
fi
. "$root/tests/lib/venv.sh"
client=$target/beyond/nats-py-2.16.0
if [[ ! -e $client/.complete ]]; then
    "$venv/bin/pip" --quiet --disable-pip-version-check install --no-deps --target "$client" nats-py==2.16.0
    touch "$client/.complete"
fi
cargo whole-programs
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$client
exec "$venv/bin/python" "$here/main.py" "$server" "$target/debug/taut" "$target/beyond/work" "$kills" ${words[@]+"${words[@]}"}
