"""The native API on asyncio: types that several threads may use, `recv_into`, changes of the event loop, and mistakes."""

import asyncio
import threading
import unittest
from unittest import mock

import tautline_zmq
from native_support import AsyncTest, run_program
from tautline_zmq import (
    CLIENT,
    DISH,
    DONTWAIT,
    GATHER,
    PULL,
    RADIO,
    SCATTER,
    SERVER,
    Again,
    SocketClosed,
    TimedOut,
    aio,
)
from tautline_zmq._beyond import Receiver


class TypesTest(AsyncTest):
    async def test_client_and_server_exchange_messages(self, context):
        for endpoint in ("tcp://127.0.0.1:*", "inproc://exchange"):
            server, client = self.pair(context, SERVER, CLIENT, endpoint)

            async def serve(server=server):
                for _ in range(300):
                    frame = await server.recv(copy=False)
                    await server.send(bytes(frame), routing_id=frame.routing_id)

            task = asyncio.ensure_future(serve())
            for index in range(300):
                await client.send(b"%d" % index)
                self.assertEqual(await client.recv(), b"%d" % index)
            await task

    async def test_types_for_many_threads_wait_for_room(self, context):
        for endpoint in ("tcp://127.0.0.1:*", "inproc://room"):
            gather, scatter = context.socket(GATHER), context.socket(SCATTER)
            gather.rcvhwm = scatter.sndhwm = 10
            scatter.connect(gather.bind(endpoint))
            task = asyncio.ensure_future(scatter.send_many([bytes(100_000)] * 200))
            received = 0
            while received < 200:
                received += len(await gather.recv_many())
            self.assertEqual(await task, 200)

    async def test_group_reaches_its_dish(self, context):
        radio, dish = self.pair(context, RADIO, DISH)
        dish.join("news")
        while not await dish.poll(1):
            await radio.send(b"x", group="news")
        frame = await dish.recv(copy=False)
        self.assertEqual((bytes(frame), frame.group), (b"x", "news"))

    async def test_waits_of_types_for_many_threads_end(self, context):
        client = context.socket(CLIENT)
        client.rcvtimeo = 20
        with self.assertRaises(TimedOut):
            await client.recv()
        client.rcvtimeo = -1
        for _ in range(3):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(client.recv(), 0.01)
        task = asyncio.ensure_future(client.recv())
        await asyncio.sleep(0)
        client.close()
        with self.assertRaises(SocketClosed):
            await task

    async def test_receive_into_a_buffer(self, context):
        receiver, sender = self.pair(context)
        buffer = bytearray(4)
        task = asyncio.ensure_future(receiver.recv_into(buffer))
        await asyncio.sleep(0)
        await sender.send(b"abcdef")
        self.assertEqual((await task, buffer), (6, b"abcd"))
        await sender.send(b"xy")
        self.assertEqual((await receiver.recv_into(buffer, nbytes=1), buffer), (2, b"xbcd"))
        await sender.send(b"")
        self.assertEqual(await receiver.recv_into(buffer), 0)
        with self.assertRaises(Again):
            await receiver.recv_into(buffer, flags=DONTWAIT)
        with self.assertRaises(ValueError):
            await receiver.recv_into(buffer, nbytes=5)
        with self.assertRaises(BufferError):
            await receiver.recv_into(b"fixed")

    async def test_mistakes_name_the_remedy(self, context):
        socket = context.socket(PULL)
        with self.assertRaisesRegex(TypeError, "async for"):
            list(socket)
        with tautline_zmq.Context() as blocking, blocking.socket(PULL) as blocking_socket:
            for wrong in (blocking, blocking_socket):
                with self.assertRaisesRegex(TypeError, "tautline_zmq.aio.Context"):
                    async with wrong:
                        pass
                with self.assertRaisesRegex(TypeError, "tautline_zmq.aio.Context"):
                    await wrong
            with self.assertRaisesRegex(TypeError, "tautline_zmq.aio.Context"):
                async for _ in blocking_socket:
                    pass

    async def test_exception_of_a_signal_handler_loses_no_wake_up(self, context):
        receiver, sender = self.pair(context, endpoint="inproc://handler")
        task = asyncio.ensure_future(receiver.recv())
        # Until the wait rests on the descriptor.
        while receiver._receiving.ready is None or receiver._soon:
            await asyncio.sleep(0)
        raised, clear = [], receiver._clear
        asyncio.get_running_loop().set_exception_handler(lambda loop, details: raised.append(details["exception"]))

        def interrupted():
            clear()
            receiver._clear = clear
            raise ZeroDivisionError

        receiver._clear = interrupted
        await sender.send(b"x")
        self.assertEqual(await task, b"x")
        self.assertIsInstance(raised[0], ZeroDivisionError)

    async def test_exception_of_a_signal_handler_leaves_the_wait(self, context):
        receiver, _ = self.pair(context)
        with self.assertRaises(TimedOut):
            receiver.rcvtimeo = 1
            await receiver.recv()

        def interrupted(events):
            raise ZeroDivisionError

        receiver._arm = interrupted
        with self.assertRaises(ZeroDivisionError):
            await receiver.recv()

    async def test_thread_of_a_receiver_starts_after_a_failure(self, context):
        receiver = Receiver("test", lambda most: [b"x"], lambda: False)
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError), self.assertRaises(RuntimeError):
            await receiver.next(None, "test")
        self.assertEqual(await receiver.next(None, "test"), b"x")
        receiver.stop()

    async def test_plain_with_around_a_context_is_refused(self, context):
        with self.assertRaisesRegex(TypeError, "async with"):
            with aio.Context():
                pass


# A task of a closed loop waits. It is collected while a task of a new loop waits for the same socket.
COLLECTED = """
import asyncio, gc, logging, sys
import tautline_zmq as t

# asyncio reports each task of a closed loop.
logging.disable()

async def turns():
    for _ in range(10):
        await asyncio.sleep(0)

if sys.argv[1] == "asyncio":
    from tautline_zmq import aio
    new_task = asyncio.ensure_future
else:
    from tautline_zmq import aio_anyio as aio

context = aio.Context()
first, second = context.socket(t.PAIR), context.socket(t.PAIR)
second.connect(first.bind("inproc://x"))
calls = {"recv": second.recv, "poll": second.poll, "queued": second.recv}
call = calls[sys.argv[2]]

old = asyncio.new_event_loop()
tasks = [old.create_task(call()) for _ in range(2 if sys.argv[2] == "queued" else 1)]
old.run_until_complete(turns())
old.close()

async def main():
    global tasks, old
    waiting = asyncio.ensure_future(second.recv())
    await turns()
    tasks = old = None
    gc.collect()
    await turns()
    later = asyncio.ensure_future(second.recv())
    await turns()
    await first.send(b"1")
    await first.send(b"2")
    print(await waiting, await later)

asyncio.run(main())
context.destroy(0)
"""


class LoopChangeTest(unittest.TestCase):
    def test_task_of_a_closed_loop_leaves_the_waits_of_a_new_one_alone(self):
        libraries = ["asyncio"]
        try:
            import anyio  # noqa: F401
        except ImportError:
            pass
        else:
            libraries.append("anyio")
        for library in libraries:
            for call in ("recv", "poll", "queued"):
                with self.subTest(library=library, call=call):
                    printed = run_program(self, COLLECTED, library, call, variables={"PYTHONWARNINGS": "ignore"})
                    self.assertEqual(printed, "b'1' b'2'")


class UvloopTypesTest(TypesTest):
    loop = "uvloop"


if __name__ == "__main__":
    unittest.main()
