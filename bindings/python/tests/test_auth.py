"""pyzmq's own handlers of authentication requests (zmq.auth) decide about the peers of our sockets."""

import asyncio
import tempfile
import unittest

import zmq
import zmq.asyncio
import zmq.auth
import zmq.utils.monitor
from support import PATIENCE
from zmq.auth.asyncio import AsyncioAuthenticator
from zmq.auth.thread import ThreadAuthenticator

DOMAIN = "global"


class Certificates:
    """Two pairs of keys, of which the folder has the public one of the second."""

    def __init__(self, test):
        self.folder = tempfile.TemporaryDirectory()
        test.addCleanup(self.folder.cleanup)
        self.server = zmq.curve_keypair()
        _, secret = zmq.auth.create_certificates(self.folder.name, "client")
        self.client = zmq.auth.load_certificate(secret)

    def serve(self, socket):
        socket.curve_publickey, socket.curve_secretkey = self.server
        socket.curve_server = True

    def connect(self, socket, keys):
        socket.curve_publickey, socket.curve_secretkey = keys
        socket.curve_serverkey = self.server[0]


class Peers:
    """Makes the sockets of a test."""

    def __init__(self, test, context):
        self.test, self.context = test, context
        test.addCleanup(context.destroy, 0)

    def open(self, kind):
        socket = self.context.socket(kind)
        socket.linger = 0
        return socket

    def server(self, prepare):
        pull = self.open(zmq.PULL)
        prepare(pull)
        pull.bind("tcp://127.0.0.1:*")
        return pull

    def client(self, server, prepare):
        """Connects a client. Returns the socket that reports its handshake."""
        push = self.open(zmq.PUSH)
        prepare(push)
        monitor = push.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH)
        push.connect(server.last_endpoint)
        return push, monitor


def plain_server(socket):
    socket.plain_server, socket.zap_domain = True, DOMAIN.encode()


def password(text):
    def prepare(socket):
        socket.plain_username, socket.plain_password = b"joe", text

    return prepare


class ThreadTest(unittest.TestCase):
    def setUp(self):
        self.peers = Peers(self, zmq.Context())
        self.handler = ThreadAuthenticator(self.peers.context)
        self.handler.start()
        self.addCleanup(self.handler.stop)

    def check(self, server, prepare, user_id):
        """Connects a client that becomes `user_id`, or is refused if that is `None`."""
        push, monitor = self.peers.client(server, prepare)
        self.assertTrue(monitor.poll(PATIENCE * 1000))
        event = zmq.utils.monitor.recv_monitor_message(monitor)["event"]
        self.assertEqual(event == zmq.EVENT_HANDSHAKE_SUCCEEDED, user_id is not None)
        if user_id is not None:
            push.send(b"hello")
            self.assertTrue(server.poll(PATIENCE * 1000))
            frame = server.recv(copy=False)
            self.assertEqual((frame.bytes, frame.get("User-Id")), (b"hello", user_id))
        push.disable_monitor()
        monitor.close()
        push.close()

    def test_addresses(self):
        def domain(socket):
            socket.zap_domain = DOMAIN.encode()

        server = self.peers.server(domain)
        self.handler.allow("127.0.0.1")
        self.check(server, lambda socket: None, "anonymous")

    def test_denied_address(self):
        def domain(socket):
            socket.zap_domain = DOMAIN.encode()

        self.handler.deny("127.0.0.1")
        self.check(self.peers.server(domain), lambda socket: None, None)

    def test_passwords(self):
        self.handler.configure_plain(domain=DOMAIN, passwords={"joe": "swordfish"})
        server = self.peers.server(plain_server)
        self.check(server, password(b"swordfish"), "joe")
        self.check(server, password(b"trout"), None)

    def test_keys(self):
        keys = Certificates(self)
        server = self.peers.server(keys.serve)
        self.handler.configure_curve(domain="*", location=keys.folder.name)
        self.check(server, lambda socket: keys.connect(socket, keys.client), keys.client[0].decode())
        self.check(server, lambda socket: keys.connect(socket, zmq.curve_keypair()), None)
        self.handler.configure_curve(domain="*", location=zmq.auth.CURVE_ALLOW_ANY)
        other = zmq.curve_keypair()
        self.check(server, lambda socket: keys.connect(socket, other), other[0].decode())

    def test_a_function_decides(self):
        keys = Certificates(self)

        class Provider:
            def callback(self, domain, key):
                return key == keys.client[0]

        self.handler.configure_curve_callback(domain="*", credentials_provider=Provider())
        server = self.peers.server(keys.serve)
        self.check(server, lambda socket: keys.connect(socket, keys.client), keys.client[0].decode())
        self.check(server, lambda socket: keys.connect(socket, zmq.curve_keypair()), None)


class AsyncioTest(unittest.TestCase):
    def test_passwords_and_keys(self):
        keys = Certificates(self)

        async def check(peers, server, prepare, user_id):
            push, monitor = peers.client(server, prepare)
            event = (await monitor.recv_multipart())[0][:2]
            success = int(zmq.EVENT_HANDSHAKE_SUCCEEDED).to_bytes(2, "little")
            self.assertEqual(event == success, user_id is not None)
            if user_id is not None:
                await push.send(b"hello")
                frame = await server.recv(copy=False)
                self.assertEqual((frame.bytes, frame.get("User-Id")), (b"hello", user_id))
            push.disable_monitor()
            push.close()

        async def main():
            peers = Peers(self, zmq.asyncio.Context())
            handler = AsyncioAuthenticator(peers.context)
            handler.start()
            try:
                handler.configure_plain(domain=DOMAIN, passwords={"joe": "swordfish"})
                handler.configure_curve(domain="*", location=keys.folder.name)
                server = peers.server(plain_server)
                await check(peers, server, password(b"swordfish"), "joe")
                await check(peers, server, password(b"trout"), None)
                server = peers.server(keys.serve)
                await check(peers, server, lambda socket: keys.connect(socket, keys.client), keys.client[0].decode())
                await check(peers, server, lambda socket: keys.connect(socket, zmq.curve_keypair()), None)
            finally:
                handler.stop()

        asyncio.run(asyncio.wait_for(main(), PATIENCE))


if __name__ == "__main__":
    unittest.main()
