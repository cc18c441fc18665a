#!/usr/bin/env bash
# `taut bridge` between unmodified pyzmq programs and real NATS servers, alone and a cluster of three: what it forwards, what it keeps when
# a part is killed with SIGKILL or cut off, and what it says of a wrong file. docs/use/jetstream.md has the promises.
#
#   tests/tools/bridge/run.sh                 five kills of each kind
#   tests/tools/bridge/run.sh --short         two, without the longest cases; what `make test` runs
#   tests/tools/bridge/run.sh --long          200 kills of each kind; KILLS=50 as many; MINUTES=10 no new ones after so long
#   tests/tools/bridge/run.sh [--long] WORD   only the cases with WORD in their names
#   tests/tools/bridge/run.sh --speed [N]     each route beside NATS alone, N pairs each (5), as docs/results/jetstream.md has them
#
# Ends with a table promise | killed | kills | sent | lost | doubled, and `bridge: N passed, N failed, N skipped`. Network namespaces and
# small disks need root: without it, their cases are skipped.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")

kills=${KILLS:-5} short='' speed='' words=()
for argument in "$@"; do
    case $argument in
        --long) kills=${KILLS:-200} ;;
        --short) kills=2 short=1 ;;
        --speed) speed=1 ;;
        *) words+=("$argument") ;;
    esac
done
"$root/scripts/need.sh" cargo:cargo cc:gcc ip:iproute2
NATS_SERVER=$("$root/tests/lib/nats-server.sh")
if [[ $speed ]]; then
    cd "$root"
    cargo build --release -p tautline-cli --features bridge
    cargo build --release -p tautline-bridge --example speed
    exec "$target/release/examples/speed" "$NATS_SERVER" "$target/release/taut" "$target/beyond/speed" ${words[@]+"${words[@]}"}
fi
. "$root/tests/lib/venv.sh"
TAUT=$("$root/tests/lib/build.sh" programs)/taut
export NATS_SERVER TAUT KILLS=$kills
# A short path, for sockets of `ipc`.
work=$(mktemp -d /tmp/taut-bridge.XXXXXX)
trap 'rm -rf "$work"' EXIT
options=()
for word in ${words[@]+"${words[@]}"}; do options+=(--word "$word"); done
[[ -z $short || ${#words[@]} -gt 0 ]] || options=(-m "not long")
TEST_TIMEOUT=${TEST_TIMEOUT:-$((300 + 30 * kills))} run_pytest bridge tests/tools/bridge/run.sh "$here" --basetemp "$work/t" \
    -n 4 --dist worksteal ${options[@]+"${options[@]}"}
