"""The native API: options, endpoints, errors, events, counters, security, threads and processes."""

import errno
import gc
import os
import threading
import unittest
import warnings

import tautline_zmq
from native_support import SyncTest, run_program
from tautline_zmq import (
    DEALER,
    PAIR,
    POLLIN,
    POLLOUT,
    PUB,
    PULL,
    PUSH,
    REP,
    REQ,
    ROUTER,
    SUB,
    XPUB,
    AddressInUse,
    AddressNotAvailable,
    Context,
    ContextTerminated,
    Error,
    InvalidArgument,
    Mechanism,
    MonitorEvent,
    NotSupported,
    Option,
    PeerState,
    Poller,
    Socket,
    SocketClosed,
    SocketType,
    TimedOut,
)


class OptionTest(SyncTest):
    def test_every_property_reads_what_was_set(self):
        socket = self.open(DEALER)
        values = {
            "sndhwm": 10,
            "rcvhwm": 11,
            "linger": 12,
            "sndtimeo": 13,
            "rcvtimeo": 14,
            "maxmsgsize": 1 << 40,
            "max_multipart_size": 1 << 41,
            "conflate": True,
            "immediate": True,
            "affinity": 1,
            "routing_id": b"me\0",
            "invert_matching": True,
            "backlog": 15,
            "reconnect_ivl": 16,
            "reconnect_ivl_max": 17,
            "connect_timeout": 18,
            "handshake_ivl": 19,
            "heartbeat_ivl": 20,
            "heartbeat_timeout": 21,
            "heartbeat_ttl": 200,
            "ipv6": True,
            "sndbuf": 22,
            "rcvbuf": 23,
            "tcp_keepalive": 1,
            "tcp_keepalive_idle": 24,
            "tos": 25,
            "socks_proxy": "127.0.0.1:1080",
            "plain_username": "user",
            "plain_password": "word",
            "zap_domain": "domain",
        }
        for name, value in values.items():
            setattr(socket, name, value)
            self.assertEqual(getattr(socket, name), value, name)
        publisher = self.open(PUB)
        publisher.max_subscriptions = 1 << 42
        self.assertEqual(publisher.max_subscriptions, 1 << 42)
        socket.hwm = 7
        self.assertEqual((socket.hwm, socket.sndhwm, socket.rcvhwm), (7, 7, 7))

    def test_every_readable_property_can_be_read(self):
        socket = self.open(SUB)
        for name in dir(type(socket)):
            row = getattr(type(socket), name)
            if getattr(row, "readable", False):
                self.assertIsNotNone(row.__doc__, name)
                getattr(socket, name)
        self.assertEqual((socket.type, socket.events, socket.mechanism), (SocketType.SUB, 0, Mechanism.NULL))
        self.assertGreater(socket.fd, 0)

    def test_unknown_names_and_wrong_directions_raise(self):
        socket = self.open(SUB)
        with self.assertRaises(AttributeError):
            socket.sndhwn = 5
        with self.assertRaises(AttributeError):
            socket.last_endpoint = "x"
        with self.assertRaises(AttributeError):
            socket.xpub_verbose  # noqa: B018
        with self.assertRaises(TypeError):
            socket.linger = "5"
        with self.assertRaisesRegex(InvalidArgument, "set sndhwm on SUB: invalid argument"):
            socket.sndhwm = -5
        with self.assertRaises(MemoryError):
            socket._get_bytes(5, 2**62)
        with self.assertRaises(OverflowError):
            socket.linger = 1 << 40

    def test_options_by_number(self):
        socket = self.open(ROUTER)
        socket.set(Option.SNDHWM, 3)
        self.assertEqual(socket.get(Option.SNDHWM), 3)
        socket.set(Option.ROUTING_ID, "name")
        self.assertEqual(socket.routing_id, b"name")
        self.assertRaises(InvalidArgument, socket.get, 9999)
        self.assertRaises(InvalidArgument, socket.set, 9999, 1)

    def test_context_options(self):
        context = Context(io_threads=2)
        self.addCleanup(context.destroy, 0)
        self.assertEqual(context.io_threads, 2)
        context.max_sockets = 1
        context.blocky = False
        context.ipv6 = True
        socket = context.socket(PAIR)
        self.addCleanup(socket.close)
        self.assertEqual((socket.linger, socket.ipv6, context.max_sockets), (0, True, 1))
        with self.assertRaisesRegex(Error, "socket PAIR: too many sockets") as error:
            context.socket(PAIR)
        self.assertEqual(error.exception.errno, errno.EMFILE)
        with self.assertRaises(InvalidArgument):
            context.io_threads = -1

    def test_policy_refuses_an_endpoint(self):
        self.context.set_policy("loopback")
        socket = self.open(PULL)
        socket.bind("tcp://127.0.0.1:*")
        with self.assertRaisesRegex(tautline_zmq.AccessRefused, r"bind tcp://\*:\*"):
            socket.bind("tcp://*:*")


