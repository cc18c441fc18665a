#!/usr/bin/env bash
# The binary wheel of pyzmq, which brings a libzmq of its own, under its own test suite, with our wheel (packaging/python) in
# the same environment; and once more, a short program, with our library preloaded.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start wheel "$@"
python_environment
pyzmq_source
pyzmq_wheel
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

# The environment with what the tests need is everybody's: ours goes into one on top of it.
needed=$(echo "$(dirname "$python")"/../lib/python3*/site-packages)
"$python" -m venv --without-pip "$work/venv"
python=$work/venv/bin/python
packages=$(echo "$work"/venv/lib/python3*/site-packages)
echo "$needed" >"$packages/needed.pth"
if [[ ${1:-} == baseline ]]; then
    cp -r "$root"/packaging/python/tautline_zmq* "$packages/"
    ln -s "$library" "$packages/tautline_zmq/libzmq.so.5"
else
    pip install --quiet --no-deps "$(LIBRARY=$library "$root/packaging/python/build.sh")"
fi
# Told at the end of the tests, by a plugin: what they ran on.
mkdir "$work/plugin"
cat >"$work/plugin/ran_on.py" <<'PYTHON'
import tautline_zmq


def pytest_sessionfinish():
    print("\nactive:", tautline_zmq.active())
PYTHON
export PYTHONPATH=$PYTHONPATH:$work/plugin
# Messages of 2 GiB are sent by pyzmq.sh, maybe at the same time.
pyzmq_tests -p ran_on -m 'not large' "${@:2}"
check "it ran on our wheel's library" grep '^active: True$' "$work/pytest.log"
finish
