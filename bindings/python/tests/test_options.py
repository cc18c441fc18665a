"""Options, endpoints and polling."""

import os
import unittest

import zmq
from support import SocketTest
from zmq.constants import SocketOption


class OptionTest(SocketTest):
    def test_every_option_has_the_type_that_pyzmq_gives_it(self):
        socket = self.context.socket(zmq.PAIR)
        values = {"int": (1, b"x"), "int64": (1, b"x"), "fd": (1, b"x"), "bytes": (b"x", 1)}
        for option in SocketOption:
            right, wrong = values[option._opt_type.value]
            with self.assertRaisesRegex(TypeError, "expected"):
                socket.set(option, wrong)
            try:
                socket.set(option, right)
            except (zmq.ZMQError, OverflowError) as error:
                self.assertNotIsInstance(error, TypeError, option)
            if option._opt_type.value == "int64":
                big = 2**40
                try:
                    socket.set(option, big)
                except zmq.ZMQError:
                    pass
            elif option._opt_type.value == "int":
                with self.assertRaises(OverflowError, msg=option):
                    socket.set(option, 2**40)

    def test_values_that_are_wrong(self):
        socket = self.context.socket(zmq.SUB)
        with self.assertRaises(TypeError):
            socket.set(zmq.SUBSCRIBE, "text")
        with self.assertRaises(TypeError):
            socket.get("x")
        with self.assertRaises(zmq.ZMQError) as caught:
            socket.get(9999)
        self.assertEqual(caught.exception.errno, zmq.EINVAL)

    def test_text_ends_before_its_nul_and_a_routing_id_does_not(self):
        socket = self.context.socket(zmq.DEALER)
        socket.set(zmq.ROUTING_ID, b"a\0")
        self.assertEqual(socket.get(zmq.ROUTING_ID), b"a\0")
        socket.bind("inproc://text")
        self.assertEqual(socket.get(zmq.LAST_ENDPOINT), b"inproc://text")

    def test_bind_explains_paths(self):
        socket = self.context.socket(zmq.PAIR)
        with self.assertRaisesRegex(zmq.ZMQError, "longer than 107 characters"):
            socket.bind("ipc://" + "x" * 200)
        with self.assertRaisesRegex(zmq.ZMQError, "No such file or directory for ipc path"):
            socket.bind("ipc:///nowhere/at/all")
        for wrong in (3, None, b"\xff", "tcp://\0", ""):
            with self.assertRaises((TypeError, zmq.ZMQError)):
                socket.bind(wrong)

    def test_context_options(self):
        context = zmq.Context()
        context.set(zmq.MAX_SOCKETS, 7)
        self.assertEqual(context.get(zmq.MAX_SOCKETS), 7)
        with self.assertRaises(TypeError):
            context.set(zmq.MAX_SOCKETS, "7")
        context.term()
        self.assertEqual((context.closed, context.underlying), (True, 0))
        with self.assertRaises(RuntimeError):
            context.get(zmq.MAX_SOCKETS)
        with self.assertRaises(zmq.ZMQError):
            zmq.Context(-1)


class PollTest(SocketTest):
    def test_sockets_and_descriptors(self):
        first, second = self.pair()
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        poll = zmq.zmq_poll
        self.assertEqual(poll([(first, zmq.POLLIN), (reading, zmq.POLLIN)], 0), [])
        second.send(b"x")
        os.write(writing, b"x")
        both = [(first, zmq.POLLIN), (reading, zmq.POLLIN), (first, zmq.POLLOUT), (first, zmq.POLLIN)]
        expected = [(first, zmq.POLLIN), (reading, zmq.POLLIN), (first, zmq.POLLOUT), (first, zmq.POLLIN)]
        self.assertEqual(poll(both), expected)
        self.assertEqual(poll([]), [])

    def test_timeout(self):
        first, _ = self.pair()
        self.assertEqual(zmq.zmq_poll([(first, zmq.POLLIN)], 20), [])
        self.assertEqual(first.poll(20), 0)

    def test_wrong_arguments(self):
        class Wrong:
            def fileno(self):
                return "x"

        poll = zmq.zmq_poll
        with self.assertRaises(ValueError):
            poll([(Wrong(), 1)])
        with self.assertRaisesRegex(TypeError, "Socket must be a 0MQ socket"):
            poll([("x", 1)])
        for sockets in (3, [3], [(1, 2, 3)], None):
            with self.assertRaises((TypeError, ValueError)):
                poll(sockets)
        socket = self.context.socket(zmq.PAIR)
        socket.close()
        with self.assertRaises(zmq.ZMQError):
            poll([(socket, 1)])


if __name__ == "__main__":
    unittest.main()
