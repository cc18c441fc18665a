"""The native API on asyncio and uvloop: order, cancellation, fairness, limits and the end of waits."""

import asyncio
import gc
import os
import threading
import time
import unittest

from native_support import AsyncTest, run, run_program
from tautline_zmq import (
    DEALER,
    DONTWAIT,
    POLLIN,
    POLLOUT,
    PUB,
    PULL,
    PUSH,
    REP,
    REQ,
    ROUTER,
    SUB,
    Again,
    Context,
    ContextTerminated,
    Frame,
    InvalidState,
    MonitorEvent,
    SocketClosed,
    TimedOut,
    aio,
)


async def until_waiting(count=3):
    """Lets the other tasks run until they wait."""
    for _ in range(count):
        await asyncio.sleep(0)


class AsyncioTest(AsyncTest):
    async def test_message_arrives_before_and_during_a_wait(self, context):
        receiver, sender = self.pair(context, PULL, PUSH)
        await sender.send(b"1")
        self.assertEqual(await receiver.recv(), b"1")
        task = asyncio.ensure_future(receiver.recv())
        await asyncio.sleep(0.05)
        await sender.send(b"2")
        self.assertEqual(await task, b"2")

    async def test_every_transport_wakes_a_waiting_task(self, context):
        for endpoint in ("tcp://127.0.0.1:*", f"ipc://@tautline-native-test-{os.getpid()}", "inproc://native"):
            receiver, sender = self.pair(context, PULL, PUSH, endpoint)
            for index in range(50):
                task = asyncio.ensure_future(receiver.recv())
                await asyncio.sleep(0.001 if index % 5 == 0 else 0)
                await sender.send(b"%d" % index)
                self.assertEqual(await task, b"%d" % index)
            receiver.close()
            sender.close()

    async def test_message_during_a_spin_needs_no_turn(self, context):
        loop = asyncio.get_running_loop()
        if not hasattr(loop, "_ready"):
            # uvloop does not show its calls, so tasks do not spin.
            return
        receiver, sender = self.pair(context, endpoint="inproc://native-spin")
        waiting = asyncio.ensure_future(receiver.recv())
        await until_waiting()
        await sender.send(b"first")
        self.assertEqual(await waiting, b"first")
        await until_waiting()
        polls = 0

        def poll(_timeout):
            """Only a spin polls the loop. The message arrives during the spin."""
            nonlocal polls
            polls += 1
            sender._try_send(b"x")
            return []

        receiver._spin._poll = poll
        loop.call_later(0, sender._try_send, b"timer")
        self.assertEqual((await receiver.recv(), polls), (b"x", 1))
        # After many calls, the loop gets a turn.
        while await receiver.recv() != b"timer":
            pass
        # If the loop has other calls to make, the task gives way.
        await until_waiting()
        spins = polls
        loop.call_soon(sender._try_send, b"y")
        self.assertEqual((await receiver.recv(), polls), (b"y", spins))
        # A receive without time does not spin.
        receiver.rcvtimeo = 0
        with self.assertRaises(TimedOut):
            await receiver.recv()
        self.assertEqual(polls, spins)

    async def test_looking_for_events_keeps_the_wake_up_of_a_waiting_task(self, context):
        for endpoint in ("tcp://127.0.0.1:*", "inproc://native-events"):
            receiver, sender = self.pair(context, endpoint=endpoint)
            await sender.send(b"first")
            self.assertEqual(await receiver.recv(), b"first")
            for index in range(60):
                task = asyncio.ensure_future(receiver.recv())
                await until_waiting()
                await sender.send(b"%d" % index)
                if index % 3 == 0:
                    receiver.events
                else:
                    await receiver.poll(0 if index % 3 == 1 else None)
                self.assertEqual(await task, b"%d" % index)
            receiver.close()
            sender.close()

    async def test_parts_frames_and_batches(self, context):
        receiver, sender = self.pair(context)
        await sender.send_multipart([b"a", bytearray(b"b"), memoryview(b"c")])
        self.assertEqual(await receiver.recv_multipart(), [b"a", b"b", b"c"])
        await sender.send(bytes(100_000), copy=False)
        frame = await receiver.recv(copy=False)
        self.assertEqual((type(frame), frame), (Frame, bytes(100_000)))
        await sender.send_multipart(iter([b"a", frame]))
        self.assertEqual([len(part) for part in await receiver.recv_multipart(copy=False)], [1, 100_000])
        self.assertEqual(await sender.send_many([b"1", [b"2", b"3"]]), 2)
        await receiver.poll()
        self.assertEqual(await receiver.recv_many_multipart(1), [[b"1"]])
        self.assertEqual(await receiver.recv_many(), [b"2", b"3"])
        self.assertEqual(receiver.recv_batch(), [])
        await sender.send_json({"a": 1})
        await sender.send_string("ü")
        self.assertEqual((await receiver.recv_json(), await receiver.recv_string()), ({"a": 1}, "ü"))
        with self.assertRaises(TypeError):
            await sender.send("text")
        with self.assertRaises(ValueError):
            await sender.send_multipart([])

    async def test_receivers_are_served_in_order(self, context):
        receiver, sender = self.pair(context)
        order = []

        async def take(index):
            order.append((index, await receiver.recv()))

        tasks = [asyncio.ensure_future(take(index)) for index in range(20)]
        await until_waiting()
        tasks[3].cancel()
        for index in range(19):
            await sender.send(b"%d" % index)
        await asyncio.gather(*tasks, return_exceptions=True)
        expected = [index for index in range(20) if index != 3]
        self.assertEqual(order, [(index, b"%d" % place) for place, index in enumerate(expected)])

    async def test_call_does_not_overtake_a_waiting_task(self, context):
        receiver, sender = self.pair(context)
        first = asyncio.ensure_future(receiver.recv())
        await until_waiting()
        await sender.send_many([b"1", b"2"])
        with self.assertRaises(Again):
            await receiver.recv(DONTWAIT)
        self.assertEqual(receiver.recv_batch(), [])
        self.assertEqual((await receiver.recv(), await first), (b"2", b"1"))

    async def test_senders_wait_in_order(self, context):
        sender, receiver = context.socket(PUSH), context.socket(PULL)
        sender.hwm = receiver.hwm = 1
        receiver.connect(sender.bind("inproc://senders"))
        tasks = [asyncio.ensure_future(sender.send(b"%d" % index)) for index in range(50)]
        await until_waiting()
        tasks[40].cancel()
        got = [await receiver.recv() for _ in range(49)]
        await asyncio.gather(*tasks, return_exceptions=True)
        self.assertEqual(got, [b"%d" % index for index in range(50) if index != 40])
        total = asyncio.ensure_future(sender.send_many([b"%d" % index for index in range(1000)]))
        self.assertEqual([await receiver.recv() for _ in range(1000)], [b"%d" % index for index in range(1000)])
        self.assertEqual(await total, 1000)

    async def test_cancelled_receives_lose_nothing(self, context):
        receiver, sender = self.pair(context, PULL, PUSH)
        count, got, cancelled = 2000, [], 0

        def flood():
            with Context() as own, own.socket(PUSH) as source:
                source.connect(receiver.last_endpoint)
                for index in range(count):
                    source.send(b"%d" % index)
                    if index % 7 == 0:
                        time.sleep(1e-4)

        thread = threading.Thread(target=flood)
        thread.start()
        while len(got) < count:
            task = asyncio.ensure_future(receiver.recv())
            await asyncio.sleep(2e-5 if cancelled % 3 else 0)
            if not task.done():
                task.cancel()
                cancelled += 1
            try:
                got.append(await task)
            except asyncio.CancelledError:
                pass
        thread.join()
        self.assertEqual(got, [b"%d" % index for index in range(count)])

    async def test_cancel_in_the_turn_of_the_message_passes_it_on(self, context):
        receiver, sender = self.pair(context, endpoint="inproc://turn")
        for _ in range(200):
            first = asyncio.ensure_future(receiver.recv())
            second = asyncio.ensure_future(receiver.recv())
            await until_waiting()
            await sender.send(b"x")
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.wait([first])
            if first.cancelled():
                self.assertEqual(await second, b"x")
            else:
                second.cancel()
                await asyncio.wait([second])

    async def test_timeouts_of_wait_for_lose_nothing(self, context):
        receiver, sender = self.pair(context)
        got, index = [], 0
        while index < 300:
            try:
                got.append(await asyncio.wait_for(receiver.recv(), 0.0005))
            except asyncio.TimeoutError:
                pass
            await sender.send(b"%d" % index)
            index += 1
        while len(got) < 300:
            got.append(await receiver.recv())
        self.assertEqual(got, [b"%d" % number for number in range(300)])

    async def test_calls_that_succeed_give_way(self, context):
        receiver, sender = self.pair(context, endpoint="inproc://fair")
        sender.sndhwm = receiver.rcvhwm = 0
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                await asyncio.sleep(0)
                beats += 1

        async def drain():
            for _ in range(6400):
                await receiver.recv()

        await sender.send_many([b"x"] * 6400)
        task = asyncio.ensure_future(beat())
        before = beats
        await drain()
        self.assertGreaterEqual(beats - before, 90)
        before = beats
        for _ in range(640):
            await sender.send(b"x")
        self.assertGreaterEqual(beats - before, 9)
        # A caller that becomes slow reads the clock within 8 calls, and then at each call.
        before = beats
        for _ in range(24):
            time.sleep(0.001)
            await receiver.recv()
        self.assertGreaterEqual(beats - before, 16)
        task.cancel()

    async def test_both_directions_wait_at_the_same_time(self, context):
        server, client = self.pair(context, ROUTER, DEALER)
        client.sndhwm = client.rcvhwm = 10
        count = 2000

        async def echo():
            for _ in range(count):
                await server.send_multipart(await server.recv_multipart())

        async def send():
            for index in range(count):
                await client.send(b"%d" % index)

        async def receive():
            return [await client.recv() for _ in range(count)]

        _, _, got = await asyncio.gather(echo(), send(), receive())
        self.assertEqual(got, [b"%d" % index for index in range(count)])

    async def test_request_and_reply(self, context):
        reply, request = self.pair(context, REP, REQ)

        async def serve():
            async for question in reply:
                await reply.send(question.upper())

        task = asyncio.ensure_future(serve())
        for index in range(200):
            await request.send(b"q%d" % index)
            self.assertEqual(await request.recv(), b"Q%d" % index)
        with self.assertRaises(InvalidState):
            await request.recv()
        reply.close()
        await task

    async def test_options_limit_a_wait(self, context):
        receiver, sender = self.pair(context, PULL, PUSH)
        receiver.rcvtimeo = 20
        started = time.monotonic()
        with self.assertRaisesRegex(TimedOut, "recv on PULL tcp://.*: no message arrived within 20 ms"):
            await receiver.recv()
        self.assertGreaterEqual(time.monotonic() - started, 0.019)
        results = await asyncio.gather(*(receiver.recv() for _ in range(3)), return_exceptions=True)
        self.assertEqual([type(result) for result in results], [TimedOut] * 3)
        first = asyncio.ensure_future(receiver.recv())
        await until_waiting()
        receiver.rcvtimeo = 0
        # With and without a task that waits.
        for _ in range(2):
            with self.assertRaises(TimedOut):
                await receiver.recv()
            await asyncio.gather(first, return_exceptions=True)
        receiver.rcvtimeo = 60_000
        task = asyncio.ensure_future(receiver.recv())
        await until_waiting()
        await sender.send(b"x")
        self.assertEqual(await task, b"x")
        lonely = context.socket(PUSH)
        lonely.sndtimeo = 10
        with self.assertRaisesRegex(TimedOut, "send on PUSH: no peer had room within 10 ms"):
            await lonely.send(b"x")
        with self.assertRaises(Again):
            await lonely.send(b"x", DONTWAIT)
        lonely.close()

    async def test_poll_waits_without_taking(self, context):
        receiver, sender = self.pair(context, PULL, PUSH)
        self.assertEqual(await receiver.poll(0), 0)
        self.assertEqual(await receiver.poll(10), 0)
        self.assertEqual(await sender.poll(None, POLLOUT), POLLOUT)
        polls = [asyncio.ensure_future(receiver.poll()) for _ in range(3)]
        await until_waiting()
        await sender.send(b"x")
        self.assertEqual(await asyncio.gather(*polls), [POLLIN] * 3)
        self.assertEqual(await receiver.poll(), POLLIN)
        self.assertEqual(await receiver.recv(), b"x")
        # A poll that wakes up in vain keeps its limit.
        for _ in range(200):
            self.assertEqual(await receiver.poll(1), 0)
        cancelled = asyncio.ensure_future(receiver.poll())
        await until_waiting()
        cancelled.cancel()
        await asyncio.wait([cancelled])
        full = context.socket(PUSH)
        full.sndhwm = 1
        self.assertEqual(await full.poll(5, POLLOUT), 0)
        full.close()

    async def test_close_ends_the_waits_with_an_error(self, context):
        receiver, _ = self.pair(context)
        waits = [asyncio.ensure_future(receiver.recv()) for _ in range(3)]
        waits.append(asyncio.ensure_future(receiver.poll()))
        await until_waiting()
        receiver.close()
        results = await asyncio.gather(*waits, return_exceptions=True)
        self.assertEqual([type(result) for result in results], [SocketClosed] * 4)
        with self.assertRaises(SocketClosed):
            await receiver.recv()

    async def test_closed_socket_holds_no_descriptor(self, context):
        async def use(number):
            receiver = context.socket(PULL)
            receiver.bind(f"inproc://closed-{number}")
            task = asyncio.ensure_future(receiver.recv())
            await until_waiting()
            receiver.close()
            with self.assertRaises(SocketClosed):
                await task
            return receiver

        # The descriptors of the context and of the loop.
        await use("first")
        before = len(os.listdir("/proc/self/fd"))
        kept = [await use(number) for number in range(10)]
        # The context may close the last descriptors in its own thread.
        while len(os.listdir("/proc/self/fd")) > before:
            await asyncio.sleep(0.01)
        self.assertTrue(all(receiver.closed for receiver in kept))

    async def test_term_ends_the_waits_with_an_error(self, context):
        own = aio.Context()
        receiver = own.socket(PULL)
        waits = [asyncio.ensure_future(receiver.recv()) for _ in range(2)]
        await until_waiting()
        ending = asyncio.get_running_loop().run_in_executor(None, own.term)
        results = await asyncio.gather(*waits, return_exceptions=True)
        self.assertEqual([type(result) for result in results], [ContextTerminated] * 2)
        receiver.close()
        await ending

    async def test_iteration_ends_when_the_socket_is_closed(self, context):
        receiver, sender = self.pair(context)
        got = []

        async def collect():
            async for part in receiver:
                got.append(part)

        task = asyncio.ensure_future(collect())
        await sender.send_many([b"1", b"2"])
        while len(got) < 2:
            await asyncio.sleep(0.001)
        receiver.close()
        await task
        self.assertEqual(got, [b"1", b"2"])

    async def test_subscriber_gets_its_topics(self, context):
        publisher, subscriber = self.pair(context, PUB, SUB)
        subscriber.subscribe("a")
        while not await subscriber.poll(1):
            await publisher.send_multipart([b"b", b"no"])
            await publisher.send_multipart([b"a", b"yes"])
        self.assertEqual(await subscriber.recv_multipart(), [b"a", b"yes"])

    async def test_monitor_reports_events(self, context):
        server = context.socket(PULL)
        with server.monitor() as monitor:
            endpoint = server.bind("tcp://127.0.0.1:*")
            client = context.socket(PUSH)
            client.connect(endpoint)
            kinds = []
            async for event in monitor:
                kinds.append(event.event)
                if event.event == MonitorEvent.HANDSHAKE_SUCCEEDED:
                    break
            server.close()
            async for event in monitor:
                kinds.append(event.event)
        client.close()
        self.assertEqual(kinds[0], MonitorEvent.LISTENING)

    async def test_idle_socket_costs_no_processor_time(self, context):
        receiver, sender = self.pair(context)
        task = asyncio.ensure_future(receiver.recv())
        await asyncio.sleep(0.05)
        started = time.process_time()
        await asyncio.sleep(0.3)
        # A loop that polls would use all of the time.
        self.assertLess(time.process_time() - started, 0.1)
        await sender.send(b"1")
        await task
        await sender.send(b"2")
        started = time.process_time()
        await asyncio.sleep(0.3)
        self.assertLess(time.process_time() - started, 0.1)
        self.assertEqual(await receiver.recv(), b"2")

    async def test_waits_of_every_length_end(self, context):
        receiver, sender = self.pair(context, PULL, PUSH)
        endpoint = receiver.last_endpoint
        gaps = [0, 1e-5, 1e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2]

        def trickle():
            with Context() as own, own.socket(PUSH) as source:
                source.connect(endpoint)
                for gap in gaps:
                    for _ in range(10):
                        time.sleep(gap)
                        source.send(b"x")

        thread = threading.Thread(target=trickle)
        thread.start()
        for _ in range(10 * len(gaps)):
            self.assertEqual(await asyncio.wait_for(receiver.recv(), 30), b"x")
        thread.join()


