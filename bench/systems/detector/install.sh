#!/usr/bin/env bash
# Installs the bridge of the European XFEL's control system with the pip that is the argument. The plan `namespaces` needs the program ip.
set -euo pipefail
"$(dirname "$0")/../../../scripts/need.sh" --also ip:iproute2
"$1" install karabo-bridge==0.7.0 numpy==2.3.4 msgpack==1.1.2 msgpack-numpy==0.4.8 pyzmq==27.1.0
