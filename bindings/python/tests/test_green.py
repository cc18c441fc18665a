"""zmq.green on our sockets, in programs of their own: gevent replaces parts of the standard library.

Tests with many greenlets, and with greenlets that are killed while they wait. pyzmq's own tests of zmq.green run in
tests/world/programs/backend.sh.
"""

import importlib.util
import os
import unittest

from support import ProgramTest

PROLOGUE = """
import gevent.monkey
PATCH
import gevent, gevent.event
import zmq.green as zmq
import zmq as plain

assert plain.backend.Socket.__module__.startswith("tautline_zmq")
PATIENCE = 60
context = zmq.Context()
ends = gevent.Timeout(PATIENCE)
ends.start()


def pair(first=zmq.PAIR, second=zmq.PAIR, endpoint=None, hwm=1000):
    bound, connected = context.socket(first), context.socket(second)
    for socket in (bound, connected):
        socket.linger, socket.sndhwm, socket.rcvhwm = 0, hwm, hwm
    bound.bind(endpoint or "inproc://%d" % id(bound))
    connected.connect(bound.last_endpoint)
    return bound, connected


def spawn(function, *arguments):
    greenlet = gevent.spawn(function, *arguments)
    gevent.sleep(0)
    return greenlet


ENDPOINTS = None, "tcp://127.0.0.1:*", "ipc:///tmp/tautline-green-%d"
"""
EPILOGUE = """
ends.cancel()
context.destroy(0)
"""


