"""The native API: errors name the object, the cause and the remedy."""

import errno
import time
import unittest

from native_support import PATIENCE, AsyncTest, SyncTest, run_program
from tautline_zmq import (
    PAIR,
    PULL,
    PUSH,
    REQ,
    SUB,
    XSUB,
    Error,
    InvalidArgument,
    TimedOut,
    aio,
    curve_client,
    curve_keypair,
    curve_server,
)

FORM = "An endpoint looks like tcp://127.0.0.1:5555, ipc:///tmp/name or inproc://name"


class EndpointErrorTest(SyncTest):
    def check(self, call, endpoint, reason):
        with self.assertRaises(InvalidArgument) as error:
            call(endpoint)
        self.assertEqual(str(error.exception), f"{call.__name__} {endpoint}: invalid argument: {reason}")

    def test_malformed_endpoint_is_explained(self):
        socket = self.open(PULL)
        cases = {
            "": f"no transport. {FORM}",
            "127.0.0.1:5555": f"no transport. {FORM}",
            "inproc://": f"no address. {FORM}",
            "tcp://127.0.0.1": f"no port. {FORM}",
            "tcp://:5555:": f"the port '' is not a number. {FORM}",
            "tcp://127.0.0.1:http": f"the port 'http' is not a number. {FORM}",
            "tcp://127.0.0.1:99999": "a port is at most 65535",
        }
        for endpoint, reason in cases.items():
            self.check(socket.connect, endpoint, reason)
            self.check(socket.bind, endpoint, reason)
        self.check(socket.connect, "tcp://*:5555", "the host `*` is only for bind. Name the host to connect to")
        self.check(socket.connect, "tcp://127.0.0.1:*", "the port `*` is only for bind. Use the port that bind has returned")

    def test_endpoint_of_the_wrong_type_is_named(self):
        socket = self.open(PULL)
        for call in (socket.bind, socket.connect, socket.unbind, socket.disconnect):
            with self.assertRaisesRegex(TypeError, f"^{call.__name__}: the endpoint is a str, not int$"):
                call(5)

    def test_ipc_bind_names_the_missing_directory(self):
        with self.assertRaisesRegex(Error, "^bind ipc:///nonexistent/a/x: the directory /nonexistent/a does not exist$") as error:
            self.open(PULL).bind("ipc:///nonexistent/a/x")
        self.assertEqual(error.exception.errno, errno.ENOENT)


class OptionErrorTest(SyncTest):
    def test_wrong_type_names_the_option_and_both_types(self):
        socket = self.open(PULL)
        cases = [
            ("rcvhwm", "10", "rcvhwm is an int, not str"),
            ("rcvtimeo", 0.5, "rcvtimeo is an int, in milliseconds, not float"),
            ("linger", None, "linger is an int, in milliseconds, not NoneType"),
            ("immediate", "yes", "immediate is a bool, not str"),
            ("maxmsgsize", "1", "maxmsgsize is an int, not str"),
            ("routing_id", 5, "routing_id is bytes or a str, not int"),
            ("plain_username", b"me", "plain_username is a str, not bytes"),
            ("curve_serverkey", 5, "curve_serverkey is a key of bytes or a str, not int"),
        ]
        for name, value, text in cases:
            with self.assertRaises(TypeError) as error:
                setattr(socket, name, value)
            self.assertEqual(str(error.exception), text)
        self.assertRaises(ValueError, setattr, socket, "immediate", 2)
        socket.immediate = 1
        self.assertIs(socket.immediate, True)
        with self.assertRaisesRegex(InvalidArgument, "^set curve_serverkey on PULL: .*: a key has 40 characters .* not 5$"):
            socket.curve_serverkey = b"short"
        for name in ("linger", "maxmsgsize"):
            with self.assertRaisesRegex(OverflowError, f"^{name}: "):
                setattr(socket, name, 1 << 80)

    def test_wrong_types_of_other_arguments_are_named(self):
        with self.assertRaisesRegex(TypeError, "^subscribe: the topic is bytes or str, not int$"):
            self.open(SUB).subscribe(5)
        with self.assertRaisesRegex(TypeError, "^socket: the type is a SocketType, such as PUSH, not 'PUSH'$"):
            self.context.socket("PUSH")
        with self.assertRaisesRegex(TypeError, "^send_string: the text is a str, not bytes. Use `send` for bytes$"):
            self.open(PUSH).send_string(b"x")
        with self.assertRaisesRegex(TypeError, "^max_sockets is an int, not str$"):
            self.context.max_sockets = "5"
        with self.assertRaisesRegex(TypeError, "the value is an int, bytes or str, not float$"):
            self.open(SUB).set(17, 0.5)

    def test_closed_socket_names_the_option(self):
        socket = self.open(PUSH)
        socket.close()
        with self.assertRaisesRegex(Error, "^get linger on PUSH: the socket is closed$"):
            socket.linger  # noqa: B018

    def test_unknown_option_of_a_context_raises(self):
        context = aio.Context()
        self.addCleanup(context.destroy, 0)
        for kind in (self.context, context):
            with self.assertRaisesRegex(AttributeError, "io_thread"):
                kind.io_thread = 2


