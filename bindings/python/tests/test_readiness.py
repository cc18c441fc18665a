"""Waiting in an event loop by one descriptor: `_native.Readiness`."""

import os
import select
import socket
import unittest

import zmq
from support import PATIENCE, SocketTest
from tautline_zmq._native import Readiness


class ReadinessTest(SocketTest):
    def settle(self, readiness, events):
        """Arms the descriptor until the wait rule has stopped spinning."""
        while (state := readiness.arm(events)) == Readiness.SOON:
            pass
        return state

    def test_descriptor_tells_of_a_message(self):
        for endpoint in (None, "tcp://127.0.0.1:*", f"ipc://@readiness-{os.getpid()}"):
            sender, receiver = self.pair(endpoint=endpoint)
            readiness = Readiness(receiver)
            for number in range(20):
                # The first wait may see the new connection.
                while receiver._try_recv() is None:
                    if self.settle(readiness, zmq.POLLIN) == Readiness.WAITING:
                        if number >= 0:
                            sender.send(b"%d" % number)
                            number = -1
                        ready = select.select([readiness], [], [], PATIENCE)[0]
                        self.assertEqual(ready, [readiness])
                        readiness.clear()

    def test_part_of_a_message_asks_for_another_check(self):
        """The I/O thread may read the rest of the message, and then no descriptor reports it."""
        receiver = self.context.socket(zmq.PULL)
        receiver.bind("tcp://127.0.0.1:*")
        readiness = Readiness(receiver)
        port = int(receiver.last_endpoint.rsplit(b":", 1)[1])
        with socket.create_connection(("127.0.0.1", port)) as peer:
            # ZMTP 1.0: no routing id, then the length and the flags of a message.
            size = 1 << 16
            peer.sendall(b"\x01\0\xff" + (size + 1).to_bytes(8, "big") + b"\0")
            unsent, sleeps = size, False
            while (state := readiness.arm(zmq.POLLIN)) != Readiness.SOON or not sleeps:
                # If the I/O thread has read the byte, the next one follows.
                if sleeps := state == Readiness.WAITING:
                    peer.sendall(b"x")
                    unsent -= 1
                    self.assertGreater(unsent, 0)
            peer.sendall(b"x" * unsent)
            while receiver._try_recv() is None:
                if self.settle(readiness, zmq.POLLIN) == Readiness.WAITING:
                    self.assertTrue(select.select([readiness], [], [], PATIENCE)[0])
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
                if self.settle(readiness, zmq.POLLIN) == Readiness.WAITING:
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
                    while self.settle(readiness, zmq.POLLIN) != Readiness.WAITING:
                        self.assertIsNone(receiver._try_recv())
                    if call == "poll":
                        self.assertEqual(zmq.zmq_poll([(receiver, zmq.POLLIN)], 1), [])
                    else:
                        receiver.rcvtimeo = 1
                        self.assertRaises(zmq.Again, receiver.recv)
                    self.assertTrue(select.select([readiness], [], [], PATIENCE)[0])
                    readiness.clear()
                    while self.settle(readiness, zmq.POLLIN) != Readiness.WAITING:
                        self.assertIsNone(receiver._try_recv())
                    sender.send(b"a")
                    self.assertTrue(select.select([readiness], [], [], PATIENCE)[0])
                    readiness.clear()
                    while receiver._try_recv() is None:
                        if self.settle(readiness, zmq.POLLIN) == Readiness.WAITING:
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
            readiness.arm(zmq.POLLIN)
        readiness.clear()
        readiness.stop()
        with self.assertRaises(zmq.ZMQError):
            Readiness(socket)

    def test_socket_for_several_threads(self):
        server, client = self.pair(zmq.SERVER, zmq.CLIENT)
        readiness = Readiness(server)
        for _ in range(3):
            with self.assertRaises(zmq.Again):
                server.recv(zmq.DONTWAIT)
            self.assertEqual(readiness.arm(zmq.POLLIN), Readiness.WAITING)
            client.send(b"x")
            self.assertTrue(select.select([readiness], [], [], PATIENCE)[0])
            readiness.clear()
            self.assertEqual(readiness.arm(zmq.POLLIN), Readiness.READY)
            self.assertEqual(server.recv(), b"x")
        readiness.stop()
        server.close()
        with self.assertRaises(zmq.ZMQError):
            readiness.arm(zmq.POLLIN)


if __name__ == "__main__":
    unittest.main()
