#!/usr/bin/env bash
# Systems of other people, unmodified, on pyzmq's own libzmq and on Tautline in turns. Installs the system from PyPI into
# target/systems/SYSTEM, builds our wheel, and prints a table and the file of all results.
#
#   bench/systems/run.sh SYSTEM PLAN [PAIRS]
#   bench/systems/run.sh detector frames     detector frames of 4 MiB to four consumers by ipc
#   bench/systems/run.sh detector namespaces the same by tcp between network namespaces (as root)
#   bench/systems/run.sh ffmpeg packets      video to a subscriber that pauses, and to a fast one
#   bench/systems/run.sh jupyter kernel      lines that a slow client receives, cells a second
#   bench/systems/run.sh salt returns        returns of 1 MiB from three minions
#   bench/systems/run.sh vllm engine         tokens a second (vLLM and PyTorch: 6 GB)
#   bench/systems/run.sh vllm embeddings     requests with 60 MiB of embeddings
#   bench/systems/run.sh vllm events         a subscriber of KV-cache events that is killed, and started again
#   bench/systems/run.sh vllm stopped 1      the output of taut for an engine with a stopped core
#   bench/systems/run.sh vllm tensors        tensors from the engine to a worker
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
system=${1:-} plan=${2:-} pairs=${3:-5}
[[ -f $here/$system/$plan.toml ]] || { echo "systems: the plans are:" "$here"/*/*.toml; exit 2; }
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/systems/$system
scripts/need.sh cargo:cargo gcc:gcc python3:python3 py=ensurepip:python3-venv
mkdir -p "$out"
. scripts/step.sh

installed() {
    [[ ! -e $out/venv/.installed ]] || return 0
    rm -rf "$out/venv"
    python3 -m venv "$out/venv"
    "$here/$system/install.sh" "$out/venv/bin/pip"
    touch "$out/venv/.installed"
}
ours() { "$out/venv/bin/pip" install --no-deps --force-reinstall "$(TAGS=cp311-abi3 packaging/python/build.sh)"; }
taut() { CARGO_TARGET_DIR=$target cargo build --release --locked -p tautline-cli; }

step "$system: 1 of 3, installing the system" "$out/install.log" installed
step "$system: 2 of 3, building the wheel of Tautline" "$out/wheel.log" ours
if grep -q '{TAUT}' "$here/$system/$plan.toml"; then step "$system: building taut" "$out/taut.log" taut; fi
echo "$system: 3 of 3, measuring" >&2
exec "$out/venv/bin/python" "$here/pairs.py" "$here/$system/$plan.toml" "$pairs" "HERE=$here/$system" "PYTHON=$out/venv/bin/python" "OUT=$out" \
    "TAUT=$target/release/taut" "LIBRARY=$(echo "$out"/venv/lib/python3*/site-packages/tautline_zmq/libzmq.so.5)"
