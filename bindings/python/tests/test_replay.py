"""ReliablePub and ReliableSub: replay, losses, restarts, closing, threads, asyncio, signals, forks and exits."""

import asyncio
import gc
import os
import signal
import threading
import time
import unittest
import warnings

from native_support import PATIENCE, run, run_program
from tautline_zmq import (
    PUB,
    AddressInUse,
    Context,
    ContextTerminated,
    InvalidArgument,
    Option,
    SocketClosed,
    TimedOut,
    aio,
    curve_keypair,
)
from tautline_zmq.access import curve_client_options, curve_server_options, plain_client_options
from tautline_zmq.replay import AsyncReliableSub, Lost, ReliablePub, ReliableSub, Restarted, Start, Update

LIMIT = PATIENCE * 1000
ANY = "tcp://127.0.0.1:*"


class ReplayTest(unittest.TestCase):
    def setUp(self):
        self.context = Context()
        self.addCleanup(self.context.destroy, 0)

    def publisher(self, **arguments):
        publisher = ReliablePub(self.context, **arguments)
        return publisher, publisher.bind(ANY), publisher.serve(ANY)

    def subscriber(self, live, ring, kind=ReliableSub, **arguments):
        arguments.setdefault("subscribe", [""])
        return kind(live, ring, self.context, **arguments)


class DeliveryTest(ReplayTest):
    def test_late_subscriber_begins_with_the_oldest_message(self):
        publisher, live, ring = self.publisher()
        for number in range(3):
            self.assertEqual(publisher.send("a", b"%d" % number), number)
        publisher.send(b"other", "text")
        subscriber = self.subscriber(live, ring, subscribe=["a"], start=Start.OLDEST)
        expected = [Update(b"a", number, b"%d" % number, True) for number in range(3)]
        self.assertEqual([subscriber.recv(LIMIT) for _ in range(3)], expected)
        publisher.wait_for_subscriptions(1, LIMIT)
        publisher.send("a", bytearray(b"live"))
        # The ring may send it as well, if its answer is not complete yet.
        self.assertEqual(subscriber.recv(LIMIT)[:3], (b"a", 4, b"live"))
        self.assertIsNone(subscriber.try_recv())
        self.assertEqual((publisher.next_number, publisher.kept_messages), (5, 5))

    def test_last_of_each_topic(self):
        publisher, live, ring = self.publisher()
        for number in range(4):
            publisher.send("ab"[number % 2], b"%d" % number)
        subscriber = self.subscriber(live, ring, start=Start.LAST_OF_EACH_TOPIC)
        self.assertEqual([subscriber.recv(LIMIT).body for _ in range(2)], [b"2", b"3"])

    def test_number_and_lost_messages(self):
        publisher, live, ring = self.publisher(keep=2)
        for number in range(5):
            publisher.send("a", b"%d" % number)
        subscriber = self.subscriber(live, ring, start=1)
        self.assertEqual(subscriber.recv(LIMIT), Lost(1, 2))
        self.assertEqual([subscriber.recv(LIMIT).number for _ in range(2)], [3, 4])
        self.assertEqual((subscriber.statistics.lost, subscriber.statistics.repaired), (2, 2))

    def test_restart(self):
        publisher, live, ring = self.publisher()
        publisher.send("a", b"old")
        subscriber = self.subscriber(live, ring, start=Start.OLDEST)
        self.assertEqual(subscriber.recv(LIMIT).body, b"old")
        publisher.close(0)
        publisher = ReliablePub(self.context)
        publisher.bind(live)
        publisher.serve(ring)
        publisher.send("a", b"new")
        # The subscriber reconnects within its calls.
        while not publisher.wait_for_subscriptions(1, 10):
            self.assertIsNone(subscriber.try_recv())
        publisher.send("a", b"newer")
        self.assertEqual(subscriber.recv(LIMIT), Restarted())
        self.assertEqual([subscriber.recv(LIMIT).body for _ in range(2)], [b"new", b"newer"])

    def test_iteration_ends_when_another_thread_closes(self):
        publisher, live, ring = self.publisher()
        publisher.send("a", b"1")
        subscriber = self.subscriber(live, ring, start=Start.OLDEST)
        seen = []
        thread = threading.Thread(target=lambda: seen.extend(subscriber))
        thread.start()
        time.sleep(0.3)
        subscriber.close()
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())
        self.assertEqual([update.body for update in seen], [b"1"])

    def test_keys(self):
        server, client = curve_keypair(), curve_keypair()
        publisher, live, ring = self.publisher(options=curve_server_options(server.secret))
        publisher.send("a", b"secret")
        options = curve_client_options(server.public, client)
        subscriber = self.subscriber(live, ring, start=Start.OLDEST, options=options)
        self.assertEqual(subscriber.recv(LIMIT).body, b"secret")
        stranger = self.subscriber(live, ring, start=Start.OLDEST)
        with self.assertRaises(TimedOut):
            stranger.recv(200)

    def test_many_messages_arrive_in_order(self):
        publisher, live, ring = self.publisher(keep=20_000, options={Option.SNDHWM: 0})
        subscriber = self.subscriber(live, ring, start=Start.OLDEST, options={Option.RCVHWM: 0})

        def publish():
            for number in range(20_000):
                publisher.send("a", b"%d" % number)

        thread = threading.Thread(target=publish)
        thread.start()
        numbers = [subscriber.recv(LIMIT).number for _ in range(20_000)]
        thread.join()
        self.assertEqual(numbers, list(range(20_000)))