class EndpointTest(SyncTest):
    def test_errors_name_the_call_and_the_endpoint(self):
        first, second = self.open(PULL), self.open(PULL)
        endpoint = first.bind("tcp://127.0.0.1:*")
        self.assertRegex(endpoint, r"^tcp://127\.0\.0\.1:\d+$")
        cases = [
            (lambda: second.bind(endpoint), AddressInUse, f"bind {endpoint}: address already in use"),
            (lambda: second.bind("tcp://192.0.2.1:5555"), AddressNotAvailable, "bind tcp://192.0.2.1:5555: this machine"),
            (lambda: second.bind("foo://x"), NotSupported, "bind foo://x: no such transport"),
            (lambda: second.connect("tcp://nonsense"), InvalidArgument, "connect tcp://nonsense: invalid argument"),
            (lambda: second.unbind(endpoint), Error, f"unbind {endpoint}: the socket has no such endpoint"),
            (lambda: second.disconnect(endpoint), Error, f"disconnect {endpoint}: the socket has no such endpoint"),
            (lambda: second.subscribe("a"), InvalidArgument, "subscribe 'a' on PULL"),
            (lambda: second.join("a"), Error, "join a"),
        ]
        for call, kind, text in cases:
            with self.assertRaises(kind) as error:
                call()
            self.assertIn(text, str(error.exception))
            self.assertIsInstance(error.exception, OSError)
            self.assertIsInstance(error.exception.errno, int)
        first.unbind(endpoint)
        second.bind(endpoint)

    def test_endpoint_that_is_not_text_is_a_type_error(self):
        socket = self.open(PULL)
        for endpoint in (5, None, ["tcp://x"]):
            self.assertRaises(TypeError, socket.bind, endpoint)
            self.assertRaises(TypeError, socket.connect, endpoint)

    def test_subscriptions_filter(self):
        publisher, subscriber = self.pair(XPUB, SUB, "tcp://127.0.0.1:*")
        subscriber.subscribe("a")
        subscriber.subscribe(b"b")
        publisher.wait_for_subscriptions(2)
        subscriber.unsubscribe("a")
        while publisher.recv() != b"\0a":
            pass
        for topic in (b"a", b"b", b"c"):
            publisher.send(topic)
        self.assertEqual(subscriber.recv(), b"b")
        self.assertFalse(subscriber.poll(0))

    def test_poll_and_poller(self):
        receiver, sender = self.pair()
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        self.assertEqual(receiver.poll(0), 0)
        self.assertEqual(sender.poll(0, POLLIN | POLLOUT), POLLOUT)
        poller = Poller()
        poller.register(receiver, POLLIN)
        poller.register(read, POLLIN)
        self.assertEqual(poller.poll(1), [])
        sender.send(b"x")
        self.assertEqual(receiver.poll(), POLLIN)
        os.write(write, b"x")
        self.assertEqual(dict(poller.poll()), {receiver: POLLIN, read: POLLIN})
        poller.unregister(read)
        poller.modify(receiver, 0)
        self.assertEqual((len(poller), poller.poll(0)), (0, []))

    def test_proxy_forwards_until_the_context_ends(self):
        context = Context()
        frontend, backend = context.socket(ROUTER), context.socket(DEALER)
        front, back = frontend.bind("inproc://front"), backend.bind("inproc://back")
        ended = []

        def forward():
            try:
                tautline_zmq.proxy(frontend, backend)
            except ContextTerminated:
                ended.append(True)
            frontend.close(0)
            backend.close(0)

        thread = threading.Thread(target=forward)
        thread.start()
        with context.socket(REQ) as request, context.socket(REP) as reply:
            request.connect(front)
            reply.connect(back)
            request.send(b"q")
            self.assertEqual(reply.recv(), b"q")
            reply.send(b"r")
            self.assertEqual(request.recv(), b"r")
        context.term()
        thread.join()
        self.assertEqual(ended, [True])


