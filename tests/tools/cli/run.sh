#!/usr/bin/env bash
# Tests `taut` together with other programs: libzmq 4.3.5 (from the pyzmq wheel), the parser of Prometheus, Wireshark and Chromium. These
# tests are ignored elsewhere because they need these programs. tests/rust/run.sh runs all other tests of `taut`.
#
#   tests/tools/cli/run.sh          all tests
#   tests/tools/cli/run.sh WORD     only the tests with WORD in their names
#
# Ends with `cli: N passed, N failed, N skipped`.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
scripts/need.sh cargo:cargo cc:gcc tshark:tshark chromium:chromium
. tests/lib/venv.sh
. tests/rust/nextest.sh
TAUT_LIBRARY=$(tests/lib/build.sh library)/libzmq.so
TAUT_CHROMIUM=$(command -v chromium) TAUT_TSHARK=$(command -v tshark)
export TAUT_LIBRARY TAUT_CHROMIUM TAUT_TSHARK TAUT_PYTHON=$venv/bin/python
# Folder with the package prometheus_client.
TAUT_PROMETHEUS=$("$venv/bin/python" -c 'import pathlib, prometheus_client as p; print(pathlib.Path(p.__file__).parents[1])')
export TAUT_PROMETHEUS
log=$target/test/cli.nextest.log
code=0
# The excluded tests are a measurement, and child processes that other tests start.
cargo whole-nextest --run-ignored only --test cli -E 'not test(the_cost_of_a_large_system) & not test(child_)' "$@" 2>&1 |
    tee "$log" || code=$?
tests/rust/sum.sh cli 'tests/tools/cli/run.sh -E' "$log"
exit "$code"