class ErrorTest(ReplayTest):
    def test_errors_name_their_object(self):
        publisher, live, ring = self.publisher()
        other = ReliablePub(self.context)
        with self.assertRaisesRegex(AddressInUse, f"^bind on ReliablePub: {live}: "):
            other.bind(live)
        with self.assertRaisesRegex(AddressInUse, f"^serve on ReliablePub {live}: {ring}: "):
            publisher.serve(ring)
        subscriber = self.subscriber(live, ring)
        with self.assertRaisesRegex(TimedOut, f"^recv on ReliableSub {live}: no message arrived within 10 ms"):
            subscriber.recv(10)
        with self.assertRaisesRegex(InvalidArgument, "^ReliableSub nonsense: "):
            self.subscriber("nonsense", ring)
        with self.assertRaises(InvalidArgument):
            self.publisher(options={Option.CURVE_SECRETKEY: "short"})
        for wrong in ({"start": -5}, {"answer_timeout": -1}, {"options": {Option.SNDHWM: 2**40}}):
            with self.assertRaises(ValueError):
                self.subscriber(live, ring, **wrong)
        with self.assertRaisesRegex(ValueError, "keep=-1"):
            self.publisher(keep=-1)
        with self.assertRaises(TypeError):
            self.subscriber(live, ring, subscribe="prices")
        with self.assertRaises(TypeError):
            publisher.send("a", 1)

    def test_unprotected_ring_is_refused(self):
        _, live, ring = self.publisher(options=curve_server_options(curve_keypair().secret))
        with self.assertRaisesRegex(InvalidArgument, f"^ReliableSub {live}: the ring at {ring} would be less protected"):
            self.subscriber(
                live,
                ring,
                options=curve_client_options(curve_keypair().public),
                ring_options=plain_client_options("joe", "swordfish"),
            )

    def test_closed_objects(self):
        publisher, live, ring = self.publisher()
        subscriber = self.subscriber(live, ring)
        for one in (publisher, subscriber):
            one.close()
            one.close()
            self.assertTrue(one.closed)
            self.assertIn("closed", repr(one))
        with self.assertRaisesRegex(SocketClosed, "^send on ReliablePub"):
            publisher.send("a", b"")
        with self.assertRaisesRegex(SocketClosed, "^recv on ReliableSub"):
            subscriber.recv()
        self.assertEqual(list(subscriber), [])
        # The port is free.
        self.context.socket(PUB).bind(live)

    def test_context_closes_its_objects(self):
        publisher, live, ring = self.publisher()
        subscriber = self.subscriber(live, ring)
        outcome = []

        def receive():
            try:
                subscriber.recv()
            except (SocketClosed, ContextTerminated) as error:
                outcome.append(error)

        thread = threading.Thread(target=receive)
        thread.start()
        time.sleep(0.1)
        self.context.destroy(0)
        thread.join(PATIENCE)
        self.assertEqual(len(outcome), 1)
        self.assertTrue(publisher.closed and subscriber.closed)
        with self.assertRaises(ContextTerminated):
            ReliablePub(self.context)

    def test_forgotten_objects_are_closed_with_a_warning(self):
        publisher, live, ring = self.publisher()
        with self.assertWarns(ResourceWarning):
            self.subscriber(live, ring)
            gc.collect()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with ReliableSub(live, ring, self.context, subscribe=[]):
                pass
            gc.collect()
        self.assertEqual(caught, [])


class SignalTest(ReplayTest):
    def test_signal_handlers_run_during_a_wait(self):
        publisher, live, ring = self.publisher()
        subscriber = self.subscriber(live, ring)

        def on_alarm(*_):
            raise KeyboardInterrupt

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, on_alarm))
        for call in (subscriber.recv, lambda: publisher.wait_for_subscriptions(5)):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with self.assertRaises(KeyboardInterrupt):
                call()
        # Nothing is lost.
        publisher.wait_for_subscriptions(1, LIMIT)
        publisher.send("a", b"1")
        self.assertEqual(subscriber.recv(LIMIT).body, b"1")


