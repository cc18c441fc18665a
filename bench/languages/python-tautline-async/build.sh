#!/usr/bin/env bash
# CPython with tautline_zmq.aio: the programs of ../python-async, with the imports changed. Variables and results:
# bench/languages/build.sh. WHEEL=FILE installs this wheel instead of a new one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" python3:python3 py=ensurepip:python3-venv
wheel=${WHEEL:-$(CARGO_TARGET_DIR=$CACHE/target TAGS=cp311-abi3 "$ROOT/packaging/python/build.sh")}
rm -rf "$CACHE/venv"
python3 -m venv "$CACHE/venv"
"$CACHE/venv/bin/pip" --quiet --disable-pip-version-check install --no-deps "$wheel"
cp "$here/../python/common.py" "$OUT"
for program in local_lat remote_lat local_thr remote_thr; do
    sed 's/^from zmq import/from tautline_zmq import/; s/^from zmq.asyncio import/from tautline_zmq.aio import/' \
        "$here/../python-async/$program.py" >"$OUT/$program.py"
    printf '#!/bin/sh\nexec "%s" -O -B "%s" "$@"\n' "$CACHE/venv/bin/python" "$OUT/$program.py" >"$OUT/$program"
    chmod +x "$OUT/$program"
done
{
    echo "runtime: $("$CACHE/venv/bin/python" -VV | head -n 1)"
    echo "binding: $("$CACHE/venv/bin/pip" --disable-pip-version-check list --format=freeze | grep '^tautline' | tr -s = ' ')"
} >"$OUT/versions.txt"