@unittest.skipIf(importlib.util.find_spec("gevent") is None, "gevent is not installed")
class GreenTest(ProgramTest):
    def check(self, source, patch=""):
        self.run_program(PROLOGUE.replace("PATCH", patch).replace("-%d", f"-{os.getpid()}-%d") + source + EPILOGUE)

    def test_many_greenlets_with_a_socket_each(self):
        """Hundreds of greenlets ask one service, on each transport. Each gets its own answers."""
        self.check("""
for number, endpoint in enumerate(ENDPOINTS):
    if endpoint and "%d" in endpoint:
        endpoint %= number
    router = context.socket(zmq.ROUTER)
    router.bind(endpoint or "inproc://service")

    def serve():
        while True:
            parts = router.recv_multipart()
            if parts[-1] == b"end":
                return
            router.send_multipart(parts)

    server = spawn(serve)

    def ask(number):
        socket = context.socket(zmq.REQ)
        socket.connect(router.last_endpoint)
        for question in range(10):
            body = b"%d %d" % (number, question)
            socket.send(body)
            assert socket.recv() == body
        socket.close(0)
        return number

    greenlets = [gevent.spawn(ask, number) for number in range(200)]
    gevent.joinall(greenlets, raise_error=True)
    assert [one.value for one in greenlets] == list(range(200))
    dealer = context.socket(zmq.DEALER)
    dealer.connect(router.last_endpoint)
    dealer.send(b"end")
    server.get()
    dealer.close(0)
    router.close(0)
""")

    def test_a_stream_through_a_full_queue(self):
        """A sender and a receiver that both wait again and again pass all messages in order."""
        self.check("""
for number, endpoint in enumerate(ENDPOINTS):
    if endpoint and "%d" in endpoint:
        endpoint %= number
    pull, push = pair(zmq.PULL, zmq.PUSH, endpoint, hwm=5)

    def send():
        for message in range(5000):
            push.send_multipart([b"%d" % message, b"x" * 1000])

    def receive():
        for message in range(5000):
            assert pull.recv_multipart() == [b"%d" % message, b"x" * 1000]

    gevent.joinall([gevent.spawn(send), gevent.spawn(receive)], raise_error=True)
""")

    def test_both_directions_of_a_socket(self):
        """One greenlet sends and another receives on the same socket. More of them pyzmq does not allow."""
        self.check("""
first, second = pair(zmq.DEALER, zmq.DEALER, "tcp://127.0.0.1:*", hwm=5)


def send(socket):
    for number in range(2000):
        socket.send(b"%d" % number)


def receive(socket):
    for number in range(2000):
        assert socket.recv() == b"%d" % number


gevent.joinall([gevent.spawn(call, socket) for call in (receive, send) for socket in (first, second)], raise_error=True)
""")

    def test_the_hub_works_during_a_wait(self):
        """Timers and other greenlets run while a greenlet waits, and while another is busy with messages."""
        self.check("""
pull, push = pair(zmq.PULL, zmq.PUSH, "tcp://127.0.0.1:*")
waiting = spawn(pull.recv)
beats = 0
while beats < 20:
    gevent.sleep(0.001)
    beats += 1
assert not waiting.ready()
push.send(b"x")
assert waiting.get() == b"x"

stop = False


def flood():
    while not stop:
        push.send(b"x")
        gevent.sleep(0)


def drain():
    while not stop:
        pull.recv()


floods = [spawn(flood), spawn(drain)]
for _ in range(20):
    gevent.sleep(0.001)
stop = True
push.send(b"last")
gevent.joinall(floods, raise_error=True)
""")

    def test_timeouts(self):
        """A time limit of gevent ends a wait, and no message is lost. RCVTIMEO has no effect in zmq.green."""
        self.check("""
pull, push = pair(zmq.PULL, zmq.PUSH, hwm=2)
with gevent.Timeout(0.02, False):
    pull.recv()
    raise AssertionError
push.send(b"kept")
assert pull.recv() == b"kept"

sent = 0
while True:
    with gevent.Timeout(0.02, False):
        push.send_multipart([b"%d" % sent, b"x"])
        sent += 1
        continue
    break
for number in range(sent):
    assert pull.recv_multipart() == [b"%d" % number, b"x"]
push.send_multipart([b"next", b"x"])
assert pull.recv_multipart() == [b"next", b"x"]
""")

    def test_a_greenlet_that_is_killed_takes_no_message(self):
        self.check("""
for endpoint in (None, "tcp://127.0.0.1:*"):
    pull, push = pair(zmq.PULL, zmq.PUSH, endpoint)
    for number in range(200):
        victim = spawn(pull.recv)
        if number % 2:
            # The message arrives while they end.
            push.send(b"%d" % number)
        victim.kill()
        if not number % 2:
            push.send(b"%d" % number)
        if victim.value == b"%d" % number:
            continue
        assert pull.recv() == b"%d" % number
    assert not pull.poll(0)

pull, push = pair(zmq.PULL, zmq.PUSH, hwm=2)
sent = 0
while push.poll(0, zmq.POLLOUT):
    push.send(b"%d" % sent)
    sent += 1
victim = spawn(push.send, b"never")
assert not victim.ready()
victim.kill()
for number in range(sent):
    assert pull.recv() == b"%d" % number
push.send(b"next")
assert pull.recv() == b"next"
""")

    def test_polls(self):
        self.check("""
pull, push = pair(zmq.PULL, zmq.PUSH, "tcp://127.0.0.1:*")
other, _ = pair(zmq.PULL, zmq.PUSH)
poller = zmq.Poller()
poller.register(pull, zmq.POLLIN)
poller.register(other, zmq.POLLIN)
assert poller.poll(0) == [] and poller.poll(10) == []
polling = spawn(poller.poll)
assert not polling.ready()
push.send(b"1")
assert polling.get() == [(pull, zmq.POLLIN)]
# The poll has taken no message, and the next one finds it again.
assert poller.poll() == [(pull, zmq.POLLIN)]
assert pull.recv() == b"1" and pull.poll(10) == 0
readable, writable, _ = zmq.select([pull], [push], [], timeout=PATIENCE)
assert (readable, writable) == ([], [push])
many = [gevent.spawn(pull.poll, PATIENCE * 1000) for _ in range(20)]
gevent.sleep(0)
push.send(b"2")
assert [one.get() for one in many] == [zmq.POLLIN] * 20
victim = spawn(other.poll)
victim.kill()
assert pull.recv() == b"2"
""")

    def test_close_ends_a_wait(self):
        self.check("""
pull, push = pair(zmq.PULL, zmq.PUSH)


def receive():
    try:
        pull.recv()
    except zmq.ZMQError as error:
        return error.errno


waiting = spawn(receive)
pull.close()
assert waiting.get() == zmq.ENOTSOCK
""")

    def test_with_all_of_the_standard_library_replaced(self):
        self.check(
            """
import queue, socket, threading
pull, push = pair(zmq.PULL, zmq.PUSH, "tcp://127.0.0.1:*")
results = queue.Queue()
thread = threading.Thread(target=lambda: results.put(pull.recv()))
thread.start()
push.send(b"x")
assert results.get(timeout=PATIENCE) == b"x"
thread.join()
# The tracker's event is of gevent, and the engine's thread sets it.
tracker = push.send(bytes(100_000), copy=False, track=True)
assert len(pull.recv()) == 100_000
tracker.wait(PATIENCE)
assert tracker.done
""",
            "gevent.monkey.patch_all()",
        )


if __name__ == "__main__":
    unittest.main()
