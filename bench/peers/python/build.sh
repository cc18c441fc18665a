#!/usr/bin/env bash
# Installs an environment of Python for a peer: bench/peers/python/build.sh OUT_DIR PROGRAM
#
#   pyzmq-bench            pyzmq's wheel, which contains libzmq
#   pyzmq-package-bench    the same wheel, and our package tautline-zmq with the native backend. LIBRARY is the libzmq.so of the package.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=$1 program=$2
venv=$out/$program.venv
"$root/scripts/need.sh" python3:python3 py=ensurepip:python3-venv
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: the program needs Python 3.11"; exit 1; }
pip() { "$venv/bin/pip" --quiet --disable-pip-version-check install --no-deps "$@"; }
if [[ ! -e $venv/.complete ]]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    pip --only-binary :all: pyzmq==27.1.0
    touch "$venv/.complete"
fi
if [[ $program == pyzmq-package-bench ]]; then pip --force-reinstall "$("$root/packaging/python/build.sh")"; fi
printf '#!/bin/sh\nexec "%s" -O -B "%s" "$@"\n' "$venv/bin/python" "$here/main.py" >"$out/$program"
chmod +x "$out/$program"
