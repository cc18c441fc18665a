#!/usr/bin/env bash
# Runs the test suite of pyzmq on its binary wheel, with our native module in place of pyzmq's own (PYZMQ_BACKEND).
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start backend "$@"
python_environment
pyzmq_source
pyzmq_wheel
unset LD_LIBRARY_PATH
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then give_up "the native module needs Python 3.11"; fi

module=$("$root/tests/lib/build.sh" module)/lib_native.so
cp -r "$root/packaging/python/tautline_zmq" "$work/site/"
rm -f "$work"/site/tautline_zmq/_native.*
cp "$module" "$work/site/tautline_zmq/_native.abi3.so"
export PYZMQ_BACKEND=tautline_zmq.backend
# A plugin prints at the end of the tests which module they used.
mkdir "$work/plugin"
cat >"$work/plugin/ran_on.py" <<'PYTHON'
import zmq


def pytest_sessionfinish():
    print("\nbackend:", zmq.backend.Socket.__module__)
PYTHON
export PYTHONPATH=$PYTHONPATH:$work/plugin
# These tests read the list of references in the thread with which pyzmq's own module releases buffers.
skip=()
for test in above_30 lifecycle1 lifecycle2; do
    skip+=(--deselect "tests/test_message.py::TestFrame::test_$test")
    echo "skipped tests/test_message.py::TestFrame::test_$test: reads the references of pyzmq's own module"
    count 0 0 1
done
pyzmq_tests -p ran_on -m 'not large' "${skip[@]}" "${@:2}"
check "pyzmq runs on our native module" grep '^backend: tautline_zmq.backend' "$work/pytest.log"
finish