class EventTest(SyncTest):
    def test_monitor_reports_typed_events(self):
        server = self.open(PULL)
        with server.monitor() as monitor:
            endpoint = server.bind("tcp://127.0.0.1:*")
            client = self.open(PUSH)
            client.connect(endpoint)
            seen = {}
            for event in monitor:
                seen[event.event] = event
                if event.event == MonitorEvent.HANDSHAKE_SUCCEEDED:
                    break
            self.assertEqual(seen[MonitorEvent.LISTENING].local, endpoint)
            self.assertEqual(seen[MonitorEvent.HANDSHAKE_SUCCEEDED].address, "127.0.0.1")
            self.assertIn(MonitorEvent.ACCEPTED, seen)
            client.close()
            self.assertEqual(monitor.next(60_000).event, MonitorEvent.DISCONNECTED)
            self.assertEqual(monitor.drain(), [])
            self.assertIsNone(monitor.next(1))

    def test_monitor_ends_with_the_socket(self):
        server = self.open(PULL)
        monitor = server.monitor()
        server.bind("tcp://127.0.0.1:*")
        server.close()
        kinds = [event.event for event in monitor]
        monitor.close()
        self.assertEqual(kinds[0], MonitorEvent.LISTENING)

    def test_context_closes_a_monitor(self):
        context = Context()
        with context.socket(PULL) as socket:
            monitor = socket.monitor()
        context.destroy()
        self.assertTrue(monitor.receiver.closed)

    def test_counters_and_peers(self):
        receiver, sender = self.pair(PULL, PUSH, "tcp://127.0.0.1:*")
        receiver.wait_for_peers(1)
        sender.send_many([b"12345"] * 10)
        for _ in range(10):
            receiver.recv()
        statistics = receiver.statistics()
        self.assertEqual((statistics.messages_received, statistics.peers, statistics.lost), (10, 1, 0))
        self.assertEqual(sender.statistics().messages_sent, 10)
        (peer,) = sender.peers()
        self.assertEqual((peer.state, peer.messages_sent, peer.connected_here), (PeerState.CONNECTED, 10, True))
        self.assertEqual((peer.endpoint, peer.host, peer.mechanism), (sender.last_endpoint, "127.0.0.1", "NULL"))
        self.assertFalse(receiver.peers()[0].connected_here)
        receiver.sndtimeo = 1
        with self.assertRaisesRegex(TimedOut, r"wait_for_peers\(9\) on PULL .*: not reached within 1 ms"):
            receiver.wait_for_peers(9)


class SecurityTest(SyncTest):
    def test_curve_protects_a_connection(self):
        keys = tautline_zmq.curve_keypair()
        self.assertEqual((len(keys.public), tautline_zmq.curve_public(keys.secret)), (40, keys.public))
        self.assertRaises(ValueError, tautline_zmq.curve_public, "short")
        server, client, stranger = self.open(PULL), self.open(PUSH), self.open(PUSH)
        tautline_zmq.curve_server(server, keys.secret)
        tautline_zmq.curve_client(client, keys.public)
        endpoint = server.bind("tcp://127.0.0.1:*")
        stranger.immediate = True
        stranger.sndtimeo = 50
        stranger.connect(endpoint)
        client.connect(endpoint)
        client.send(b"secret")
        self.assertEqual(server.recv(), b"secret")
        self.assertEqual((server.mechanism, server.curve_secretkey, client.curve_serverkey), (Mechanism.CURVE, keys.secret, keys.public))
        self.assertRaises(TimedOut, stranger.send, b"plain")
        with self.assertRaisesRegex(InvalidArgument, "set curve_secretkey on PULL"):
            self.open(PULL).curve_secretkey = b"short"

    def test_plain_needs_a_server(self):
        socket = self.open(PUSH)
        tautline_zmq.plain_client(socket, "user", "word")
        self.assertEqual((socket.mechanism, socket.plain_username), (Mechanism.PLAIN, "user"))


