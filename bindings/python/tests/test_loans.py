"""Frames of `loan`, whose memory other processes read in place."""

import errno
import os
import subprocess
import sys
import tempfile
import unittest

import tautline_zmq
from native_support import PACKAGE, PATIENCE, SyncTest, run_program
from tautline_zmq import PULL, PUSH, Frame, FrameProperty, loan

try:
    import numpy
except ImportError:
    numpy = None

SIZES = (0, 1, 33, 1000, 100_000, 1_000_000)
CAN_LEND = sys.platform == "linux" and tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (5, 14)


class LoanTest(SyncTest):
    def test_frame_has_the_size_and_is_writable(self):
        for size in SIZES:
            frame = loan(size)
            self.assertEqual((type(frame), len(frame)), (Frame, size))
            for view in (frame.buffer, memoryview(frame)):
                self.assertFalse(view.readonly)
                view[:] = b"x" * size
            self.assertEqual(frame, b"x" * size)

    def test_wrong_sizes_are_refused(self):
        self.assertRaises(ValueError, loan, -1)
        self.assertRaises(OverflowError, loan, 1 << 70)
        self.assertRaises(TypeError, loan, "1")
        self.assertRaises(TypeError, loan, 1.5)
        with self.assertRaisesRegex(tautline_zmq.Error, "^loan of 4611686018427387903 bytes: ") as caught:
            loan((1 << 62) - 1)
        self.assertEqual(caught.exception.errno, errno.ENOMEM)

    def test_views_are_read_only_while_a_receiver_has_the_body(self):
        receiver, sender = self.pair(PULL, PUSH)
        frame = loan(1_000_000)
        before = memoryview(frame)
        for _ in range(2):
            before[:] = b"a" * len(before)
            buffer = frame.buffer
            self.assertIs(frame.buffer, buffer)
            sender.send(frame, copy=False)
            self.assertTrue(memoryview(frame).readonly and frame.buffer.readonly)
            self.assertFalse(buffer.readonly)
            received = receiver.recv(copy=False)
            self.assertEqual(received, before)
            # The documentation warns of such a write.
            before[0] = ord("b")
            self.assertEqual(received.buffer[:2], b"ba")
            self.assertTrue(memoryview(frame).readonly)
            del received
            self.assertFalse(memoryview(frame).readonly)

    def test_frame_that_was_not_sent_stays_writable(self):
        sender, frame = self.open(PUSH), loan(1_000_000)
        self.assertRaises(tautline_zmq.Again, sender.send, frame, tautline_zmq.DONTWAIT, copy=False)
        self.assertFalse(memoryview(frame).readonly)
        self.assertEqual(len(frame.bytes), 1_000_000)
        self.assertFalse(memoryview(frame).readonly)

    def test_frame_is_sent_over_every_transport(self):
        with tempfile.TemporaryDirectory() as folder:
            for endpoint in (None, "tcp://127.0.0.1:*", f"ipc://{folder}/socket"):
                receiver, sender = self.pair(PULL, PUSH, endpoint)
                for size in SIZES:
                    for copy in (True, False):
                        frame = loan(size)
                        frame.buffer[:] = body = (bytes(range(256)) * (size // 256 + 1))[:size]
                        sender.send(frame, copy=copy)
                        del frame
                        self.assertEqual(receiver.recv(), body)

    def test_properties(self):
        frame = loan(1_000_000)
        for number in FrameProperty.TAUTLINE_IS_LOAN, 0x54410012:
            self.assertEqual(frame.get(number), 0)
        self.assertEqual(frame.get(FrameProperty.MORE), 0)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_numpy_fills_it_in_place(self):
        receiver, sender = self.pair(PULL, PUSH)
        frame = loan(800_000)
        array = numpy.frombuffer(frame, dtype=numpy.float64)
        numpy.add(numpy.arange(100_000), 0.5, out=array)
        sender.send(frame, copy=False)
        received = numpy.frombuffer(receiver.recv(copy=False))
        self.assertEqual(received.ctypes.data, array.ctypes.data)
        self.assertTrue((received == numpy.arange(100_000) + 0.5).all())

    def test_frame_of_pyzmq(self):
        source = """
import tautline_zmq, zmq
from tautline_zmq.backend import loan
context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
pull.bind("inproc://a")
push.connect("inproc://a")
frame = loan(300_000)
assert type(frame) is zmq.Frame and not frame.buffer.readonly
# Sockets of pyzmq also send frames of the native API.
for frame in frame, tautline_zmq.loan(300_000):
    frame.buffer[:] = b"z" * 300_000
    push.send(frame, copy=False)
    push.send_multipart([b"head", frame], copy=False)
    received = pull.recv(copy=False)
    assert received.bytes == b"z" * 300_000 and received.get(0x54410012) == 0 and frame.buffer.readonly
    assert pull.recv_multipart() == [b"head", b"z" * 300_000]
context.destroy(0)
try:
    loan((1 << 62) - 1)
except zmq.ZMQError as error:
    print(zmq.strerror(error.errno))
"""
        self.assertEqual(run_program(self, source, variables={"PYZMQ_BACKEND": "tautline_zmq.backend"}), "Cannot allocate memory")

    def test_frame_of_pyzmq_needs_the_native_backend(self):
        source = """
import zmq
from tautline_zmq.backend import loan
try:
    loan(1)
except RuntimeError as error:
    print(error)
"""
        output = run_program(self, source, variables={"PYZMQ_BACKEND": "cython"})
        self.assertEqual(output, "pyzmq does not run on the native backend: set PYZMQ_BACKEND=tautline_zmq.backend")


# Receives frames, checks every byte, and answers with ZMQ_TAUTLINE_IS_LOAN.
RECEIVER = """
import sys
from tautline_zmq import PAIR, Context, FrameProperty
try:
    import numpy
except ImportError:
    numpy = None
def check(frame):
    view = memoryview(frame)
    number = int.from_bytes(view[:4], sys.byteorder)
    assert bytes(view[4:]) == bytes([number % 251]) * (len(frame) - 4), number
    if numpy is not None:
        array = numpy.from_dlpack(frame)
        assert array.flags.writeable and (array[4:] == number % 251).all()
    # A program may write to what it has received. The writes do not reach the sender or later bodies.
    view[4:] = b"w" * (len(frame) - 4)
    assert frame.bytes[4:] == bytes(view[4:])
    return number
with Context() as context, context.socket(PAIR) as socket:
    socket.rcvtimeo = socket.sndtimeo = int(sys.argv[2]) * 1000
    socket.connect(sys.argv[1])
    number = 0
    while True:
        frame = socket.recv(copy=False)
        if len(frame) == 0:
            break
        assert check(frame) == number
        number += 1
        socket.send(b"%d" % frame.get(FrameProperty.TAUTLINE_IS_LOAN))
print("received", number)
"""

# Fills a loan with numpy if possible.
FILL = """
try:
    import numpy
except ImportError:
    numpy = None
def fill(frame, number):
    if numpy is not None:
        array = numpy.frombuffer(frame, dtype=numpy.uint8)
        array[:] = number % 251
        array[:4].view(numpy.uint32)[0] = number
    else:
        frame.buffer[:] = bytes([number % 251]) * len(frame)
        frame.buffer[:4] = number.to_bytes(4, sys.byteorder)
"""

# Bodies until loans have certainly begun: the ends share memory, and the receiver knows the slab.
MANY = 3000


class ProcessTest(SyncTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.endpoint = f"ipc://{folder.name}/socket"

    def receiver(self):
        """Starts a process that receives."""
        process = subprocess.Popen(
            [sys.executable, "-c", RECEIVER, self.endpoint, str(PATIENCE)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")]))},
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def end(self, process, number):
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual((output, process.returncode), (f"received {number}\n", 0))

    @unittest.skipUnless(CAN_LEND, "the system has no loans")
    def test_loan_reaches_another_process_without_a_copy(self):
        # A program of its own, because a socket with CURVE ends the loans of a process.
        source = f"""
import sys
from tautline_zmq import PAIR, Context, loan
{FILL}
with Context() as context, context.socket(PAIR) as socket:
    socket.rcvtimeo = socket.sndtimeo = int(sys.argv[2]) * 1000
    socket.bind(sys.argv[1])
    number = loans = 0
    frames = []
    while loans < 20:
        assert number < {MANY}
        # The receiver has at most the last body, so earlier frames are free again.
        frame = next((frame for frame in frames if not memoryview(frame).readonly), None)
        if frame is None:
            frame = loan(300_000)
            frames.append(frame)
            assert len(frames) <= 8
        fill(frame, number)
        socket.send(frame, copy=False)
        loans += int(socket.recv())
        number += 1
    socket.send(b"")
    print(number)
"""
        receiver = self.receiver()
        self.end(receiver, run_program(self, source, self.endpoint, str(PATIENCE)))

    def test_children_of_multiprocessing_end_while_loans_are_held(self):
        source = """
import multiprocessing, sys
import tautline_zmq
from tautline_zmq import PAIR, Context, loan
FILL

SIZE, COUNT = 1 << 20, 200
held = []
def check(frames):
    for frame, number in frames:
        view = memoryview(frame)
        assert bytes(view[4:]) == bytes([number % 251]) * (SIZE - 4), number
        assert int.from_bytes(view[:4], sys.byteorder) == number
def child():
    check(held)
    try:
        socket.send(b"x")
    except tautline_zmq.SocketClosed:
        pass
    own = loan(SIZE)
    assert own == bytes(SIZE)
    fill(own, 7)
    check([(own, 7)])
    # The child sends, too.
    with Context() as other, other.socket(PAIR) as first, other.socket(PAIR) as second:
        first.rcvtimeo = int(sys.argv[2]) * 1000
        second.connect(first.bind("inproc://child"))
        second.send(own, copy=False)
        check([(first.recv(copy=False), 7)])
    held.clear()
fork = multiprocessing.get_context("fork")
with Context() as context, context.socket(PAIR) as socket:
    socket.rcvtimeo = socket.sndtimeo = int(sys.argv[2]) * 1000
    socket.bind(sys.argv[1])
    loans, running = 0, None
    for number in range(COUNT):
        frame = loan(SIZE)
        fill(frame, number)
        held.append((frame, number))
        if number % 50 == 25:
            # This one runs beside the following sends.
            running = fork.Process(target=child)
            running.start()
        socket.send(frame, copy=False)
        loans += int(socket.recv())
        if number % 50 == 30:
            running.join()
            assert running.exitcode == 0, running.exitcode
            check(held)
            held = held[-3:]
        if number % 50 == 40:
            done = fork.Process(target=child)
            done.start()
            done.join()
            assert done.exitcode == 0, done.exitcode
            check(held)
            held = held[-3:]
    socket.send(b"")
    print(loans > 0)
""".replace("FILL", FILL)
        receiver = self.receiver()
        self.assertEqual(run_program(self, source, self.endpoint, str(PATIENCE)), str(CAN_LEND))
        self.end(receiver, 200)


if __name__ == "__main__":
    unittest.main()
