"""Access: lists of accepted keys and passwords, and policies."""

import asyncio
import threading
import unittest

from native_support import PATIENCE, run
from tautline_zmq import (
    PULL,
    PUSH,
    AccessRefused,
    AddressInUse,
    Context,
    ContextTerminated,
    InvalidArgument,
    MonitorEvent,
    TimedOut,
    aio,
    curve_client,
    curve_keypair,
    curve_server,
    plain_client,
)
from tautline_zmq.access import (
    AllowList,
    authorize,
    curve_client_options,
    curve_server_options,
    plain_client_options,
    plain_server_options,
)
from tautline_zmq.replay import ReliablePub, ReliableSub, Start

LIMIT = PATIENCE * 1000


class SecurityTest(unittest.TestCase):
    def setUp(self):
        self.context = Context()
        self.addCleanup(self.context.destroy, 0)

    def client(self, endpoint, prepare):
        """Connects a client, and sends a message to find out whether the server accepts it."""
        push = self.context.socket(PUSH)
        self.addCleanup(push.close, 0)
        prepare(push)
        push.connect(endpoint)
        push.send(b"hello")
        return push

    def check(self, pull, endpoint, prepare, accepted):
        pull.rcvtimeo = LIMIT if accepted else 300
        push = self.client(endpoint, prepare)
        if accepted:
            self.assertEqual(pull.recv(), b"hello")
        else:
            with self.assertRaises(TimedOut):
                pull.recv()
        push.close(0)

    def test_keys(self):
        server, alice, mallory = curve_keypair(), curve_keypair(), curve_keypair()
        allowed = AllowList({alice.public: "alice"})
        authorize(self.context, allowed)
        pull = self.context.socket(PULL)
        curve_server(pull, server.secret)
        endpoint = pull.bind("tcp://127.0.0.1:*")
        for keys, accepted in ((alice, True), (mallory, False)):
            self.check(pull, endpoint, lambda push, keys=keys: curve_client(push, server.public, keys), accepted)
        push = self.client(endpoint, lambda push: curve_client(push, server.public, alice))
        pull.rcvtimeo = LIMIT
        pull.recv()
        self.assertEqual([peer.user_id for peer in pull.peers()], ["alice"])
        push.close(0)
        # A change concerns new connections.
        allowed.add_key(mallory.public.decode(), "mallory")
        self.assertTrue(allowed.remove_key(alice.public))
        self.assertFalse(allowed.remove_key(alice.public))
        for keys, accepted in ((mallory, True), (alice, False)):
            self.check(pull, endpoint, lambda push, keys=keys: curve_client(push, server.public, keys), accepted)

    def test_passwords(self):
        allowed = AllowList(passwords={"joe": "swordfish"})
        authorize(self.context, allowed)
        pull = self.context.socket(PULL)
        pull.plain_server = True
        endpoint = pull.bind("tcp://127.0.0.1:*")
        self.check(pull, endpoint, lambda push: plain_client(push, "joe", "swordfish"), True)
        self.check(pull, endpoint, lambda push: plain_client(push, "joe", "trout"), False)
        self.assertTrue(allowed.remove_password("joe"))
        self.check(pull, endpoint, lambda push: plain_client(push, "joe", "swordfish"), False)

    def test_list_and_replay(self):
        server, alice = curve_keypair(), curve_keypair()
        authorize(self.context, AllowList({alice.public: "alice"}))
        with ReliablePub(self.context, options=curve_server_options(server.secret)) as publisher:
            live, ring = publisher.bind("tcp://127.0.0.1:*"), publisher.serve("tcp://127.0.0.1:*")
            publisher.send("a", b"1")
            for keys, accepted in ((alice, True), (curve_keypair(), False)):
                options = curve_client_options(server.public, keys)
                with ReliableSub(
                    live, ring, self.context, subscribe=[""], start=Start.OLDEST, options=options
                ) as subscriber:
                    if accepted:
                        self.assertEqual(subscriber.recv(LIMIT).body, b"1")
                    else:
                        with self.assertRaises(TimedOut):
                            subscriber.recv(300)

    def test_passwords_and_replay(self):
        authorize(self.context, AllowList(passwords={"joe": "swordfish"}))
        with ReliablePub(self.context, options=plain_server_options()) as publisher:
            live, ring = publisher.bind("tcp://127.0.0.1:*"), publisher.serve("tcp://127.0.0.1:*")
            publisher.send("a", b"1")
            options = plain_client_options("joe", "swordfish")
            with ReliableSub(live, ring, self.context, subscribe=[""], start=Start.OLDEST, options=options) as subscriber:
                self.assertEqual(subscriber.recv(LIMIT).body, b"1")

    def test_errors(self):
        allowed = AllowList()
        with self.assertRaisesRegex(InvalidArgument, "^add_key on AllowList: "):
            allowed.add_key("short", "alice")
        with self.assertRaises(InvalidArgument):
            AllowList({b"\xff" * 40: "alice"})
        authorize(self.context, allowed)
        with self.assertRaisesRegex(AddressInUse, "^authorize <Context"):
            authorize(self.context, allowed)
        ended = Context()
        ended.term()
        with self.assertRaises(ContextTerminated):
            authorize(ended, allowed)

    def test_function(self):
        server, alice, bob, mallory = (curve_keypair() for _ in range(4))
        requests, reported = [], []

        def decide(request):
            requests.append(request)
            return {alice.public: "alice", bob.public: True, mallory.public: None}[request.key]

        authorize(self.context, decide)
        before, threading.excepthook = threading.excepthook, reported.append
        self.addCleanup(setattr, threading, "excepthook", before)
        pull = self.context.socket(PULL)
        pull.zap_domain, pull.routing_id = "test", b"name"
        curve_server(pull, server.secret)
        endpoint = pull.bind("tcp://127.0.0.1:*")
        for keys, accepted in ((alice, True), (bob, True), (mallory, False), (curve_keypair(), False)):
            self.check(pull, endpoint, lambda push, keys=keys: curve_client(push, server.public, keys), accepted)
        self.assertEqual([type(report.exc_value) for report in reported[:1]], [KeyError])
        first = requests[0]
        self.assertEqual((first.domain, first.address, first.routing_id), ("test", "127.0.0.1", b"name"))
        self.assertEqual((first.mechanism, first.key, first.username), ("CURVE", alice.public, None))
        with self.assertRaisesRegex(AddressInUse, "^authorize <Context"):
            authorize(self.context, decide)

    def test_function_of_passwords(self):
        requests = []

        def decide(request):
            requests.append(request)
            return request.username if request.password == "swordfish" else False

        authorize(self.context, decide)
        pull = self.context.socket(PULL)
        pull.plain_server = True
        endpoint = pull.bind("tcp://127.0.0.1:*")
        self.check(pull, endpoint, lambda push: plain_client(push, "joe", "swordfish"), True)
        self.check(pull, endpoint, lambda push: plain_client(push, "joe", "trout"), False)
        self.assertIn("'joe'", repr(requests[0]))
        self.assertNotIn("swordfish", repr(requests))
        self.assertNotIn("swordfish", str(requests))

    def test_function_that_returns_nonsense(self):
        reported = []
        before, threading.excepthook = threading.excepthook, reported.append
        self.addCleanup(setattr, threading, "excepthook", before)
        authorize(self.context, lambda request: 1)
        pull = self.context.socket(PULL)
        pull.zap_domain = "test"
        endpoint = pull.bind("tcp://127.0.0.1:*")
        self.check(pull, endpoint, lambda push: None, False)
        self.assertIn("the function returns", str(reported[0].exc_value))
        for wrong in (None, "alice"):
            with self.assertRaisesRegex(TypeError, "^authorize: "):
                authorize(self.context, wrong)

    def test_function_of_asyncio(self):
        async def main():
            async with aio.Context() as context:
                waiting, go_on, reported = asyncio.Event(), asyncio.Event(), []
                asyncio.get_running_loop().set_exception_handler(lambda loop, report: reported.append(report["exception"]))

                async def decide(request):
                    if request.username == "slow":
                        waiting.set()
                        await go_on.wait()
                    if request.username == "broken":
                        raise KeyError
                    return request.username if request.password == "swordfish" else None

                authorize(context, decide)
                with context.socket(PULL) as pull:
                    pull.plain_server = True
                    endpoint = pull.bind("tcp://127.0.0.1:*")

                    async def connect(name, password="swordfish"):
                        push = context.socket(PUSH)
                        push.linger = 0
                        plain_client(push, name, password)
                        monitor = push.monitor()
                        push.connect(endpoint)
                        await push.send(name.encode())
                        async for event in monitor:
                            if event.event in (MonitorEvent.HANDSHAKE_SUCCEEDED, MonitorEvent.HANDSHAKE_FAILED_AUTH):
                                monitor.close()
                                return event.event == MonitorEvent.HANDSHAKE_SUCCEEDED

                    # A peer that takes long does not delay another one.
                    slow = asyncio.create_task(connect("slow"))
                    await waiting.wait()
                    self.assertTrue(await connect("joe"))
                    self.assertFalse(await connect("joe", "trout"))
                    self.assertFalse(await connect("broken"))
                    self.assertFalse(slow.done())
                    go_on.set()
                    self.assertTrue(await slow)
                    names = {(await pull.recv(copy=False)).user_id for _ in range(2)}
                    self.assertEqual(names, {"joe", "slow"})
                    self.assertEqual(list(map(type, reported)), [KeyError] * len(reported))
                    self.assertTrue(reported)
                context.close_sockets(0)

        run(main())

    def test_policy(self):
        self.context.set_policy("loopback")
        with ReliablePub(self.context) as publisher:
            with self.assertRaisesRegex(AccessRefused, r"^bind on ReliablePub: tcp://\*:\*"):
                publisher.bind("tcp://*:*")
            publisher.bind("tcp://127.0.0.1:*")


if __name__ == "__main__":
    unittest.main()
