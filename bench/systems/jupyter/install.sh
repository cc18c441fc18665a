#!/usr/bin/env bash
# Installs a Jupyter kernel and its client with the pip that is the argument.
set -euo pipefail
"$1" install ipykernel==7.0.1 jupyter-client==8.6.3 pyzmq==27.1.0
