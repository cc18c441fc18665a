"""Waiting in an event loop by one descriptor: `_native.Readiness` and `backend._readiness`."""

import asyncio
import select
import unittest

import zmq
from support import PATIENCE, SocketTest
from tautline_zmq._native import Readiness
from tautline_zmq.backend._readiness import POLLIN, POLLOUT, Waiter


def attempt_recv(socket):
    def attempt():
        body = socket._try_recv()
        return body is not None, body

    return attempt


class ReadinessTest(SocketTest):
    def settle(self, readiness, events):
        """Arms the descriptor until the wait rule has stopped spinning."""
        while (state := readiness.arm(events)) == Readiness.SOON:
            pass
        return state

    def test_descriptor_tells_of_a_message(self):
        for endpoint in (None, "tcp://127.0.0.1:*", "ipc://@readiness"):
            sender, receiver = self.pair(endpoint=endpoint)
            readiness = Readiness(receiver)
            for number in range(20):
                # The first wait may see the new connection.
                while receiver._try_recv() is None:
                    if self.settle(readiness, POLLIN) == Readiness.WAITING:
                        if number >= 0:
                            sender.send(b"%d" % number)
                            number = -1
                        ready = select.select([readiness], [], [], PATIENCE)[0]
                        self.assertEqual(ready, [readiness])
                        readiness.clear()

    def test_edge_without_a_wait_is_not_lost(self):
        sender, receiver = self.pair(endpoint="tcp://127.0.0.1:*")
        readiness = Readiness(receiver)
        for _ in range(50):
            sender.send(b"a")
            self.assertEqual(receiver.recv(), b"a")
            readiness.clear()
            sent = False
            while receiver._try_recv() is None:
                if self.settle(readiness, POLLIN) == Readiness.WAITING:
                    if not sent:
                        sender.send(b"b")
                        sent = True
                    self.assertTrue(select.select([readiness], [], [], PATIENCE)[0])
                    readiness.clear()

    def test_a_waiting_call_of_another_part_makes_the_descriptor_readable(self):
        """Such a call ends the rest of the socket, so the event loop has to arm the descriptor again."""
        for endpoint in (None, "tcp://127.0.0.1:*"):
            for call in ("poll", "recv"):
                sender, receiver = self.pair(endpoint=endpoint)
                readiness = Readiness(receiver)
                for _ in range(10):
                    # The first wait may see the new connection.
                    while self.settle(readiness, POLLIN) != Readiness.WAITING:
                        self.assertIsNone(receiver._try_recv())
                    if call == "poll":
                        self.assertEqual(zmq.zmq_poll([(receiver, zmq.POLLIN)], 1), [])
                    else:
                        receiver.rcvtimeo = 1
                        self.assertRaises(zmq.Again, receiver.recv)
                    self.assertTrue(select.select([readiness], [], [], PATIENCE)[0])
                    readiness.clear()
                    while self.settle(readiness, POLLIN) != Readiness.WAITING:
                        self.assertIsNone(receiver._try_recv())
                    sender.send(b"a")
                    self.assertTrue(select.select([readiness], [], [], PATIENCE)[0])
                    readiness.clear()
                    while receiver._try_recv() is None:
                        if self.settle(readiness, POLLIN) == Readiness.WAITING:
                            self.assertTrue(select.select([readiness], [], [], PATIENCE)[0])
                            readiness.clear()

    def test_closed_socket_and_wrong_events(self):
        _, socket = self.pair()
        readiness = Readiness(socket)
        for events in (0, 4, -1):
            with self.assertRaises(ValueError):
                readiness.arm(events)
        socket.close()
        with self.assertRaises(zmq.ZMQError):
            readiness.arm(POLLIN)
        readiness.clear()
        readiness.stop()
        with self.assertRaises(zmq.ZMQError):
            Readiness(socket)
        with self.assertRaises(zmq.ZMQError):
            Readiness(self.context.socket(zmq.SERVER))


class WaiterTest(SocketTest):
    def run_async(self, coroutine):
        asyncio.run(asyncio.wait_for(coroutine, PATIENCE))

    def test_tasks_are_served_in_order(self):
        async def main():
            sender, receiver = self.pair(endpoint="tcp://127.0.0.1:*")
            waiter = Waiter(receiver)
            waits = [waiter.wait(POLLIN, attempt_recv(receiver)) for _ in range(5)]
            waits[1].cancel()
            for number in range(4):
                sender.send(b"%d" % number)
            results = [await wait for index, wait in enumerate(waits) if index != 1]
            self.assertEqual(results, [b"0", b"1", b"2", b"3"])
            waiter.close()

        self.run_async(main())

    def test_round_trips(self):
        async def main(endpoint):
            first, second = self.pair(endpoint=endpoint)
            waiters = [Waiter(first), Waiter(second)]

            async def recv(socket, waiter):
                body = socket._try_recv()
                return body if body is not None else await waiter.wait(POLLIN, attempt_recv(socket))

            async def echo():
                for _ in range(500):
                    second.send(await recv(second, waiters[1]))

            task = asyncio.ensure_future(echo())
            for number in range(500):
                first.send(b"%d" % number)
                self.assertEqual(await recv(first, waiters[0]), b"%d" % number)
            await task
            for waiter in waiters:
                waiter.close()

        for endpoint in (None, "tcp://127.0.0.1:*"):
            self.run_async(main(endpoint))

    def test_sender_waits_for_room(self):
        async def main():
            sender, receiver = self.context.socket(zmq.PUSH), self.context.socket(zmq.PULL)
            sender.sndhwm = receiver.rcvhwm = 5
            sender.bind("inproc://room")
            receiver.connect("inproc://room")
            while sender._try_send(b"x"):
                pass
            waiter = Waiter(sender)

            def attempt():
                return sender._try_send(b"last"), None

            wait = waiter.wait(POLLOUT, attempt)
            await asyncio.sleep(0.05)
            self.assertFalse(wait.done())
            receiver.recv_batch()
            await wait
            waiter.close()

        self.run_async(main())

    def test_closed_socket_fails_the_waits(self):
        async def main():
            _, socket = self.pair()
            waiter = Waiter(socket)
            wait = waiter.wait(POLLIN, attempt_recv(socket))
            socket.close()
            with self.assertRaises(zmq.ZMQError):
                await waiter.wait(POLLIN, attempt_recv(socket))
            waiter.close()
            self.assertTrue(wait.done())
            wait.exception() if not wait.cancelled() else None

        self.run_async(main())

    def test_idle_descriptor_does_not_keep_the_loop_busy(self):
        async def main():
            sender, receiver = self.pair(endpoint="tcp://127.0.0.1:*")
            waiter = Waiter(receiver)
            events = []
            original = waiter._watch._on_event
            loop = asyncio.get_running_loop()
            loop.remove_reader(waiter._watch._readiness.fileno())
            loop.add_reader(waiter._watch._readiness.fileno(), lambda: (events.append(1), original()))
            for _ in range(100):
                sender.send(b"x")
                await asyncio.sleep(0.001)
            self.assertLessEqual(len(events), 200)
            self.assertEqual(len(receiver.recv_many()), 100)
            waiter.close()

        self.run_async(main())


if __name__ == "__main__":
    unittest.main()