class TimeoutErrorTest(SyncTest):
    def expire(self, call, *arguments):
        with self.assertRaises(TimedOut) as error:
            call(*arguments)
        return str(error.exception)

    def test_timeout_names_a_missing_peer(self):
        for kind, method, arguments in ((PULL, "recv", ()), (PUSH, "send", (b"x",)), (XSUB, "recv", ())):
            socket = self.open(kind)
            socket.rcvtimeo = socket.sndtimeo = 1
            self.assertTrue(self.expire(getattr(socket, method), *arguments).endswith(" within 1 ms: no peer is connected"))

    def test_timeout_names_a_missing_subscription(self):
        socket = self.open(SUB)
        socket.rcvtimeo = 1
        self.assertEqual(self.expire(socket.recv), "recv on SUB: no message arrived within 1 ms: the socket has no subscription")
        socket.subscribe("")
        self.assertEqual(self.expire(socket.recv), "recv on SUB: no message arrived within 1 ms: no peer is connected")

    def test_timeout_with_a_peer_has_no_cause(self):
        for endpoint in ("inproc://timeout", "tcp://127.0.0.1:*"):
            bound, connected = self.pair(PAIR, PAIR, endpoint)
            connected.wait_for_peers(1)
            connected.rcvtimeo = 1
            self.assertTrue(self.expire(connected.recv).endswith(" within 1 ms"))

    def test_timeout_counts_failed_handshakes(self):
        server, client = self.open(PULL), self.open(REQ)
        curve_server(server, curve_keypair().secret)
        curve_client(client, curve_keypair().public)
        client.connect(server.bind("tcp://127.0.0.1:*"))
        client.send(b"x")
        client.rcvtimeo = 10
        end = time.monotonic() + PATIENCE
        while "failed handshakes (see `monitor`)" not in self.expire(client.recv):
            self.assertLess(time.monotonic(), end)


class AsyncTimeoutErrorTest(AsyncTest):
    async def test_timeout_names_a_missing_peer(self, context):
        socket = context.socket(PULL)
        socket.rcvtimeo = 1
        with self.assertRaisesRegex(TimedOut, "within 1 ms: no peer is connected$"):
            await socket.recv()


class ForkErrorTest(SyncTest):
    def test_objects_of_the_parent_are_named_in_a_child(self):
        source = """
import os, warnings, tautline_zmq as t
warnings.simplefilter("ignore", DeprecationWarning)
context = t.Context()
socket = context.socket(t.PUSH)
child = os.fork()
if not child:
    calls = [
        lambda: socket.send(b"x"), lambda: socket.bind("inproc://x"), lambda: socket.linger, lambda: setattr(socket, "linger", 1),
        lambda: context.socket(t.PUSH), lambda: context.io_threads,
    ]
    for call in calls:
        try:
            call()
        except t.Error as error:
            print(type(error).__name__, error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
context.destroy()
"""
        lines = run_program(self, source).splitlines()
        self.assertEqual(len(lines), 6)
        for line in lines[:4]:
            self.assertTrue(line.startswith("SocketClosed ") and "the socket belongs to the parent process" in line, line)
        for line in lines[4:]:
            self.assertTrue(line.startswith("Error ") and "the context belongs to the parent process" in line, line)


if __name__ == "__main__":
    unittest.main()
