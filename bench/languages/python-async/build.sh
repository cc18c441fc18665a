#!/usr/bin/env bash
# CPython with zmq.asyncio of pyzmq, in the environment of ../python. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
CACHE=$(dirname "$CACHE")/python
mkdir -p "$CACHE"
export CACHE PROGRAMS=$here
exec "$here/../python/build.sh"
