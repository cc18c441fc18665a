"""The native API: messages, buffers, frames and batches."""

import array
import pickle
import threading
import unittest

from native_support import SyncTest
from tautline_zmq import (
    CLIENT,
    DEALER,
    DISH,
    DONTWAIT,
    PUB,
    PULL,
    PUSH,
    RADIO,
    REP,
    REQ,
    ROUTER,
    SERVER,
    SNDMORE,
    SUB,
    Again,
    Frame,
    InvalidState,
    SocketClosed,
    TimedOut,
)

SIZES = (0, 1, 33, 255, 256, 65_535, 65_536, 65_537, 1_000_000)


class TransferTest(SyncTest):
    def test_part_of_every_size_arrives(self):
        for endpoint in (None, "tcp://127.0.0.1:*"):
            receiver, sender = self.pair(PULL, PUSH, endpoint)
            for size in SIZES:
                body = bytes(range(256)) * (size // 256) + bytes(size % 256)
                for data in (body, bytearray(body), memoryview(body), Frame(body)):
                    for copy in (True, False):
                        sender.send(data, copy=copy)
                        self.assertEqual(receiver.recv(), body)
                        sender.send(data, copy=copy)
                        frame = receiver.recv(copy=False)
                        self.assertIs(type(frame), Frame)
                        self.assertEqual((bytes(memoryview(frame)), len(frame)), (body, size))

    def test_objects_with_the_buffer_protocol_are_sent(self):
        receiver, sender = self.pair()
        numbers = array.array("d", [1.0, 2.5])
        sender.send(numbers)
        self.assertEqual(receiver.recv(), numbers.tobytes())

    def test_str_is_refused(self):
        receiver, sender = self.pair()
        for call in (lambda: sender.send("x"), lambda: sender.send_multipart(["x"]), lambda: sender.send_multipart("xy")):
            self.assertRaises(TypeError, call)
        self.assertRaises(TypeError, sender.send, 5)
        self.assertRaises(TypeError, sender.send_multipart, b"parts")
        self.assertRaises(ValueError, sender.send_multipart, [])
        self.assertFalse(receiver.poll(0))

    def test_message_with_an_invalid_part_is_not_sent(self):
        receiver, sender = self.pair()
        self.assertRaises(TypeError, sender.send_multipart, [b"first", 5])
        sender.send(b"next")
        self.assertEqual(receiver.recv_multipart(), [b"next"])

    def test_message_keeps_its_parts(self):
        receiver, sender = self.pair(endpoint="tcp://127.0.0.1:*")
        for parts in ([b"a"], [b"a", b"", b"c" * 100_000], [bytearray(b"x"), memoryview(b"y"), Frame(b"z")]):
            for copy in (True, False):
                sender.send_multipart(parts, copy=copy)
                self.assertEqual(receiver.recv_multipart(), [bytes(part) for part in map(memoryview, parts)])
        sender.send_multipart(iter([b"a", b"b"]))
        frames = receiver.recv_multipart(copy=False)
        self.assertEqual([frame.more for frame in frames], [True, False])
        sender.send(b"a", SNDMORE)
        sender.send(b"b")
        self.assertEqual((receiver.recv(), receiver.rcvmore, receiver.recv(), receiver.rcvmore), (b"a", True, b"b", False))

    def test_recv_into_fills_a_buffer(self):
        receiver, sender = self.pair()
        room = bytearray(4)
        sender.send(b"abc")
        self.assertEqual((receiver.recv_into(room), room), (3, b"abc\0"))
        sender.send(b"defghi")
        self.assertEqual((receiver.recv_into(room, nbytes=2), room), (6, b"dec\0"))
        self.assertRaises(BufferError, receiver.recv_into, b"read-only")
        self.assertRaises(ValueError, receiver.recv_into, room, nbytes=5)
        self.assertRaises(ValueError, receiver.recv_into, room, nbytes=-1)

    def test_recv_many_returns_whole_messages(self):
        receiver, sender = self.pair()
        self.assertEqual(sender.send_many([b"1", [b"2", b"3"], bytearray(b"4"), (b"5",)]), 4)
        self.assertEqual(receiver.recv_many(2), [b"1", b"2", b"3"])
        self.assertEqual(receiver.recv_many(), [b"4", b"5"])
        self.assertEqual(receiver.recv_batch(), [])
        sender.send_many([b"1", [b"2", b"3"]])
        self.assertEqual(receiver.recv_many_multipart(), [[b"1"], [b"2", b"3"]])
        self.assertRaises(ValueError, receiver.recv_many, 0)

    def test_recv_many_waits_for_the_first_message(self):
        receiver, sender = self.pair()
        timer = threading.Timer(0.05, sender.send, [b"late"])
        timer.start()
        self.assertEqual(receiver.recv_many(), [b"late"])
        timer.join()
        receiver.rcvtimeo = 1
        self.assertRaises(TimedOut, receiver.recv_many)

    def test_send_many_stops_at_the_high_water_mark(self):
        sender, receiver = self.open(PUSH), self.open(PULL)
        sender.hwm = receiver.hwm = 5
        receiver.connect(sender.bind("inproc://full"))
        sent = sender.send_many([b"x"] * 1000, DONTWAIT)
        self.assertTrue(0 < sent < 1000)
        self.assertEqual(len(receiver.recv_many()), sent)
        self.assertRaises(TypeError, sender.send_many, [b"x", 5])

    def test_text_and_json(self):
        receiver, sender = self.pair()
        sender.send_string("grüße")
        sender.send_json({"a": [1, None]})
        self.assertEqual(receiver.recv_string(), "grüße")
        self.assertEqual(receiver.recv_json(), {"a": [1, None]})

    def test_dontwait_and_timeouts_differ(self):
        receiver, _ = self.pair()
        with self.assertRaises(Again) as again:
            receiver.recv(DONTWAIT)
        self.assertNotIsInstance(again.exception, TimeoutError)
        self.assertIsInstance(again.exception, BlockingIOError)
        receiver.rcvtimeo = 1
        with self.assertRaisesRegex(TimedOut, r"recv on PAIR inproc://.*: no message arrived within 1 ms") as timed_out:
            receiver.recv()
        self.assertIsInstance(timed_out.exception, TimeoutError)
        self.assertIsInstance(timed_out.exception, Again)
        lonely = self.open(PUSH)
        lonely.sndtimeo = 1
        with self.assertRaisesRegex(TimedOut, "send on PUSH: no peer had room within 1 ms"):
            lonely.send(b"x")

    def test_request_without_reply_is_an_invalid_state(self):
        reply, request = self.pair(REP, REQ)
        self.assertRaises(InvalidState, request.recv)
        request.send(b"q")
        self.assertRaises(InvalidState, request.send, b"q")
        self.assertRaises(InvalidState, reply.send, b"r")

    def test_server_replies_by_routing_id(self):
        server, client = self.pair(SERVER, CLIENT, "tcp://127.0.0.1:*")
        client.send(b"question")
        frame = server.recv(copy=False)
        self.assertGreater(frame.routing_id, 0)
        server.send(b"answer", routing_id=frame.routing_id)
        self.assertEqual(client.recv(), b"answer")

    def test_dish_receives_its_groups(self):
        radio, dish = self.pair(RADIO, DISH, "tcp://127.0.0.1:*")
        dish.join("news")
        while not dish.poll(1):
            radio.send(b"other", group="sport")
            radio.send(b"text", group="news")
        frame = dish.recv(copy=False)
        self.assertEqual((bytes(memoryview(frame)), frame.group), (b"text", "news"))

    def test_router_knows_the_peer(self):
        router, dealer = self.open(ROUTER), self.open(DEALER)
        dealer.routing_id = b"me"
        dealer.connect(router.bind("tcp://127.0.0.1:*"))
        dealer.send(b"hello")
        self.assertEqual(router.recv_multipart(), [b"me", b"hello"])
        router.send_multipart([b"me", b"hi"])
        self.assertEqual(dealer.recv(), b"hi")

    def test_closed_socket_raises(self):
        receiver, sender = self.pair()
        receiver.close()
        self.assertTrue(receiver.closed)
        for call in (receiver.recv, receiver.recv_many, receiver.poll, lambda: receiver.send(b""), lambda: receiver.linger):
            self.assertRaises(SocketClosed, call)
        receiver.close()


class FrameTest(SyncTest):
    def test_received_memory_of_others_is_read_only(self):
        body = b"x" * 100_000
        receiver, sender = self.pair()
        sender.send(body, copy=False)
        publisher, subscriber = self.pair(PUB, SUB)
        other = self.open(SUB)
        other.connect(publisher.last_endpoint)
        for socket in (subscriber, other):
            socket.subscribe("")
        publisher.wait_for_peers(2)
        publisher.send(body)
        for socket in (receiver, subscriber, other):
            frame = socket.recv(copy=False)
            with self.assertRaises(TypeError):
                memoryview(frame)[0] = 1
            with self.assertRaises(BufferError):
                socket.recv_into(frame, flags=DONTWAIT)
        # The memory of this message belongs to the receiver alone.
        receiver, sender = self.pair(endpoint="tcp://127.0.0.1:*")
        for size in (10, 1000, 100_000):
            sender.send(b"x" * size)
            frame = receiver.recv(copy=False)
            memoryview(frame)[0] = 1
            self.assertEqual(frame.bytes[:1], b"\1")

    def received(self, body):
        receiver, sender = self.pair(endpoint="tcp://127.0.0.1:*")
        sender.send(body)
        return receiver.recv(copy=False)

    def test_views_outlive_the_socket_and_the_frame(self):
        body = bytes(range(256)) * 1000
        view = memoryview(self.received(body))
        self.context.destroy(0)
        self.assertEqual(view, body)

    def test_frame_is_pickled_in_and_out_of_band(self):
        for body in (b"small", bytes(200_000)):
            frame = self.received(body)
            for protocol in (2, 4, 5):
                self.assertEqual(pickle.loads(pickle.dumps(frame, protocol)), body)
            buffers = []
            data = pickle.dumps(frame, 5, buffer_callback=buffers.append)
            self.assertLess(len(data), 1000)
            self.assertEqual(pickle.loads(data, buffers=buffers), body)

    def test_object_pickled_out_of_band_is_sent_without_copies(self):
        receiver, sender = self.pair(endpoint="tcp://127.0.0.1:*")
        value = {"a": bytearray(b"x" * 100_000), "b": pickle.PickleBuffer(b"y" * 100_000)}
        buffers = []
        head = pickle.dumps(value["b"], 5, buffer_callback=buffers.append)
        sender.send_multipart([head, *buffers], copy=False)
        first, *rest = receiver.recv_multipart(copy=False)
        self.assertEqual(bytes(pickle.loads(first, buffers=rest)), b"y" * 100_000)

    def test_numpy_reads_a_frame_without_a_copy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        numbers = numpy.arange(50_000, dtype="f8")
        receiver, sender = self.pair(endpoint="tcp://127.0.0.1:*")
        sender.send(numbers, copy=False)
        frame = receiver.recv(copy=False)
        self.assertTrue((numpy.frombuffer(frame, dtype="f8") == numbers).all())
        sender.send(numbers)
        room = numpy.empty_like(numbers)
        self.assertEqual(receiver.recv_into(room), numbers.nbytes)
        self.assertTrue((room == numbers).all())

    def test_properties_of_the_peer(self):
        receiver, sender = self.pair(PULL, PUSH, "tcp://127.0.0.1:*")
        sender.send(b"x")
        frame = receiver.recv(copy=False)
        self.assertEqual((frame.peer_address, frame.socket_type, frame.user_id), ("127.0.0.1", "PUSH", None))
        self.assertEqual((frame.routing_id, frame.group, repr(frame)), (0, "", "<Frame of 1 bytes>"))
        self.assertRaises(TypeError, hash, frame)


if __name__ == "__main__":
    unittest.main()
