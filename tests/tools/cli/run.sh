#!/usr/bin/env bash
# `taut` as a user types it: against itself, raw sockets, a pseudo-terminal, and libzmq 4.3.5 (the one in the pyzmq wheel).
#
#   tests/tools/cli/run.sh            all of it
#   tests/tools/cli/run.sh ping       only the tests whose name contains that
#   PYZMQ=0 tests/tools/cli/run.sh    without libzmq, whose tests are skipped then
#
# Its last line is the sum of all. Cargo's own sums are renamed, so that nothing is counted twice.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
"$root/scripts/need.sh" cargo:cargo cc:gcc --also tshark:tshark
options=()
cd "$root"
if [[ ${PYZMQ:-1} != 0 ]]; then
    . "$root/tests/lib/venv.sh"
    export TAUT_PYTHON=$venv/bin/python
    # Prometheus' own parser of OpenMetrics.
    parser=$target/cli/prometheus-client-0.26.0
    if [[ ! -e $parser/.complete ]]; then
        "$TAUT_PYTHON" -m pip --quiet --disable-pip-version-check install --no-deps --target "$parser" prometheus-client==0.26.0
        touch "$parser/.complete"
    fi
    export TAUT_PROMETHEUS=$parser
    cargo build --release -p tautline-libzmq
    export TAUT_LIBRARY=$target/release/libzmq.so
    # Not the cost of a large system, which wants the machine for itself.
    options=(--include-ignored --skip the_cost_of_a_large_system)
    if TAUT_CHROMIUM=$(command -v chromium || command -v chromium-browser); then
        export TAUT_CHROMIUM
    else
        echo "cli: the page is not looked at: apt-get install chromium"
        options+=(--skip a_browser_shows)
    fi
    if TAUT_TSHARK=$(command -v tshark); then
        export TAUT_TSHARK
    else
        echo "cli: Wireshark does not read what is captured: apt-get install tshark"
        options+=(--skip wireshark_reads_it)
    fi
fi

log=$target/cli.log
code=0
cargo whole-test --bin taut --test cli --no-fail-fast -- ${options[@]+"${options[@]}"} "$@" 2>&1 | tee "$log" |
    sed 's/^test result:/tests:/' || code=$?
awk '/^test result: / { p += $4; f += $6; s += $8 }
    END { printf "cli: %d passed, %d failed, %d skipped\n", p, f, s }' "$log"
exit "$code"
