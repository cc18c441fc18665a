#!/usr/bin/env bash
# pyzmq built from its source distribution against the prefix, under its own test suite.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start pyzmq "$@"
python_environment
pyzmq_built
pyzmq_tests "${@:2}"
# As docs/start/languages.md describes.
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
! grep -qa "Tautline " "$library" || check "it is told that this is Tautline, and what its sockets did" tells
check "it ran on this library and no other" witnessed
finish
