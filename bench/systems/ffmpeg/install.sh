#!/usr/bin/env bash
# Installs the subscriber's pyzmq with the pip that is the argument. FFmpeg and its libzmq are Debian's.
set -euo pipefail
"$(dirname "$0")/../../../scripts/need.sh" ffmpeg:ffmpeg
"$1" install pyzmq==27.1.0
