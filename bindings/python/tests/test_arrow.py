"""Arrow reads a received frame in place, and its buffers are sent from their memory."""

import unittest

import tautline_zmq
from native_support import SyncTest
from tautline_zmq import PULL, PUSH

try:
    import pyarrow
    import pyarrow.ipc
except ImportError:
    pyarrow = None

ROWS = 100_000


@unittest.skipIf(pyarrow is None, "pyarrow is not installed")
class ArrowTest(SyncTest):
    ENDPOINTS = None, "tcp://127.0.0.1:*", "ipc://@tautline-arrow-%d"

    def batch(self):
        return pyarrow.record_batch({"number": pyarrow.array(range(ROWS)), "text": pyarrow.array(["a", None] * (ROWS // 2))})

    def stream(self, batch):
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue()

    def assert_inside(self, buffer, frame):
        """The memory of `buffer` is a part of that of `frame`."""
        outer = pyarrow.py_buffer(frame)
        self.assertGreaterEqual(buffer.address, outer.address)
        self.assertLessEqual(buffer.address + buffer.size, outer.address + outer.size)

    def test_stream(self):
        batch = self.batch()
        for endpoint in self.ENDPOINTS:
            with self.subTest(endpoint):
                receiver, sender = self.pair(PULL, PUSH, endpoint and endpoint.replace("%d", str(id(self))))
                for copy in (True, False):
                    sender.send(self.stream(batch), copy=copy)
                    frame = receiver.recv(copy=False)
                    self.assertEqual(pyarrow.py_buffer(frame).size, len(frame))
                    with pyarrow.ipc.open_stream(pyarrow.py_buffer(frame)) as reader:
                        received = reader.read_all()
                    self.assertTrue(received.equals(pyarrow.Table.from_batches([batch])))
                    for column in received.columns:
                        for buffer in column.chunk(0).buffers():
                            if buffer is not None:
                                self.assert_inside(buffer, frame)
                    # The table keeps the message alive.
                    del frame, reader
                    self.assertEqual(received.column("number")[ROWS - 1].as_py(), ROWS - 1)

    def test_buffer_is_sent_from_its_memory(self):
        receiver, sender = self.pair(PULL, PUSH)
        for size in (100, 100_000):
            buffer = pyarrow.py_buffer(b"x" * size)
            sender.send(buffer, copy=False)
            frame = receiver.recv(copy=False)
            # Over inproc, the receiver sees the memory of the sender. Small bodies are copied.
            self.assertEqual(pyarrow.py_buffer(frame).address == buffer.address, size == 100_000)
            self.assertEqual(frame, b"x" * size)
            self.assertEqual(pyarrow.py_buffer(frame).is_mutable, size == 100)

    def test_columns_as_parts(self):
        """The memory of each column is a part, so that no stream is made."""
        batch = self.batch()
        receiver, sender = self.pair(PULL, PUSH)
        buffers = [buffer for column in batch.columns for buffer in column.buffers()]
        sender.send_multipart([b"" if buffer is None else buffer for buffer in buffers], copy=False)
        frames = receiver.recv_multipart(copy=False)
        received, at = [], 0
        for column in batch.columns:
            count = len(column.buffers())
            parts = [pyarrow.py_buffer(frame) if len(frame) else None for frame in frames[at : at + count]]
            received.append(pyarrow.Array.from_buffers(column.type, ROWS, parts))
            at += count
        self.assertTrue(pyarrow.record_batch(received, batch.schema.names).equals(batch))
        number = received[0].buffers()[1]
        self.assertEqual(number.address, batch.column(0).buffers()[1].address)

    def test_pyzmq(self):
        """The same with pyzmq's classes."""
        import zmq

        context = zmq.Context()
        self.addCleanup(context.destroy, 0)
        receiver, sender = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        receiver.bind("inproc://arrow")
        sender.connect("inproc://arrow")
        stream = self.stream(self.batch())
        tracker = sender.send(stream, copy=False, track=True)
        frame = receiver.recv(copy=False)
        self.assertEqual(pyarrow.py_buffer(frame).address, stream.address)
        with pyarrow.ipc.open_stream(pyarrow.py_buffer(frame.buffer)) as reader:
            self.assertEqual(reader.read_all().num_rows, ROWS)
        del reader, frame
        tracker.wait(60)

    def test_frame_of_arrow(self):
        frame = tautline_zmq.Frame(pyarrow.py_buffer(b"x" * 100_000), copy=False)
        self.assertEqual(memoryview(frame), b"x" * 100_000)


if __name__ == "__main__":
    unittest.main()
