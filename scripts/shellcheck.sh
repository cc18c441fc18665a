#!/usr/bin/env bash
# Runs ShellCheck over all shell scripts, for errors and warnings. ShellCheck comes from PyPI, in the version of scripts/shellcheck.txt.
set -euo pipefail

cd "$(dirname "$0")/.."
version=0.11.0.1
venv=$(realpath -m "${CARGO_TARGET_DIR:-target}")/lint/shellcheck-$version
if [[ ! -x $venv/bin/shellcheck ]]; then
    scripts/need.sh python3:python3 py=ensurepip:python3-venv
    python3 -m venv --clear "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r scripts/shellcheck.txt
fi
# Without files whose deletion is not committed yet.
git grep -lz --untracked '' -- '*.sh' '.ci/*' | xargs -0 "$venv/bin/shellcheck" --severity=warning