class LifetimeTest(SyncTest):
    def test_close_ends_a_blocked_receive(self):
        receiver, _ = self.pair()
        caught = []

        def wait():
            try:
                receiver.recv()
            except SocketClosed as error:
                caught.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        while thread.is_alive():
            thread.join(0.02)
            receiver.close()
        self.assertEqual(caught, ["recv on PAIR: the socket is closed"])

    def test_term_ends_a_blocked_receive(self):
        context = Context()
        caught = []

        def wait():
            with context.socket(PULL) as socket:
                try:
                    socket.recv()
                except ContextTerminated:
                    caught.append(True)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.02)
        context.term()
        thread.join()
        self.assertEqual(caught, [True])
        self.assertRaises(RuntimeError, context.set_policy, "audit")
        self.assertRaises(Error, context.socket, PULL)

    def test_threads_share_a_socket_without_a_crash(self):
        receiver, sender = self.pair(PULL, PUSH)
        sums = [0, 0, 0]

        def take(index):
            for _ in range(1000):
                sums[index] += len(receiver.recv())

        threads = [threading.Thread(target=take, args=(index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(3000):
            sender.send(b"1")
        for thread in threads:
            thread.join()
        self.assertEqual(sums, [1000] * 3)

    def test_forgotten_socket_is_closed_with_a_warning(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            context = Context()
            context.socket(PULL)
            gc.collect()
            context.term()
        self.assertEqual([warning.category for warning in caught], [ResourceWarning])
        self.assertIn("unclosed socket <Socket PULL>", str(caught[0].message))

    def test_forgotten_context_is_terminated_with_a_warning(self):
        source = """
import gc, os, time, warnings, tautline_zmq as t
from tautline_zmq import aio
def threads():
    return len(os.listdir("/proc/self/task"))
class Owner:
    pass
before = threads()
for kind in t.Context, aio.Context:
    for is_open in False, True:
        owner = Owner()
        owner.owner, owner.context = owner, kind()
        owner.socket = owner.context.socket(t.PUSH)
        owner.socket.bind("tcp://127.0.0.1:*")
        assert threads() > before
        if not is_open:
            owner.socket.close()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del owner
            gc.collect()
        print(*sorted(str(warning.message).split()[1] for warning in caught))
        while threads() > before:
            time.sleep(0.01)
"""
        self.assertEqual(run_program(self, source).splitlines(), ["context", "context socket"] * 2)

    def test_with_block_sends_what_is_queued(self):
        receiver = self.open(PULL)
        endpoint = receiver.bind("tcp://127.0.0.1:*")
        with Context() as context, context.socket(PUSH) as sender:
            sender.connect(endpoint)
            sender.send(b"last words")
        self.assertEqual((receiver.recv(), sender.closed, context.closed), (b"last words", True, True))

    def test_instance_is_shared(self):
        self.assertIs(Context.instance(), Context.instance())
        Context.instance().term()
        self.assertFalse(Context.instance().closed)
        Context.instance().term()

    def test_child_of_a_fork_gets_errors_and_its_own_context(self):
        source = """
import os, warnings, tautline_zmq as t
# Python 3.12 warns of a fork in a process with threads.
warnings.simplefilter("ignore", DeprecationWarning)
context = t.Context.instance()
a, b = context.socket(t.PAIR), context.socket(t.PAIR)
a.connect(b.bind("inproc://x"))
child = os.fork()
if not child:
    try:
        a.send(b"x")
    except t.SocketClosed:
        pass
    else:
        os._exit(1)
    a.close(); context.term()
    with t.Context.instance() as own, own.socket(t.PAIR) as c, own.socket(t.PAIR) as d:
        c.connect(d.bind("inproc://x"))
        c.send(b"y")
        os._exit(0 if d.recv() == b"y" else 2)
print(os.waitpid(child, 0)[1])
a.send(b"still open")
print(b.recv().decode())
context.destroy()
"""
        self.assertEqual(run_program(self, source), "0\nstill open")

    def test_program_ends_with_open_sockets_and_a_waiting_thread(self):
        source = """
import threading, time, tautline_zmq as t
context = t.Context()
socket = context.socket(t.PULL)
socket.bind("inproc://x")
threading.Thread(target=socket.recv, daemon=True).start()
time.sleep(0.1)
print("end")
"""
        self.assertEqual(run_program(self, source), "end")

    def test_import_of_the_package_loads_no_native_module(self):
        # The startup file of an installed wheel has imported the package already.
        source = "import sys; before = set(sys.modules) - {'tautline_zmq'}; import tautline_zmq; print(set(sys.modules) - before)"
        self.assertEqual(run_program(self, source), "{'tautline_zmq'}")

    def test_native_api_does_not_import_pyzmq(self):
        source = """
import sys
sys.modules["zmq"] = None
import tautline_zmq as t
with t.Context() as context, context.socket(t.PULL) as socket:
    try:
        socket.recv(t.DONTWAIT)
    except t.Again as error:
        print(error)
    try:
        socket.bind("ipc:///nonexistent/folder/x")
    except t.Error as error:
        print(error)
"""
        expected = "recv on PULL: the operation would block\nbind ipc:///nonexistent/folder/x: the socket has no such endpoint"
        self.assertEqual(run_program(self, source).splitlines()[0], expected.splitlines()[0])

    def test_every_public_name_exists_and_is_documented(self):
        for name in tautline_zmq.__all__:
            value = getattr(tautline_zmq, name)
            if isinstance(value, type) or callable(value):
                self.assertTrue(value.__doc__, name)
        for kind in (Context, Socket, tautline_zmq.aio.Socket, tautline_zmq.aio.Context):
            for name in dir(kind):
                if not name.startswith("_") and callable(getattr(kind, name)):
                    self.assertTrue(getattr(kind, name).__doc__, f"{kind.__name__}.{name}")
        self.assertRaises(AttributeError, getattr, tautline_zmq, "no_such_name")

    def test_info_shows_versions_and_files(self):
        source = "import runpy, sys; sys.argv[1:] = ['info']; runpy.run_module('tautline_zmq', run_name='__main__')"
        shown = run_program(self, source)
        for word in ("engine", "Tautline", "features", "curve", "module", "_native", "library", "python"):
            self.assertIn(word, shown)


if __name__ == "__main__":
    unittest.main()
