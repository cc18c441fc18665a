#!/usr/bin/env bash
# The programs of ../go with CURVE. Variables and results: bench/languages/build.sh.
set -euo pipefail
exec "$(dirname "$0")/../curve.sh" go
