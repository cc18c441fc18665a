"""Sending and receiving: parts, messages, frames and batches."""

import threading
import unittest

import zmq
from support import SocketTest
from zmq.backend import Socket as Native

SIZES = (0, 1, 40, 41, 255, 256, 65_535, 65_536, 65_537, 1_000_000)


class TransferTest(SocketTest):
    def test_part_of_every_size_arrives(self):
        for endpoint in (None, "tcp://127.0.0.1:*"):
            sender, receiver = self.pair(endpoint=endpoint)
            for size in SIZES:
                body = bytes(range(256)) * (size // 256) + bytes(size % 256)
                for data in (body, bytearray(body), memoryview(body)):
                    for copy in (True, False):
                        sender.send(data, copy=copy)
                        self.assertEqual(receiver.recv(), body)
                        sender.send(data, copy=copy)
                        frame = receiver.recv(copy=False)
                        self.assertIs(type(frame), zmq.Frame)
                        self.assertEqual((frame.bytes, bytes(frame.buffer), len(frame)), (body, body, size))

    def test_methods_of_zmq_socket_are_native(self):
        for name in ("send", "recv", "send_multipart", "recv_multipart"):
            self.assertIs(getattr(zmq.Socket, name), getattr(Native, name))

    def test_message_keeps_its_parts(self):
        sender, receiver = self.pair()
        for parts in ([b"a"], [b"a", b"", b"c" * 100_000], [bytearray(b"x"), memoryview(b"y"), zmq.Frame(b"z")]):
            sender.send_multipart(parts)
            self.assertEqual(receiver.recv_multipart(), [bytes(part) for part in parts])
            sender.send_multipart(parts, copy=False)
            frames = receiver.recv_multipart(copy=False)
            self.assertEqual([frame.bytes for frame in frames], [bytes(part) for part in parts])
            self.assertEqual([frame.more for frame in frames], [True] * (len(parts) - 1) + [False])

    def test_wrong_part_sends_nothing(self):
        sender, receiver = self.pair()
        with self.assertRaisesRegex(TypeError, r"Frame 1 \(3\) does not support the buffer interface") as caught:
            sender.send_multipart([b"a", 3])
        self.assertIsInstance(caught.exception.__context__, TypeError)
        with self.assertRaises(IndexError):
            sender.send_multipart([])
        sender.send(b"next")
        self.assertEqual(receiver.recv_multipart(), [b"next"])

    def test_subclass_that_overrides_send_or_recv_is_called(self):
        called = []

        class Mixin:
            def send(self, data, *arguments, **keywords):
                called.append(bytes(data))
                return super().send(data, *arguments, **keywords)

        class Sender(Mixin, zmq.Socket):
            pass

        class Receiver(zmq.Socket):
            def recv(self, *arguments, **keywords):
                part = super().recv(*arguments, **keywords)
                called.append(part)
                return part

            def recv_multipart(self, *arguments, **keywords):
                return super().recv_multipart(*arguments, **keywords)

        sender, receiver = self.pair()
        Sender(shadow=sender).send_multipart([b"a", b"b"])
        self.assertEqual(called, [b"a", b"b"])
        self.assertEqual(Receiver(shadow=receiver).recv_multipart(), [b"a", b"b"])
        self.assertEqual(called, [b"a", b"b"] * 2)

    def test_tracker_is_done_after_the_memory_is_released(self):
        sender, receiver = self.pair()
        sender.copy_threshold = 0
        for size in (3, 100_000):
            data = bytearray(size)
            tracker = sender.send(data, copy=False, track=True)
            with self.assertRaises(BufferError):
                data.append(1)
            frame = receiver.recv(copy=False)
            self.assertFalse(tracker.done)
            del frame
            tracker.wait(60)
            data.append(1)

    def test_untracked_frame_is_refused(self):
        sender, _ = self.pair()
        with self.assertRaisesRegex(ValueError, "Not a tracked message"):
            sender.send(zmq.Frame(b"x"), track=True)

    def test_receive_into_a_buffer(self):
        sender, receiver = self.pair()
        room = bytearray(4)
        for body, nbytes, seen in ((b"abcdef", 0, b"abcd"), (b"xy", 0, b"xycd"), (b"123", 1, b"1ycd"), (b"", 0, b"1ycd")):
            sender.send(body)
            self.assertEqual(receiver.recv_into(room, nbytes=nbytes), len(body))
            self.assertEqual(room, seen)
        for buffer in (b"read-only", memoryview(bytearray(9))[::2]):
            with self.assertRaises(BufferError):
                receiver.recv_into(buffer)
        for nbytes in (-1, 5):
            with self.assertRaises(ValueError):
                receiver.recv_into(room, nbytes=nbytes)

    def test_batches(self):
        sender, receiver = self.pair(zmq.PUSH, zmq.PULL)
        messages = [b"%d" % number for number in range(700)]
        messages += [[b"a", b"b"], bytearray(b"c"), b"d" * 100_000, [b"e" * 100_000, b""], b"f"]
        self.assertEqual(sender.send_many(messages), len(messages))
        received = receiver.recv_many(10)
        self.assertEqual(len(received), 10)
        received += receiver.recv_many() + receiver.recv_batch()
        self.assertEqual(received, messages)
        self.assertEqual(receiver.recv_batch(), [])
        self.assertEqual(receiver.recv_many(0), [])
        with self.assertRaises(zmq.Again):
            receiver.recv_many(flags=zmq.NOBLOCK)

    def test_batch_stops_at_the_high_water_mark(self):
        sender = self.context.socket(zmq.PUSH)
        sender.sndhwm = 10
        receiver = self.context.socket(zmq.PULL)
        receiver.rcvhwm = 10
        sender.bind("inproc://mark")
        receiver.connect("inproc://mark")
        sent = sender.send_many([b"x"] * 1000, zmq.NOBLOCK)
        self.assertTrue(1 <= sent < 1000, sent)
        self.assertEqual(receiver.recv_batch(), [b"x"] * sent)
        sender.sndtimeo = 10
        sent = sender.send_many([b"y"] * 1000)
        self.assertTrue(1 <= sent < 1000, sent)
        with self.assertRaises(zmq.Again):
            sender.send_many([b"z"])
        self.assertEqual(receiver.recv_batch(), [b"y"] * sent)
        with self.assertRaises(TypeError):
            sender.send_many([b"x", 3])

    def test_attempts_raise_no_exception(self):
        sender, receiver = self.pair()
        self.assertIsNone(receiver._try_recv())
        self.assertIsNone(receiver._try_recv_multipart())
        self.assertTrue(sender._try_send(b"a") and sender._try_send(bytearray(b"b"), zmq.SNDMORE))
        self.assertTrue(sender._try_send(b"c"))
        self.assertEqual((receiver._try_recv(), receiver._try_recv_multipart()), (b"a", [b"b", b"c"]))
        lonely = self.context.socket(zmq.PUSH)
        self.assertFalse(lonely._try_send(b"a"))

    def test_blocked_receive_lets_other_threads_run(self):
        sender, receiver = self.pair()
        received = []
        thread = threading.Thread(target=lambda: received.append(receiver.recv()))
        thread.start()
        sender.send(b"x")
        thread.join()
        self.assertEqual(received, [b"x"])

    def test_group_and_routing_id(self):
        server, client = self.pair(zmq.SERVER, zmq.CLIENT)
        client.send(b"question")
        question = server.recv(copy=False)
        server.send(b"answer", routing_id=question.routing_id)
        self.assertEqual(client.recv(), b"answer")
        dish, radio = self.pair(zmq.DISH, zmq.RADIO)
        dish.join("news")
        radio.send(b"now", group="news")
        self.assertEqual(dish.recv(copy=False).group, "news")
        for wrong in (0, -1, 2**32):
            with self.assertRaises((zmq.ZMQError, OverflowError)):
                server.send(b"x", routing_id=wrong)


class FrameTest(unittest.TestCase):
    def test_frame_with_views_cannot_be_initialised_again(self):
        frame = zmq.Frame(b"x" * 100, copy=False)
        view = frame.buffer
        with self.assertRaises(BufferError):
            frame.__init__(b"other")
        self.assertEqual(bytes(view), b"x" * 100)
        self.assertIs(frame.buffer, view)

    def test_released_view_is_replaced(self):
        frame = zmq.Frame(b"body")
        view = frame.buffer
        self.assertIs(frame.buffer, view)
        view.release()
        self.assertEqual(bytes(frame.buffer), b"body")

    def test_memory_that_may_not_be_written_stays_read_only(self):
        frame = zmq.Frame(b"x" * 100, copy=False)
        for same in (frame, frame.fast_copy()):
            with self.assertRaises(TypeError):
                memoryview(same)[0] = 1
        for writable in (zmq.Frame(bytearray(100), copy=False), zmq.Frame(b"x" * 100, copy=True)):
            memoryview(writable)[0] = 1

    def test_copies_share_the_body(self):
        frame = zmq.Frame(bytearray(b"x" * 100), copy=False, track=True)
        second = frame.fast_copy()
        self.assertEqual((second.bytes, second.tracker), (frame.bytes, frame.tracker))
        tracker = frame.tracker
        del frame
        self.assertFalse(tracker.done)
        del second
        tracker.wait(60)

    def test_cycles_are_collected(self):
        import gc
        import weakref

        class Frame(zmq.Frame):
            data = None

        frame = Frame(b"x")
        frame.data = frame
        frame.tracker = [frame]
        gone = weakref.ref(frame)
        del frame
        gc.collect()
        self.assertIsNone(gone())


if __name__ == "__main__":
    unittest.main()
