#!/usr/bin/env bash
# .NET with SendAsync and ReceiveAsync of our binding, on the runtime of ../dotnet. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
CACHE=$(dirname "$CACHE")/dotnet
mkdir -p "$CACHE"
export CACHE PROGRAMS=$here
exec "$here/../dotnet/build.sh"
