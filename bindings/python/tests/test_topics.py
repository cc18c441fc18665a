"""Topics: patterns, own messages, spaces by a names file, threads, asyncio and errors."""

import asyncio
import os
import tempfile
import threading
import time
import unittest

from native_support import PATIENCE, run, run_program
from tautline_zmq import Context, InvalidArgument, Option, SocketClosed, TimedOut, aio
from tautline_zmq.topics import AsyncTopics, Topics, Update, endpoint, matches

LIMIT = PATIENCE * 1000


class TopicsTest(unittest.TestCase):
    def setUp(self):
        self.context = Context()
        self.addCleanup(self.context.destroy, 0)

    def pair(self):
        station = Topics(context=self.context, bind=["tcp://127.0.0.1:*"])
        return station, Topics(context=self.context, connect=[station.endpoint])

    def test_patterns(self):
        station, display = self.pair()
        display.subscribe("weather.*.wind")
        self.assertEqual(display.patterns, ["weather.*.wind"])
        self.assertTrue(station.wait_for_subscriptions(1, LIMIT))
        station.publish("weather.lund.rain", "none")
        station.publish("weather.lund.wind", "7 m/s")
        station.publish("weather.oslo.wind", memoryview(b"8"))
        self.assertEqual(display.recv(LIMIT), Update("weather.lund.wind", b"7 m/s"))
        self.assertEqual(display.recv(LIMIT), Update("weather.oslo.wind", b"8"))
        self.assertIsNone(display.try_recv())
        counters = display.statistics
        self.assertEqual((counters.received, counters.filtered), (2, 1))
        self.assertEqual(station.statistics.published, 3)
        display.unsubscribe("weather.*.wind")
        self.assertEqual(display.patterns, [])

    def test_own_messages(self):
        for own in (False, True):
            topics = Topics(context=self.context, bind=["inproc://own"], connect=["inproc://own"], receive_own=own)
            topics.subscribe("**")
            self.assertTrue(topics.wait_for_subscriptions(1, LIMIT))
            topics.publish("a", b"1")
            if own:
                self.assertEqual(topics.recv(LIMIT), Update("a", b"1"))
            else:
                with self.assertRaises(TimedOut):
                    topics.recv(50)
                self.assertEqual(topics.statistics.own, 1)
            topics.close()

    def test_functions(self):
        self.assertEqual(endpoint("prices"), "name://topics.prices")
        self.assertTrue(matches("a.**", "a.b.c"))
        self.assertFalse(matches("a.*", "a.b.c"))
        with self.assertRaisesRegex(InvalidArgument, r"^pattern 'a\*': "):
            matches("a*", "a")

    def test_errors_name_their_object(self):
        station, display = self.pair()
        with self.assertRaisesRegex(InvalidArgument, "^publish on Topics tcp://"):
            station.publish("a*", b"")
        with self.assertRaisesRegex(InvalidArgument, "^subscribe on Topics"):
            display.subscribe("a*b")
        with self.assertRaisesRegex(InvalidArgument, "^unsubscribe on Topics"):
            display.unsubscribe("a")
        with self.assertRaisesRegex(TimedOut, "^recv on Topics .*within 10 ms"):
            display.recv(10)
        with self.assertRaises(InvalidArgument):
            Topics(context=self.context, bind=["nonsense"])
        with self.assertRaises(TypeError):
            Topics(context=self.context, bind="inproc://x")
        self.assertFalse(station.wait_for_subscriptions(3, 20))
        self.assertEqual(display.endpoint, "")
        display.close()
        display.close()
        with self.assertRaisesRegex(SocketClosed, "^recv on Topics"):
            display.recv()
        self.assertEqual(list(display), [])

    def test_subscribe_while_another_thread_receives(self):
        station, display = self.pair()
        seen = []

        def receive():
            for update in display:
                seen.append(update)
                if update.topic == "end":
                    return

        thread = threading.Thread(target=receive)
        thread.start()
        time.sleep(0.1)
        for pattern in ("a", "b", "end"):
            display.subscribe(pattern)
        station.wait_for_subscriptions(3, LIMIT)
        for topic in ("a", "c", "b", "end"):
            station.publish(topic, b"")
        thread.join(PATIENCE)
        self.assertEqual([update.topic for update in seen], ["a", "b", "end"])

    def test_options(self):
        station = Topics(context=self.context, publish_options={Option.SNDHWM: 5, Option.LINGER: 0})
        self.assertEqual(station.statistics.published, 0)


class SpaceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.names = os.path.join(folder.name, "names.toml")
        with open(self.names, "w", encoding="utf-8") as file:
            file.write(f'[folder]\npath = "{folder.name}/names"\n')

    def test_members_of_a_space_find_each_other(self):
        context = Context()
        self.addCleanup(context.destroy, 0)
        context.set_names(self.names)
        first, second = Topics("prices", context), Topics("prices", context)
        second.subscribe("gold.*")
        # A subscriber connects to publishers of the same process within its calls.
        while not first.wait_for_subscriptions(1, 10):
            self.assertIsNone(second.try_recv())
        first.publish("gold.oz", b"1980")
        self.assertEqual(second.recv(LIMIT), Update("gold.oz", b"1980"))

    def test_names_file_of_the_environment(self):
        program = """
import os, sys
from tautline_zmq.topics import Topics
child = os.fork()
if child:
    with Topics("prices") as topics:
        topics.wait_for_subscriptions(1, 30_000)
        topics.publish("gold", b"1980")
        os.waitpid(child, 0)
else:
    with Topics("prices") as topics:
        topics.subscribe("gold")
        print(topics.recv(30_000).body)
"""
        self.assertEqual(run_program(self, program, variables={"TAUT_NAMES": self.names}), "b'1980'")

    def test_without_a_names_file(self):
        context = Context()
        self.addCleanup(context.destroy, 0)
        with self.assertRaisesRegex(OSError, "^Topics prices: name://topics.prices"):
            Topics("prices", context)


class AsyncTopicsTest(unittest.TestCase):
    def test_receive_cancel_and_close(self):
        async def main():
            context = aio.Context()
            try:
                station = AsyncTopics(context=context, bind=["tcp://127.0.0.1:*"])
                display = AsyncTopics(context=context, connect=[station.endpoint])
                display.subscribe("a.*")
                self.assertTrue(await station.wait_for_subscriptions(1, LIMIT))
                self.assertFalse(await station.wait_for_subscriptions(2, 20))
                vain = asyncio.create_task(display.recv())
                await asyncio.sleep(0.02)
                vain.cancel()
                for number in range(300):
                    station.publish("a.b", b"%d" % number)
                bodies = [(await display.recv(LIMIT)).body for _ in range(300)]
                self.assertEqual(bodies, [b"%d" % number for number in range(300)])
                waiting = asyncio.create_task(display.recv())
                await asyncio.sleep(0.02)
                display.close()
                with self.assertRaises(SocketClosed):
                    await waiting
                self.assertEqual([update async for update in display], [])
            finally:
                context.destroy(0)

        run(main())


if __name__ == "__main__":
    unittest.main()
