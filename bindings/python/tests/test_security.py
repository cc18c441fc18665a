"""Access: lists of accepted keys and passwords, and policies."""

import unittest

from native_support import PATIENCE
from tautline_zmq import (
    PULL,
    PUSH,
    AccessRefused,
    AddressInUse,
    Context,
    ContextTerminated,
    InvalidArgument,
    TimedOut,
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

    def test_policy(self):
        self.context.set_policy("loopback")
        with ReliablePub(self.context) as publisher:
            with self.assertRaisesRegex(AccessRefused, r"^bind on ReliablePub: tcp://\*:\*"):
                publisher.bind("tcp://*:*")
            publisher.bind("tcp://127.0.0.1:*")


if __name__ == "__main__":
    unittest.main()
