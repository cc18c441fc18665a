#!/usr/bin/env bash
# Installs Salt with the pip that is the argument.
set -euo pipefail
"$1" install salt==3008.4 pyzmq==27.1.0
