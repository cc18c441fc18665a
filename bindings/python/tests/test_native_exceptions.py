"""The native API: an exception that leaves a `with` block is not held up by unsent messages.

Each program runs in a process of its own, which `run_program` ends if it hangs.
"""

import importlib.util
import unittest

from native_support import SyncTest, run_program
from tautline_zmq import PULL, PUSH, Context, Option
from tautline_zmq.sockets import ClosedByWith

class Recorder(ClosedByWith):
    """An object of the tests whose `close` can be replaced."""


# No socket is bound to the endpoint, so the message stays unsent.
SYNC = """
import sys
from tautline_zmq import PUSH, Context

try:
    {block}
except RuntimeError as error:
    print(error, context.closed, socket.closed)
"""
SYNC_BLOCKS = {
    "context and socket": """
    with Context() as context, context.socket(PUSH) as socket:
        socket.connect("ipc://@tautline-no-such-socket")
        socket.send(b"unsent")
        raise RuntimeError("shown")
""",
    "context": """
    with Context() as context:
        socket = context.socket(PUSH)
        socket.connect("ipc://@tautline-no-such-socket")
        socket.send(b"unsent")
        raise RuntimeError("shown")
""",
    "socket": """
    context = Context()
    try:
        with context.socket(PUSH) as socket:
            socket.connect("ipc://@tautline-no-such-socket")
            socket.send(b"unsent")
            raise RuntimeError("shown")
    finally:
        context.term()
""",
}
ASYNC = """
import {runner}
from tautline_zmq import PUSH, {module}

async def main():
    global context, socket
    async with {module}.Context() as context:
        {block}

try:
    {run}
except RuntimeError as error:
    print(error, context.closed, socket.closed)
"""
BODY = """
            socket.connect("ipc://@tautline-no-such-socket")
            await socket.send(b"unsent")
            raise RuntimeError("shown")
"""
ASYNC_BLOCKS = {
    "with": f"with context.socket(PUSH) as socket:{BODY}",
    "async with": f"async with context.socket(PUSH) as socket:{BODY}",
    "context": f"socket = context.socket(PUSH)\n        if True:{BODY}",
}
WAITING = """
import threading
from tautline_zmq import PULL, Context, SocketClosed

waiting = threading.Event()

def wait(socket):
    waiting.set()
    try:
        socket.recv()
    except SocketClosed:
        print("closed")

try:
    with Context() as context:
        socket = context.socket(PULL)
        thread = threading.Thread(target=wait, args=(socket,))
        thread.start()
        waiting.wait()
        raise RuntimeError("shown")
except RuntimeError as error:
    thread.join()
    print(error)
"""
REPLAY = """
from tautline_zmq import Context
from tautline_zmq.replay import ReliablePub

try:
    with Context() as context, ReliablePub(context=context) as publisher:
        publisher.bind("tcp://127.0.0.1:*")
        publisher.send(b"topic", b"unsent")
        raise RuntimeError("shown")
except RuntimeError as error:
    print(error, publisher.closed)
"""


class ExceptionTest(SyncTest):
    def test_sync_block_shows_the_exception(self):
        for name, block in SYNC_BLOCKS.items():
            with self.subTest(name):
                self.assertEqual(run_program(self, SYNC.format(block=block.strip())), "shown True True")

    def check_async(self, **names):
        for name, block in ASYNC_BLOCKS.items():
            with self.subTest(name):
                self.assertEqual(run_program(self, ASYNC.format(block=block, **names)), "shown True True")

    def test_asyncio_block_shows_the_exception(self):
        self.check_async(runner="asyncio", module="aio", run="asyncio.run(main())")

    def test_anyio_block_shows_the_exception(self):
        for backend in ("asyncio", "trio"):
            if importlib.util.find_spec("anyio") is None or importlib.util.find_spec(backend) is None:
                self.skipTest(f"anyio or {backend} is not installed")
            self.check_async(runner="anyio", module="aio_anyio", run=f"anyio.run(main, backend={backend!r})")

    def test_exception_closes_a_socket_that_another_thread_waits_for(self):
        self.assertEqual(run_program(self, WAITING), "closed\nshown")

    def test_reliable_publisher_shows_the_exception(self):
        self.assertEqual(run_program(self, REPLAY), "shown True")

    def test_shorter_linger_stays(self):
        for linger, after in ((-1, 1000), (5000, 1000), (1000, 1000), (20, 20), (0, 0)):
            used = []
            closing = Recorder()
            closing._linger, closing.close = linger, used.append
            with self.assertRaises(KeyError), closing:
                raise KeyError
            self.assertEqual(used, [after])
            socket = self.open(PUSH)
            self.assertEqual(socket._linger, -1)
            socket.linger = linger
            self.assertEqual(socket._linger, linger)
            socket.set(Option.LINGER, linger + 1)
            self.assertEqual(socket._linger, linger + 1)
        self.context.blocky = False
        self.assertEqual(self.open(PUSH)._linger, 0)

    def test_exception_does_not_drop_messages_that_can_be_sent(self):
        receiver = self.open(PULL)
        endpoint = receiver.bind("tcp://127.0.0.1:*")
        with self.assertRaises(RuntimeError), Context() as context, context.socket(PUSH) as sender:
            sender.connect(endpoint)
            sender.wait_for_peers(1)
            sender.send(b"sent")
            raise RuntimeError
        self.assertEqual(receiver.recv(), b"sent")


if __name__ == "__main__":
    unittest.main()
