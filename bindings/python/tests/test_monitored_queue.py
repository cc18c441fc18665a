"""`monitored_queue` and its devices: both directions, all parts, and the reports on the third socket."""

import threading
import unittest

import zmq
from support import PATIENCE, SocketTest
from tautline_zmq.backend import _monitored_queue
from zmq.devices import ThreadMonitoredQueue, monitored_queue

PARTS = [b"a", b"", b"c" * 100_000]


class MonitoredQueueTest(SocketTest):
    def start(self, front, back, *prefixes):
        """Starts a queue between two sockets in a thread. Returns a peer of its third socket, and the list of its errors."""
        errors = []
        monitor, reports = self.pair(zmq.PUSH, zmq.PULL)

        def run():
            try:
                monitored_queue(front, back, monitor, *prefixes)
            except zmq.ZMQError as error:
                errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        # Runs before the context is destroyed.
        self.addCleanup(thread.join, PATIENCE)
        self.addCleanup(front.close)
        return reports, errors, thread

    def test_backend_serves_pyzmq(self):
        self.assertIs(monitored_queue, _monitored_queue.monitored_queue)

    def test_messages_of_both_directions_keep_all_parts(self):
        front, client = self.pair()
        back, service = self.pair()
        reports, _, _ = self.start(front, back)
        for parts in (PARTS, [b"one"]):
            client.send_multipart(parts)
            self.assertEqual(service.recv_multipart(), parts)
            self.assertEqual(reports.recv_multipart(), [b"in", *parts])
            service.send_multipart(parts[::-1])
            self.assertEqual(client.recv_multipart(), parts[::-1])
            self.assertEqual(reports.recv_multipart(), [b"out", *parts[::-1]])

    def test_prefixes_of_the_caller_are_used(self):
        front, client = self.pair()
        back, service = self.pair()
        reports, _, _ = self.start(front, back, b"", b"answer")
        client.send(b"x")
        service.send(b"y")
        self.assertEqual(sorted(reports.recv_multipart() for _ in range(2)), [[b"", b"x"], [b"answer", b"y"]])

    def test_two_routers_exchange_the_ids(self):
        front, back = self.context.socket(zmq.ROUTER), self.context.socket(zmq.ROUTER)
        peers = []
        for socket, name in ((front, b"left"), (back, b"right")):
            socket.bind(f"inproc://{id(socket)}")
            peer = self.context.socket(zmq.DEALER)
            peer.routing_id = name
            peer.rcvtimeo = PATIENCE * 1000
            peer.connect(socket.last_endpoint)
            peers.append(peer)
        left, right = peers
        reports, _, _ = self.start(front, back)
        left.send_multipart([b"right", b"question"])
        self.assertEqual(right.recv_multipart(), [b"left", b"question"])
        self.assertEqual(reports.recv_multipart(), [b"in", b"right", b"left", b"question"])
        right.send_multipart([b"left", b"answer"])
        self.assertEqual(left.recv_multipart(), [b"right", b"answer"])
        self.assertEqual(reports.recv_multipart(), [b"out", b"left", b"right", b"answer"])

    def test_close_of_a_socket_ends_the_queue(self):
        front, client = self.pair()
        back, service = self.pair()
        _, errors, thread = self.start(front, back)
        client.send(b"x")
        service.recv()
        front.close()
        thread.join(PATIENCE)
        self.assertEqual([error.errno for error in errors], [zmq.ENOTSOCK])

    def test_wrong_arguments_raise(self):
        one, other = self.pair()
        closed = self.context.socket(zmq.PUB)
        closed.close()
        with self.assertRaisesRegex(TypeError, "prefix"):
            monitored_queue(one, other, other, "in")
        with self.assertRaisesRegex(TypeError, "socket of the backend"):
            monitored_queue(one, other, None)
        with self.assertRaises(zmq.ZMQError) as caught:
            monitored_queue(one, closed, other)
        self.assertEqual(caught.exception.errno, zmq.ENOTSOCK)

    def test_device_in_a_thread_forwards(self):
        device = ThreadMonitoredQueue(zmq.PULL, zmq.PUSH, zmq.PUSH, b"sent")
        device.context_factory = lambda: self.context
        ports = [method("tcp://127.0.0.1") for method in (
            device.bind_in_to_random_port, device.bind_out_to_random_port, device.bind_mon_to_random_port
        )]  # fmt: skip
        device.start()
        sockets = [self.context.socket(kind) for kind in (zmq.PUSH, zmq.PULL, zmq.PULL)]
        for socket, port in zip(sockets, ports):
            socket.rcvtimeo = PATIENCE * 1000
            socket.connect(f"tcp://127.0.0.1:{port}")
        push, pull, reports = sockets
        push.send_multipart(PARTS)
        self.assertEqual(pull.recv_multipart(), PARTS)
        self.assertEqual(reports.recv_multipart(), [b"sent", *PARTS])


if __name__ == "__main__":
    unittest.main()
