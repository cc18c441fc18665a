#!/usr/bin/env bash
# Builds pyzmq from its source distribution against the prefix, and runs its test suite.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start pyzmq "$@"
python_environment
pyzmq_built
pyzmq_tests "${@:2}"
# Uses `zmq.has` and the function `statistic` as docs/start/languages.md describes.
tells() {
    "$python" - "$root/docs/start/languages.md" <<'PY'
import re, sys, zmq
exec(re.search(r"```python\n(def statistic.*?)```", open(sys.argv[1]).read(), re.S)[1])
assert zmq.has("tautline")
with zmq.Context() as context, context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
    assert context.get(0x54410002) >= 100
    pull.bind("inproc://told")
    push.connect("inproc://told")
    push.send(b"12345")
    pull.recv()
    assert [statistic(push, place) for place in (0, 1, 2, 9)] == [1, 7, 0, 1]
    assert statistic(pull, 2) == 1
PY
}
! grep -qa "Tautline " "$library" || check "pyzmq shows that it runs on Tautline, and the statistics of its sockets" tells
check "pyzmq loads only this libzmq" witnessed
finish