class LoopTest(unittest.TestCase):
    def test_socket_moves_to_a_new_loop(self):
        context = aio.Context()
        receiver, sender = context.socket(PULL), context.socket(PUSH)
        sender.connect(receiver.bind("tcp://127.0.0.1:*"))

        async def exchange(body):
            task = asyncio.ensure_future(receiver.recv())
            await asyncio.sleep(0.01)
            await sender.send(body)
            self.assertEqual(await task, body)

        async def leave_a_wait():
            asyncio.ensure_future(receiver.recv())
            await asyncio.sleep(0)

        for body in (b"1", b"2"):
            run(exchange(body))
            run(leave_a_wait())
            gc.collect()
        receiver.close()
        sender.close()
        context.term()

    def test_second_loop_is_refused_while_a_task_waits(self):
        context = aio.Context()
        receiver = context.socket(PULL)
        receiver.bind("inproc://two")
        caught = []

        def other():
            try:
                run(receiver.recv())
            except RuntimeError as error:
                caught.append(str(error))

        async def main():
            task = asyncio.ensure_future(receiver.recv())
            await until_waiting()
            await asyncio.get_running_loop().run_in_executor(None, other)
            task.cancel()

        run(main())
        receiver.close()
        context.term()
        self.assertEqual(caught, ["the socket is in use in another event loop"])

    def test_context_manager_sends_what_is_queued(self):
        async def main():
            async with aio.Context() as context:
                receiver = context.socket(PULL)
                endpoint = receiver.bind("tcp://127.0.0.1:*")
                async with aio.Context() as other, other.socket(PUSH) as sender:
                    sender.connect(endpoint)
                    await sender.send(b"queued")
                self.assertEqual(await receiver.recv(), b"queued")
            self.assertTrue(receiver.closed)

        run(main())

    def test_child_of_a_fork_has_a_loop_of_its_own(self):
        source = """
import asyncio, os, warnings
from tautline_zmq import aio, PAIR, SocketClosed

async def exchange():
    async with aio.Context() as context:
        a, b = context.socket(PAIR), context.socket(PAIR)
        a.connect(b.bind("inproc://x"))
        task = asyncio.ensure_future(b.recv())
        await asyncio.sleep(0.01)
        await a.send(b"x")
        assert await task == b"x"
        return a

async def main():
    context = aio.Context()
    s = context.socket(PAIR)
    s.bind("inproc://y")
    task = asyncio.ensure_future(s.recv())
    await asyncio.sleep(0.01)
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
    if not child:
        asyncio._set_running_loop(None)
        try:
            asyncio.run(exchange())
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    t = context.socket(PAIR)
    t.connect("inproc://y")
    await t.send(b"z")
    assert await task == b"z"
    context.destroy(0)

asyncio.run(main())
print("end")
"""
        self.assertEqual(run_program(self, source), "end")

    def test_program_ends_with_a_waiting_task(self):
        source = """
import asyncio
from tautline_zmq import aio, PULL
context = aio.Context()
socket = context.socket(PULL)
socket.bind("inproc://x")

async def main():
    asyncio.ensure_future(socket.recv())
    await asyncio.sleep(0.01)

asyncio.run(main())
print("end")
"""
        self.assertEqual(run_program(self, source), "end")


class UvloopTest(AsyncioTest):
    loop = "uvloop"


if __name__ == "__main__":
    unittest.main()
