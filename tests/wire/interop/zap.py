"""Keys, passwords, and the ZAP handlers that check them (RFC 27)."""

import contextlib
import threading

import zmq
from sides import Failure, Ours
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85
from zmtp import metadata

DOMAIN = b"home"
SERVER_PUBLIC, SERVER_SECRET = zmq.curve_keypair()
CLIENT_PUBLIC, CLIENT_SECRET = zmq.curve_keypair()
OTHER_PUBLIC, OTHER_SECRET = zmq.curve_keypair()


def null(server, _client):
    server.set(zmq.ZAP_DOMAIN, DOMAIN)


def plain(server, client):
    server.set(zmq.ZAP_DOMAIN, DOMAIN)
    server.set(zmq.PLAIN_SERVER, 1)
    client.set(zmq.PLAIN_USERNAME, b"admin")
    client.set(zmq.PLAIN_PASSWORD, b"secret")


def curve(server, client):
    server.set(zmq.ZAP_DOMAIN, DOMAIN)
    server.set(zmq.CURVE_SERVER, 1)
    server.set(zmq.CURVE_SECRETKEY, SERVER_SECRET)
    client.set(zmq.CURVE_SERVERKEY, SERVER_PUBLIC)
    client.set(zmq.CURVE_PUBLICKEY, CLIENT_PUBLIC)
    client.set(zmq.CURVE_SECRETKEY, CLIENT_SECRET)


def wrong_server_key(client):
    client.set(zmq.CURVE_SERVERKEY, OTHER_PUBLIC)


def wrong_password(client):
    client.set(zmq.PLAIN_PASSWORD, b"guess")


def no_security(_client):
    pass


def sneak(client):
    """Tries to send. The send fails if the client was already refused and has no peer."""
    client.set(zmq.SNDTIMEO, 0)
    with contextlib.suppress(Failure, zmq.Again):
        client.send(b"sneaky")


class Handler:
    """A ZAP handler for the sockets of one of our contexts. It checks the password or key, and refuses all peers if `denied`."""

    def __init__(self, side, denied=False):
        self.denied, self.requests, self.stopping = denied, [], False
        self.socket = side.socket(zmq.REP)
        self.socket.bind("inproc://zeromq.zap.01")
        self.socket.set(zmq.RCVTIMEO, 50)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping:
            if not self.socket.readable(50):
                continue
            version, sequence, domain, address, _routing_id, mechanism, *credentials = self.socket.recv()
            assert (version, domain) == (b"1.0", DOMAIN), (version, domain)
            good = {b"NULL": [], b"PLAIN": [b"admin", b"secret"]}.get(mechanism, [z85.decode(CLIENT_PUBLIC)])
            self.requests.append((mechanism, address))
            if self.denied or credentials != good:
                self.socket.send(version, sequence, b"400", b"no", b"", b"")
            else:
                self.socket.send(version, sequence, b"200", b"OK", b"joe", metadata(("Group", b"friends")))

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.socket.close()


@contextlib.contextmanager
def handler(side, denied=False):
    """Runs pyzmq's authenticator for libzmq, and `Handler` for our library."""
    if isinstance(side, Ours):
        answering = Handler(side, denied)
    else:
        answering = ThreadAuthenticator(side.context)
        answering.start()
        answering.deny("127.0.0.1") if denied else answering.allow("127.0.0.1")
        answering.configure_plain(DOMAIN.decode(), {"admin": "secret"})
        answering.configure_curve_callback(DOMAIN.decode(), Credentials())
    try:
        yield answering
    finally:
        answering.stop()


class Credentials:
    def callback(self, _domain, key):
        return key == CLIENT_PUBLIC
