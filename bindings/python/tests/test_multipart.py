"""`send_multipart` sends all parts or none: whatever ends the call, the peer gets whole messages.

The same tests run on the sockets of pyzmq and on those of the native API.
"""

import asyncio
import signal
import sys
import threading
import unittest

import tautline_zmq
import tautline_zmq.aio
import zmq
import zmq.asyncio
from support import PATIENCE

WIDTH = 5


class Raised(BaseException):
    """Not an Exception, because pyzmq replaces exceptions of a buffer by TypeError."""


def raise_it(*_):
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise Raised


def raise_after(seconds):
    """Lets the handler run after some time, and every second. Another thread may get the first signal, which does not end a wait."""
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)


class SignalsTest:
    """A base class with a signal handler that raises."""

    def setUp(self):
        super().setUp()
        before = signal.signal(signal.SIGALRM, raise_it)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)


class MultipartTest(SignalsTest):
    module = None
    context_class = None

    def setUp(self):
        super().setUp()
        self.context = self.context_class()
        self.addCleanup(self.context.destroy, 0)

    def pair(self, first=zmq.PAIR, second=zmq.PAIR, endpoint=None, hwm=1000):
        bound, connected = self.context.socket(first), self.context.socket(second)
        for socket in (bound, connected):
            socket.sndhwm = socket.rcvhwm = hwm
            socket.rcvtimeo = PATIENCE * 1000
        bound.bind(endpoint or f"inproc://{id(bound)}")
        connected.connect(bound.last_endpoint)
        return bound, connected

    async def check_count(self, receiver, sender, count):
        """Receives `count` messages and one more. Each has all its parts."""
        for number in range(count):
            self.assertEqual(await receiver.recv_multipart(), [b"%d" % number] * WIDTH)
        await sender.send_multipart([b"next"])
        self.assertEqual(await receiver.recv_multipart(), [b"next"])

    def fill(self, socket, size=1):
        """Sends whole messages until no more fit."""
        count = 0
        try:
            while True:
                socket.send_multipart([b"%d" % count] + [b"x" * size] * (WIDTH - 1), self.module.DONTWAIT)
                count += 1
        except self.module.Again:
            return count

    def check_whole(self, socket, count, size=1):
        """Receives messages of `fill`."""
        for number in range(count):
            self.assertEqual(socket.recv_multipart(), [b"%d" % number] + [b"x" * size] * (WIDTH - 1))

    def check_nothing_sent(self, sender, receiver):
        """The next message is not glued to an earlier part."""
        sender.send_multipart([b"next"])
        self.assertEqual(receiver.recv_multipart(), [b"next"])
        with self.assertRaises(self.module.Again):
            receiver.recv(self.module.DONTWAIT)

    def test_object_without_a_buffer(self):
        receiver, sender = self.pair()
        for parts in ([b"1", b"2", 3], [b"1", b"2", "3"], [b"1", None, b"3"], [b"1", bytes(100_000), object()]):
            with self.assertRaises(TypeError):
                sender.send_multipart(parts)
        self.check_nothing_sent(sender, receiver)

    def test_iterable_that_raises(self):
        def parts():
            yield b"1"
            yield b"2"
            raise Raised

        receiver, sender = self.pair()
        with self.assertRaises(Raised):
            sender.send_multipart(parts())
        self.check_nothing_sent(sender, receiver)

    def test_memory_that_is_not_contiguous(self):
        receiver, sender = self.pair()
        with self.assertRaises((TypeError, BufferError)):
            sender.send_multipart([b"1", memoryview(b"abcdef")[::2]])
        self.check_nothing_sent(sender, receiver)

    @unittest.skipIf(sys.version_info < (3, 12), "classes have no __buffer__ before Python 3.12")
    def test_buffer_that_raises(self):
        class Part:
            calls = 0

            def __buffer__(self, flags):
                Part.calls += 1
                if Part.calls == self.last:
                    signal.raise_signal(signal.SIGALRM)
                return memoryview(b"x" * 100_000)

        receiver, sender = self.pair()
        Part.last = 3
        for copy in (True, False):
            Part.calls = 0
            with self.assertRaises(Raised):
                sender.send_multipart([b"1", Part(), Part(), Part()], copy=copy)
            self.check_nothing_sent(sender, receiver)
        # Each buffer is asked for once, so a second answer cannot differ from the first.
        Part.calls, Part.last = 0, None
        sender.send_multipart([Part(), Part()])
        self.assertEqual((Part.calls, [len(part) for part in receiver.recv_multipart()]), (2, [100_000] * 2))

    def test_full_queue(self):
        for kinds in ((zmq.PAIR, zmq.PAIR), (zmq.PULL, zmq.PUSH), (zmq.ROUTER, zmq.DEALER)):
            with self.subTest(kinds):
                receiver, sender = self.pair(*kinds, hwm=3)
                count = self.fill(sender)
                sender.sndtimeo = 1
                with self.assertRaises(self.module.Again):
                    sender.send_multipart([b"1", bytes(100_000), b"3"])
                with self.assertRaises(self.module.Again):
                    sender.send_multipart([b"1", bytearray(100_000)], copy=False)
                if kinds[0] == zmq.ROUTER:
                    lengths = {len(receiver.recv_multipart()) for _ in range(count)}
                    self.assertEqual(lengths, {1 + WIDTH})
                else:
                    self.check_whole(receiver, count)

    def test_mandatory_router(self):
        dealer, router = self.context.socket(zmq.DEALER), self.context.socket(zmq.ROUTER)
        router.router_mandatory = 1 if self.module is zmq else True
        router.sndhwm = dealer.rcvhwm = 3
        dealer.routing_id = b"d"
        dealer.rcvtimeo = dealer.sndtimeo = PATIENCE * 1000
        router.bind(f"inproc://{id(router)}")
        dealer.connect(router.last_endpoint)
        dealer.send(b"here")
        router.recv_multipart()
        count = 0
        with self.assertRaises(self.module.Again):
            while True:
                router.send_multipart([b"d", b"%d" % count, b"x"], self.module.DONTWAIT)
                count += 1
        for number in range(count):
            self.assertEqual(dealer.recv_multipart(), [b"%d" % number, b"x"])
        with self.assertRaises(OSError if self.module is tautline_zmq else zmq.ZMQError):
            router.send_multipart([b"nobody", b"1", b"2"])
        router.send_multipart([b"d", b"last"])
        self.assertEqual(dealer.recv_multipart(), [b"last"])

    def test_signal_during_a_wait(self):
        for size in (1, 100_000):
            with self.subTest(size):
                receiver, sender = self.pair(hwm=3)
                count = self.fill(sender, size)
                with self.assertRaises(Raised):
                    raise_after(0.01)
                    sender.send_multipart([b"1"] + [b"y" * size] * 4)
                self.check_whole(receiver, count, size)
                self.check_nothing_sent(sender, receiver)

    def test_signals_at_any_time(self):
        receiver, sender = self.pair(hwm=10)
        ends, wrong = threading.Event(), []

        def receive():
            while True:
                parts = receiver.recv_multipart()
                if parts == [b"end"]:
                    break
                if len(parts) != WIDTH or len(set(parts)) != 1:
                    wrong.append(parts)
            ends.set()

        thread = threading.Thread(target=receive)
        thread.start()
        raised = 0
        while raised < 200:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002)
                while True:
                    sender.send_multipart([b"%d" % raised] * WIDTH)
            except Raised:
                raised += 1
        sender.send_multipart([b"end"])
        self.assertTrue(ends.wait(PATIENCE))
        thread.join()
        self.assertEqual(wrong, [])

    def test_threads_on_one_socket(self):
        receiver, sender = self.pair()

        def send(number):
            for _ in range(500):
                sender.send_multipart([b"%d" % number] * WIDTH)

        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        counts = [0] * 4
        for _ in range(500 * 4):
            first, *others = receiver.recv_multipart()
            self.assertEqual(others, [first] * (WIDTH - 1))
            counts[int(first)] += 1
        for thread in threads:
            thread.join()
        self.assertEqual(counts, [500] * 4)

    def test_close_during_a_wait(self):
        receiver, sender = self.pair(hwm=3)
        count = self.fill(sender)
        inside, result = threading.Event(), []

        def send():
            inside.set()
            try:
                sender.send_multipart([b"1"] * WIDTH)
            except (OSError, zmq.ZMQError) as error:
                result.append(error.errno)

        thread = threading.Thread(target=send)
        thread.start()
        self.assertTrue(inside.wait(PATIENCE))
        sender.close()
        thread.join(PATIENCE)
        self.assertEqual(result, [zmq.ENOTSOCK])
        self.check_whole(receiver, count)

    def test_close_after_the_first_part(self):
        for endpoint in (None, "tcp://127.0.0.1:*"):
            with self.subTest(endpoint):
                receiver, sender = self.pair(zmq.PULL, zmq.PUSH, endpoint)
                sender.send_multipart([b"whole"] * 2)
                sender.send(b"part", self.module.SNDMORE)
                sender.close(1000)
                other = self.context.socket(zmq.PUSH)
                other.connect(receiver.last_endpoint)
                other.send(b"other")
                self.assertEqual(receiver.recv_multipart(), [b"whole"] * 2)
                self.assertEqual(receiver.recv_multipart(), [b"other"])


