#!/usr/bin/env bash
# pyzmq built from its source distribution against the prefix, under its own test suite.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start pyzmq "$@"
python_environment
pyzmq_built
pyzmq_tests "${@:2}"
check "it ran on this library and no other" witnessed
finish
