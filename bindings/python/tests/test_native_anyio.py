"""The native API on trio and asyncio by anyio."""

import unittest

try:
    import anyio
except ImportError:
    raise unittest.SkipTest("anyio is not installed") from None

from native_support import PATIENCE
from tautline_zmq import DEALER, PAIR, PULL, PUSH, ROUTER, SocketClosed, TimedOut, aio_anyio


class KeepingContext(aio_anyio.Context):
    """A context that keeps the sockets of a test alive."""

    def __init__(self):
        super().__init__()
        self.kept = []


class AnyioTest(unittest.TestCase):
    backend = "asyncio"

    def _callTestMethod(self, method):
        async def main():
            async with KeepingContext() as context:
                with anyio.fail_after(PATIENCE):
                    await method(context)
                context.close_sockets(0)

        anyio.run(main, backend=self.backend)

    @staticmethod
    def pair(context, first=PAIR, second=PAIR):
        bound, connected = context.socket(first), context.socket(second)
        context.kept += [bound, connected]
        connected.connect(bound.bind("tcp://127.0.0.1:*"))
        return bound, connected

    async def test_receivers_are_served_in_order(self, context):
        receiver, sender = self.pair(context)
        order = []

        async def take(index):
            order.append((index, await receiver.recv()))

        async with anyio.create_task_group() as group:
            for index in range(10):
                group.start_soon(take, index)
                await anyio.sleep(0.001)
            for index in range(10):
                await sender.send(b"%d" % index)
        self.assertEqual(order, [(index, b"%d" % index) for index in range(10)])

    async def test_cancelled_receives_lose_nothing(self, context):
        receiver, sender = self.pair(context)
        got = []
        for index in range(200):
            with anyio.move_on_after(0.0003):
                got.append(await receiver.recv())
            await sender.send(b"%d" % index)
        while len(got) < 200:
            got.append(await receiver.recv())
        self.assertEqual(got, [b"%d" % index for index in range(200)])

    async def test_both_directions_wait_at_the_same_time(self, context):
        server, client = self.pair(context, ROUTER, DEALER)
        client.sndhwm = client.rcvhwm = 10
        got = []

        async def echo():
            for _ in range(500):
                await server.send_multipart(await server.recv_multipart())

        async def send():
            for index in range(500):
                await client.send(b"%d" % index)

        async def receive():
            for _ in range(500):
                got.append(await client.recv())

        async with anyio.create_task_group() as group:
            for task in (echo, send, receive):
                group.start_soon(task)
        self.assertEqual(got, [b"%d" % index for index in range(500)])

    async def test_calls_that_succeed_give_way(self, context):
        receiver, sender = self.pair(context)
        sender.sndhwm = receiver.rcvhwm = 0
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                await anyio.sleep(0)
                beats += 1

        async with anyio.create_task_group() as group:
            group.start_soon(beat)
            await sender.send_many([b"x"] * 6400)
            before = beats
            for _ in range(6400):
                await receiver.recv()
            self.assertGreaterEqual(beats - before, 90)
            group.cancel_scope.cancel()

    async def test_limits_and_close_end_a_wait(self, context):
        receiver, _ = self.pair(context, PULL, PUSH)
        receiver.rcvtimeo = 10
        with self.assertRaises(TimedOut):
            await receiver.recv()
        receiver.rcvtimeo = -1
        self.assertEqual(await receiver.poll(5), 0)
        closed = []

        async def wait():
            try:
                await receiver.recv()
            except SocketClosed:
                closed.append(True)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(wait)
            await anyio.sleep(0.01)
            receiver.close()
        self.assertEqual(closed, [True] * 3)


class TrioTest(AnyioTest):
    backend = "trio"

    @classmethod
    def setUpClass(cls):
        try:
            import trio  # noqa: F401
        except ImportError:
            raise unittest.SkipTest("trio is not installed") from None


if __name__ == "__main__":
    unittest.main()
