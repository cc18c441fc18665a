#!/usr/bin/env bash
# Runs the test suite of pyzmq on its binary wheel, which contains libzmq, with our wheel (packaging/python) in the same
# environment. Before that, runs a short program on pyzmq's wheel with our library preloaded.
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
        # Every call of the extension goes to the preloaded library, although the wheel's library is loaded as well.
        grep -h 'binding file .*/zmq/.* symbol `zmq_' "$work"/bindings.* >"$work/calls" &&
        ! grep -v " to $library " "$work/calls"
}
check "the wheel with our library preloaded" preloaded

# All programs share the environment with the packages of the tests. Our wheel goes into a new environment on top of it.
needed=$(echo "$(dirname "$python")"/../lib/python3*/site-packages)
"$python" -m venv --without-pip "$work/venv"
python=$work/venv/bin/python
packages=$(echo "$work"/venv/lib/python3*/site-packages)
echo "$needed" >"$packages/needed.pth"
if [[ ${1:-} == baseline ]]; then
    cp -r "$root"/packaging/python/tautline_zmq* "$packages/"
    ln -s "$library" "$packages/tautline_zmq/libzmq.so.5"
else
    pip install --quiet --no-deps "$(TAGS=py3-none LIBRARY=$library "$root/packaging/python/build.sh")"
fi
# A plugin prints at the end of the tests whether they ran on our library.
mkdir "$work/plugin"
cat >"$work/plugin/ran_on.py" <<'PYTHON'
import tautline_zmq


def pytest_sessionfinish():
    print("\nactive:", tautline_zmq.active())
PYTHON
export PYTHONPATH=$PYTHONPATH:$work/plugin
# The tests with messages of 2 GiB (`large`) run in pyzmq.sh, possibly at the same time.
pyzmq_tests -p ran_on -m 'not large' "${@:2}"
check "pyzmq runs on our wheel's library" grep '^active: True$' "$work/pytest.log"
finish
