#!/usr/bin/env bash
# Installs ipyparallel with the pip that is the argument.
set -euo pipefail
"$1" install ipyparallel==9.0.1 ipykernel==7.0.1 pyzmq==27.1.0
