#!/usr/bin/env bash
# CPython with the wheel of pyzmq that pip installs. Variables and results: bench/languages/build.sh.
#
# PROGRAMS=FOLDER takes the four programs from another folder (../python-async).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" python3:python3 py=ensurepip:python3-venv
if [[ ! -e $CACHE/venv/.complete ]]; then
    rm -rf "$CACHE/venv"
    python3 -m venv "$CACHE/venv"
    "$CACHE/venv/bin/pip" --quiet --disable-pip-version-check install --only-binary :all: pyzmq==27.1.0
    touch "$CACHE/venv/.complete"
fi
cp "$here/common.py" "${PROGRAMS:-$here}"/{local,remote}_{lat,thr}.py "$OUT"
for program in local_lat remote_lat local_thr remote_thr; do
    printf '#!/bin/sh\nexec "%s" -O -B "%s" "$@"\n' "$CACHE/venv/bin/python" "$OUT/$program.py" >"$OUT/$program"
    chmod +x "$OUT/$program"
done
{
    echo "runtime: $("$CACHE/venv/bin/python" -VV | head -n 1)"
    echo "binding: pyzmq $("$CACHE/venv/bin/python" -c 'import zmq; print(zmq.__version__)')"
} >"$OUT/versions.txt"
