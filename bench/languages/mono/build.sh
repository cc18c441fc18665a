#!/usr/bin/env bash
# .NET with our binding, on Mono: the programs of ../dotnet. Variables and results: bench/languages/build.sh.
set -euo pipefail
RUNTIME=mono exec "$(dirname "$0")/../dotnet/build.sh"
