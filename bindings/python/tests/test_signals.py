"""Signals: handlers run during a wait, and the wait goes on unless a handler raises."""

import signal
import threading
import time
import unittest

import zmq
from support import SocketTest


class SignalTest(SocketTest):
    def setUp(self):
        super().setUp()
        self.calls = []
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, self.on_alarm))
        self.raises = False

    def on_alarm(self, *_):
        self.calls.append(1)
        if self.raises:
            raise KeyboardInterrupt

    def waits(self):
        first, second = self.pair()
        late = threading.Timer(0.3, second.send, (b"x",))
        late.start()
        return first, late

    def test_wait_goes_on_after_a_handler(self):
        for call in ("recv", "recv_multipart", "poll", "recv_many"):
            socket, late = self.waits()
            before = len(self.calls)
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            self.assertTrue(getattr(socket, call)())
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.assertGreater(len(self.calls), before, call)
            late.join()

    def test_exception_of_a_handler_ends_the_wait(self):
        self.raises = True
        socket, _ = self.pair()
        for call in (socket.recv, lambda: socket.poll(10_000), lambda: socket.recv_many()):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with self.assertRaises(KeyboardInterrupt):
                call()
        lonely = self.context.socket(zmq.PUSH)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaises(KeyboardInterrupt):
            lonely.send(b"x")

    def test_handler_may_use_the_socket(self):
        socket, peer = self.pair()
        signal.signal(signal.SIGALRM, lambda *_: peer.send(b"from the handler"))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        self.assertEqual(socket.recv(), b"from the handler")
        signal.signal(signal.SIGALRM, lambda *_: socket.close())
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaises(zmq.ZMQError) as caught:
            socket.recv()
        self.assertEqual(caught.exception.errno, zmq.ENOTSOCK)

    def test_main_thread_that_waits_for_its_turn_can_be_interrupted(self):
        self.raises = True
        socket, peer = self.pair()
        thread = threading.Thread(target=socket.recv)
        thread.start()
        time.sleep(0.1)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with self.assertRaises(KeyboardInterrupt):
            socket.send(b"x")
        peer.send(b"end")
        thread.join()


if __name__ == "__main__":
    unittest.main()
