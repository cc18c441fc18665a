#!/usr/bin/env bash
# The programs of ../node-tautline with CURVE. Variables and results: bench/languages/build.sh.
set -euo pipefail
exec "$(dirname "$0")/../curve.sh" node-tautline
