#!/usr/bin/env bash
# The binary wheel of pyzmq, which brings a libzmq of its own, under its own test suite with our library put in the
# place of that one; and once more, a few tests of it, with ours preloaded.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start wheel "$@"
python_environment
pyzmq_source
pyzmq_wheel
bundled=$(echo "$work"/site/pyzmq.libs/libzmq-*.so*)
unset LD_LIBRARY_PATH

preloaded() {
    (cd "$work" && LD_PRELOAD=$library LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT=$work/bindings timeout 60 "$python" -c '
import zmq
context = zmq.Context()
first, second = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
port = first.bind_to_random_port("tcp://127.0.0.1")
second.connect(f"tcp://127.0.0.1:{port}")
for size in (0, 1, 255, 256, 100_000):
    first.send(b"x" * size)
    assert second.recv() == b"x" * size
context.destroy()
') &&
        # Every call of the extension goes to the library that was preloaded, though the other one is there too.
        grep -h 'binding file .*/zmq/.* symbol `zmq_' "$work"/bindings.* >"$work/calls" &&
        ! grep -v " to $library " "$work/calls"
}
check "the wheel with our library preloaded" preloaded

ln -sf "$library" "$bundled"
# Messages of 2 GiB are sent by pyzmq.sh, maybe at the same time.
pyzmq_tests -m 'not large' "${@:2}"
check "it ran on this library and no other" witnessed
finish
