"""Threads on shared sockets, frames and contexts. On a Python without a global lock they run at the same time."""

import sys
import sysconfig
import threading
import unittest

import tautline_zmq
import zmq
from native_support import run_program
from support import PATIENCE

THREADS = 8
MESSAGES = 300


def run_all(functions):
    """Runs each function in a thread, all from the same moment. Raises the first exception."""
    barrier, errors = threading.Barrier(len(functions)), []

    def run(function):
        barrier.wait()
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class LockTest(unittest.TestCase):
    @unittest.skipUnless(sysconfig.get_config_var("Py_GIL_DISABLED"), "this Python has a global lock")
    def test_the_lock_stays_off(self):
        for module in ("tautline_zmq.aio", "zmq, zmq.asyncio"):
            source = f"import sys, warnings\nwarnings.simplefilter('error')\nimport {module}\nprint(sys._is_gil_enabled())"
            self.assertEqual(run_program(self, source, variables={"PYTHON_GIL": ""}), "False", module)


class Threads:
    """The tests of both kinds of sockets."""

    context_class = None
    error = None

    def setUp(self):
        self.context = self.context_class()
        self.addCleanup(self.context.destroy, 0)

    def pair(self, first=zmq.PAIR, second=zmq.PAIR, endpoint=None):
        bound, connected = self.context.socket(first), self.context.socket(second)
        for socket in (bound, connected):
            socket.rcvtimeo = socket.sndtimeo = PATIENCE * 1000
        bound.bind(endpoint or f"inproc://{id(bound)}")
        connected.connect(bound.last_endpoint)
        return bound, connected

    def test_one_socket_for_all(self):
        """Messages are neither lost nor mixed if the threads share both sockets."""
        for endpoint in (None, "tcp://127.0.0.1:*"):
            for kinds in ((zmq.PULL, zmq.PUSH), (zmq.PAIR, zmq.PAIR), (zmq.SERVER, zmq.CLIENT), (zmq.GATHER, zmq.SCATTER)):
                with self.subTest(kinds=kinds, endpoint=endpoint):
                    receiver, sender = self.pair(*kinds, endpoint)
                    taken = [[] for _ in range(THREADS)]

                    def send(number):
                        for message in range(MESSAGES):
                            sender.send(b"%d %d" % (number, message))

                    def receive(number):
                        for _ in range(MESSAGES):
                            taken[number].append(receiver.recv())

                    run_all([lambda n=n, f=f: f(n) for n in range(THREADS) for f in (send, receive)])
                    messages = [tuple(map(int, message.split())) for one in taken for message in one]
                    expected = [(number, message) for number in range(THREADS) for message in range(MESSAGES)]
                    self.assertEqual(sorted(messages), expected)
                    # A receiver sees the messages of each sender in order.
                    for one in taken:
                        last = [-1] * THREADS
                        for message in one:
                            number, count = map(int, message.split())
                            self.assertGreater(count, last[number])
                            last[number] = count

    def test_a_socket_for_each_thread(self):
        pull = self.context.socket(zmq.PULL)
        pull.rcvtimeo = PATIENCE * 1000
        pull.bind("inproc://all")

        def send():
            for _ in range(5):
                with self.context.socket(zmq.PUSH) as push:
                    push.connect("inproc://all")
                    for _ in range(50):
                        push.send_multipart([b"a", b"b"])

        def receive():
            for _ in range(THREADS * 5 * 50):
                self.assertEqual(pull.recv_multipart(), [b"a", b"b"])

        run_all([receive] + [send] * THREADS)

    def test_every_call_while_others_run(self):
        """Calls of all kinds on one socket, which fail with exceptions of the library or not at all."""
        receiver, sender = self.pair(endpoint="tcp://127.0.0.1:*")
        stop = threading.Event()

        def repeat(call):
            def run():
                while not stop.is_set():
                    try:
                        call()
                    except (self.error, ValueError):
                        pass

            return run

        def end():
            for _ in range(100):
                sender.send(b"x" * 1000)
                receiver.poll(0)
            stop.set()

        calls = [
            lambda: receiver.recv(zmq.DONTWAIT),
            lambda: receiver.recv_multipart(zmq.DONTWAIT, copy=False),
            lambda: receiver.recv_batch(10),
            lambda: receiver.recv_into(bytearray(1000), flags=zmq.DONTWAIT),
            lambda: sender.send_many([b"y"] * 10, zmq.DONTWAIT),
            lambda: sender.send_multipart([b"y", bytearray(b"z")], zmq.DONTWAIT, copy=False),
            lambda: (receiver.get(zmq.EVENTS), receiver.last_endpoint, repr(receiver)),
            lambda: setattr(sender, "linger", 0),
            lambda: (self.context.socket(zmq.PAIR).close(), repr(self.context)),
        ]
        run_all([end] + [repeat(call) for call in calls])

    def test_close_while_others_call(self):
        for _ in range(10):
            receiver, sender = self.pair()

            def call(socket):
                while not socket.closed:
                    try:
                        socket.send(b"x", zmq.DONTWAIT)
                    except self.error as error:
                        self.assertIn(error.errno, (zmq.EAGAIN, zmq.ENOTSOCK))

            run_all([lambda: call(sender), lambda: call(receiver), sender.close, sender.close, receiver.close])

    def test_frames(self):
        receiver, sender = self.pair()
        for size in (10, 1000, 100_000):
            sender.send(b"x" * size)
            frame = receiver.recv(copy=False)

            def use():
                for _ in range(50):
                    self.assertEqual(len(bytes(memoryview(frame))), size)
                    self.assertEqual(len(frame), size)
                    sender.send(frame, copy=False)
                    self.assertEqual(len(receiver.recv()), size)

            run_all([use] * THREADS)


class PyzmqTest(Threads, unittest.TestCase):
    context_class = zmq.Context
    error = zmq.ZMQError

    def test_attributes_of_frames(self):
        receiver, sender = self.pair()
        for size in (10, 100_000):
            tracker = sender.send(bytes(size), copy=False, track=True)
            frame = receiver.recv(copy=False)

            def use():
                for _ in range(50):
                    self.assertEqual(len(frame.bytes), size)
                    self.assertEqual(frame.buffer.nbytes, size)
                    self.assertEqual(len(frame.fast_copy()), size)
                    frame.more = False

            run_all([use] * THREADS)
            del frame
            tracker.wait(PATIENCE)

    def test_trackers(self):
        receiver, sender = self.pair()

        def send():
            for _ in range(20):
                sender.send(bytearray(100_000), copy=False, track=True).wait(PATIENCE)

        def receive():
            for _ in range(20 * THREADS):
                receiver.recv()

        run_all([receive] + [send] * THREADS)

    def test_constructor_is_called_once(self):
        for _ in range(20):
            context = zmq.Context.__new__(zmq.Context)
            results = []

            def initialise():
                try:
                    tautline_zmq._native.Context.__init__(context)
                    results.append(True)
                except RuntimeError:
                    results.append(False)

            run_all([initialise] * 4)
            self.assertEqual(sum(results), 1)
            tautline_zmq._native.Context.term(context)


class NativeTest(Threads, unittest.TestCase):
    context_class = tautline_zmq.Context
    error = tautline_zmq.Error

    def test_monitors_and_instances(self):
        found = []

        def run():
            found.append(tautline_zmq.Context.instance())
            with self.context.socket(zmq.PAIR) as socket, socket.monitor():
                pass

        run_all([run] * THREADS)
        self.assertEqual(len(set(map(id, found))), 1)
        found[0].term()


if __name__ == "__main__":
    print(sys.version)
    unittest.main()
