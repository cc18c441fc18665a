"""Signals: the time limit of a call counts from its start, however often handlers run."""

import unittest

from native_support import SyncTest, run_program

# A signal arrives more often than the time limit. If each signal started the limit again, the call would never end.
INTERRUPTED = """
import signal, sys
import tautline_zmq as t

context = t.Context()
calls = []
signal.signal(signal.SIGALRM, lambda *_: calls.append(1))

def limited(kind):
    socket = context.socket(kind)
    socket.rcvtimeo = socket.sndtimeo = 200
    return socket

push, pull, client, sub, pub = map(limited, (t.PUSH, t.PULL, t.CLIENT, t.SUB, t.PUB))
call = {
    "recv": pull.recv,
    "recv_frame": lambda: pull.recv(copy=False),
    "recv_multipart": sub.recv_multipart,
    "recv_many": pull.recv_many,
    "recv_into": lambda: pull.recv_into(bytearray(10)),
    "client_recv": client.recv,
    "send": lambda: push.send(b"x"),
    "send_large": lambda: push.send(bytes(100_000)),
    "send_multipart": lambda: push.send_multipart([b"a", bytes(100_000)]),
    "send_many": lambda: push.send_many([b"x"] * 10),
    "client_send": lambda: client.send(b"x"),
    "wait_for_peers": push.wait_for_peers,
    "client_wait_for_peers": client.wait_for_peers,
    "wait_for_subscriptions": pub.wait_for_subscriptions,
}[sys.argv[1]]
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
try:
    call()
except t.TimedOut:
    print("timed out" if calls else "no signal")
signal.setitimer(signal.ITIMER_REAL, 0)
context.destroy(0)
"""

CALLS = """recv recv_frame recv_multipart recv_many recv_into client_recv send send_large send_multipart send_many client_send
wait_for_peers client_wait_for_peers wait_for_subscriptions"""


class LimitTest(SyncTest):
    def test_time_limit_holds_although_signals_arrive(self):
        for call in CALLS.split():
            with self.subTest(call=call):
                self.assertEqual(run_program(self, INTERRUPTED, call), "timed out")


if __name__ == "__main__":
    unittest.main()
