#!/usr/bin/env bash
# The benchmark's programs (bench/peers/c and python) still build, detect a faulty library, and run in every environment.
#
#   tests/world/benchmark/run.sh
#
# Ends with `peers: N passed, N failed, N skipped`.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
scripts/need.sh cargo:cargo gcc:gcc --also ip:iproute2 taskset:util-linux iptables:iptables
out=$target/test/benchmark
mkdir -p "$out"
ln -sfn "$(tests/lib/build.sh library)/libzmq.so" "$out/libzmq.so.5"
programs=$(tests/lib/build.sh programs)
bench/peers/c/build.sh include "$out" "$out"
. tests/lib/venv.sh
bench/peers/c/check.sh "$out" "$out" "$programs/tautline-bench" "${venv:?}/bin/python"
