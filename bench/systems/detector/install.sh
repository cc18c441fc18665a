#!/usr/bin/env bash
# Installs the bridge of the European XFEL's control system with the pip that is the argument.
set -euo pipefail
"$1" install karabo-bridge==0.7.0 numpy==2.3.4 msgpack==1.1.2 msgpack-numpy==0.4.8 pyzmq==27.1.0
