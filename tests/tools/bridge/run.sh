#!/usr/bin/env bash
# Runs `taut bridge` between unmodified pyzmq programs and real NATS servers: one server, or a cluster of three. The cases test the
# forwarded messages, and the errors for a wrong file. While programs are killed with SIGKILL or cut off, they test the promises of
# docs/use/jetstream.md.
#
#   tests/tools/bridge/run.sh                 five kills of each kind
#   tests/tools/bridge/run.sh --short         two kills, without the longest cases, as in `make test`
#   tests/tools/bridge/run.sh --long          200 kills of each kind; KILLS=50 sets another number; MINUTES=10 limits the time of a case
#   tests/tools/bridge/run.sh [--long] WORD   only the cases with WORD in their names
#   tests/tools/bridge/run.sh --speed [N]     measures each route beside NATS alone, N pairs each (default 5), for docs/results/jetstream.md
#
# Ends with the table promise | killed | kills | sent | lost | doubled, and `bridge: N passed, N failed, N skipped`. Network namespaces and
# small disks need root. Without root their cases are skipped.
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
# The path must be short because it contains ipc sockets.
work=$(mktemp -d /tmp/taut-bridge.XXXXXX)
trap 'rm -rf "$work"' EXIT
options=()
for word in ${words[@]+"${words[@]}"}; do options+=(--word "$word"); done
[[ -z $short || ${#words[@]} -gt 0 ]] || options=(-m "not long")
TEST_TIMEOUT=${TEST_TIMEOUT:-$((300 + 30 * kills))} run_pytest bridge tests/tools/bridge/run.sh "$here" --basetemp "$work/t" \
    -n 4 --dist worksteal ${options[@]+"${options[@]}"}
