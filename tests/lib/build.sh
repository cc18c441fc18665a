#!/usr/bin/env bash
# Builds the files that the suites share and prints their folder.
#
#   tests/lib/build.sh library     libzmq.so.5 and libzmq.a with TLS and names, as they are released: target/tested
#   tests/lib/build.sh module      the native Python module for CPython 3.11 and later: target/tested/lib_native.so
#   tests/lib/build.sh programs    taut and tautline-bench, unoptimised: target/debug
#   tests/lib/build.sh crates      the tests of all crates, and these programs
#   tests/lib/build.sh venv        the Python of the suites: target/test/venv
#   tests/lib/build.sh baseline    libzmq 4.3.5 with its draft interface and WebSocket
#
# `make build` writes to target/release, which stays unchanged. With TESTS_BUILT=1, Cargo's output already exists.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
cd "$root"
case $1 in
    library)
        [[ -n ${TESTS_BUILT:-} ]] || cargo build --profile tested -p tautline-libzmq --features tls,names >&2
        mkdir -p "$target/tested"
        ln -sfn libzmq.so "$target/tested/libzmq.so.5"
        echo "$target/tested" ;;
    module)
        [[ -n ${TESTS_BUILT:-} ]] || cargo build --profile tested -p tautline-python >&2
        echo "$target/tested" ;;
    programs)
        [[ -n ${TESTS_BUILT:-} ]] || cargo whole-programs >&2
        echo "$target/debug" ;;
    crates)
        cargo whole-test --no-run >&2
        echo "$target/debug" ;;
    venv)
        . tests/lib/venv.sh
        echo "${venv:?}" ;;
    baseline)
        scripts/libzmq-baseline.sh --ws >&2
        echo "$target/baseline/libzmq-ws/lib" ;;
    *)
        echo "build: unknown argument $1" >&2
        exit 2 ;;
esac