class AsyncReplayTest(unittest.TestCase):
    def run_async(self, method, **arguments):
        async def main():
            context = aio.Context()
            try:
                publisher = ReliablePub(context)
                live, ring = publisher.bind(ANY), publisher.serve(ANY)
                await method(publisher, AsyncReliableSub(live, ring, context, subscribe=[""], **arguments))
            finally:
                context.destroy(0)

        run(main())

    def test_iteration(self):
        async def main(publisher, subscriber):
            for number in range(500):
                publisher.send("a", b"%d" % number)
            numbers = []
            async for update in subscriber:
                numbers.append(update.number)
                if len(numbers) == 500:
                    subscriber.close()
            self.assertEqual(numbers[:500], list(range(500)))

        self.run_async(main, start=Start.OLDEST)

    def test_cancelled_receives_lose_nothing(self):
        async def main(publisher, subscriber):
            count, numbers = 2000, []

            async def publish():
                for number in range(count):
                    publisher.send("a", b"")
                    if number % 50 == 0:
                        await asyncio.sleep(0.001)

            task = asyncio.create_task(publish())
            cancelled = 0
            while len(numbers) < count:
                receiving = asyncio.create_task(subscriber.recv())
                await asyncio.sleep(0)
                if len(numbers) % 3 == 0:
                    receiving.cancel()
                try:
                    numbers.append((await receiving).number)
                except asyncio.CancelledError:
                    cancelled += 1
                    numbers.append((await subscriber.recv(LIMIT)).number)
            await task
            self.assertEqual(numbers, list(range(count)))
            self.assertGreater(cancelled, 0)

        self.run_async(main, start=Start.OLDEST)

    def test_time_limit(self):
        async def main(publisher, subscriber):
            with self.assertRaisesRegex(TimedOut, "^recv on AsyncReliableSub .*within 20 ms"):
                await subscriber.recv(20)
            publisher.send("a", b"1")
            self.assertEqual((await subscriber.recv(LIMIT)).body, b"1")

        self.run_async(main, start=Start.OLDEST)

    def test_close_wakes_every_task(self):
        async def main(_, subscriber):
            tasks = [asyncio.create_task(subscriber.recv()) for _ in range(3)]
            await asyncio.sleep(0.05)
            subscriber.close()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertEqual([type(result) for result in results], [SocketClosed] * 3)
            with self.assertRaises(SocketClosed):
                await subscriber.recv()

        self.run_async(main)

    def test_second_event_loop_goes_on(self):
        context = Context()
        self.addCleanup(context.destroy, 0)
        publisher = ReliablePub(context)
        live, ring = publisher.bind(ANY), publisher.serve(ANY)
        subscriber = AsyncReliableSub(live, ring, context, subscribe=[""], start=Start.OLDEST)

        async def wait_in_vain():
            with self.assertRaises(TimedOut):
                await subscriber.recv(20)

        async def receive():
            return await subscriber.recv(LIMIT)

        asyncio.run(wait_in_vain())
        publisher.send("a", b"1")
        time.sleep(0.2)
        self.assertEqual(asyncio.run(receive()).body, b"1")


PREPARED = """
import os, sys, threading, time, asyncio
from tautline_zmq import Context, SocketClosed
from tautline_zmq.replay import *
publisher = ReliablePub()
live, ring = publisher.bind("tcp://127.0.0.1:*"), publisher.serve("tcp://127.0.0.1:*")
publisher.send("a", b"1")
"""


class ProcessTest(unittest.TestCase):
    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_child_of_a_fork_gets_errors_and_its_own_objects(self):
        output = run_program(
            self,
            PREPARED
            + """
subscriber = ReliableSub(live, ring, subscribe=[""], start=Start.OLDEST)
print(subscriber.recv(10_000).body, flush=True)
child = os.fork()
if not child:
    for call in (subscriber.recv, lambda: publisher.send("a", b""), lambda: next(iter(subscriber), None)):
        try:
            call()
        except SocketClosed as error:
            print(type(error).__name__, flush=True)
    subscriber.close()
    publisher.close()
    del publisher
    own = ReliableSub(live, ring, subscribe=[""], start=Start.OLDEST)
    print(own.recv(10_000).body, flush=True)
    sys.exit()
print(os.waitpid(child, 0)[1])
publisher.send("a", b"2")
subscriber.recv(10_000)
subscriber.close()
publisher.close()
""",
        )
        self.assertEqual(output.split(), ["b'1'", "SocketClosed", "SocketClosed", "b'1'", "0"])

    def test_exit_with_open_objects_and_waiting_threads(self):
        output = run_program(
            self,
            PREPARED
            + """
subscriber = ReliableSub(live, ring, subscribe=[""])
other = AsyncReliableSub(live, ring, subscribe=[""])
threading.Thread(target=subscriber.recv, daemon=True).start()
async def main():
    try:
        await other.recv(100)
    except Exception as error:
        print(type(error).__name__)
asyncio.run(main())
""",
        )
        self.assertEqual(output, "TimedOut")


if __name__ == "__main__":
    unittest.main()