class PyzmqTest(MultipartTest, unittest.TestCase):
    module = zmq
    context_class = zmq.Context

    def test_frame_without_a_tracker(self):
        receiver, sender = self.pair()
        parts = [b"1", zmq.Frame(b"2", track=True), zmq.Frame(b"3", track=False)]
        with self.assertRaisesRegex(ValueError, "^Not a tracked message$"):
            sender.send_multipart(parts, copy=False, track=True)
        self.check_nothing_sent(sender, receiver)

    def test_tracker_is_that_of_the_last_part(self):
        receiver, sender = self.pair()
        large = [bytes(100_000), bytes(100_000)]
        tracker = sender.send_multipart(large, copy=False, track=True)
        self.assertFalse(tracker.done)
        self.assertEqual([len(part) for part in receiver.recv_multipart()], [100_000] * 2)
        tracker.wait(PATIENCE)
        self.assertTrue(sender.send_multipart([large[0], b"small"], copy=False, track=True).done)
        self.assertIsNone(sender.send_multipart(large, copy=False))
        self.assertIsNone(sender.send_multipart(large))

    def test_cancelled_wait_of_asyncio(self):
        async def main():
            context = zmq.asyncio.Context()
            receiver, sender = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
            receiver.rcvhwm = sender.sndhwm = 3
            receiver.bind("inproc://cancelled")
            sender.connect("inproc://cancelled")
            count = 0
            while True:
                sending = sender.send_multipart([b"%d" % count] * WIDTH)
                if not sending.done():
                    break
                count += 1
            sending.cancel()
            await self.check_count(receiver, sender, count)
            context.destroy(0)

        asyncio.run(asyncio.wait_for(main(), PATIENCE))


class NativeTest(MultipartTest, unittest.TestCase):
    module = tautline_zmq
    context_class = tautline_zmq.Context

    def test_send_many(self):
        receiver, sender = self.pair()
        with self.assertRaises(TypeError):
            sender.send_many([[b"a", b"b"], [b"c", 4]])
        self.assertEqual(receiver.recv_multipart(), [b"a", b"b"])
        self.check_nothing_sent(sender, receiver)

    def test_cancelled_wait_of_asyncio(self):
        async def main():
            async with tautline_zmq.aio.Context() as context:
                receiver, sender = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
                receiver.rcvhwm = sender.sndhwm = 3
                sender.connect(receiver.bind("inproc://cancelled"))
                count = 0
                try:
                    while True:
                        await asyncio.wait_for(sender.send_multipart([b"%d" % count] * WIDTH), 0.01)
                        count += 1
                except asyncio.TimeoutError:
                    pass
                await self.check_count(receiver, sender, count)
                context.destroy(0)

        asyncio.run(asyncio.wait_for(main(), PATIENCE))


if __name__ == "__main__":
    unittest.main()
