"""Sockets that several threads may use (CLIENT, SERVER, ...): the interpreter lock, closing, and reuse of slots."""

import threading
import unittest

import zmq
from native_support import SyncTest, run_program
from tautline_zmq import CLIENT, SERVER, Again, SocketClosed, proxy

# A program whose main thread calls a CLIENT while another thread has its lock. If the call kept the interpreter lock, no
# thread could end the other call, and the program would hang.
CONTENDED = """
import sys, threading
import tautline_zmq as t

context = t.Context()
client, server = context.socket(t.CLIENT), context.socket(t.SERVER)
server.bind("inproc://server")
held, calling = threading.Event(), threading.Event()

def hold():
    held.set()
    try:
        if sys.argv[1] == "wait":
            client.wait_for_peers(1)
        else:
            t.proxy(server, client)
    except t.SocketClosed:
        pass

def release():
    calling.wait()
    if sys.argv[1] == "wait":
        client.connect("inproc://server")
    else:
        client.close(0)

def poll():
    poller = t.Poller()
    poller.register(client, t.POLLIN)
    return poller.poll(0)

calls = {
    "send": lambda: client.send(b"x", t.DONTWAIT),
    "recv": lambda: client.recv(t.DONTWAIT),
    "recv_batch": lambda: client.recv_batch(),
    "send_many": lambda: client.send_many([b"x"], t.DONTWAIT),
    "get": lambda: client.sndhwm,
    "poll": poll,
}
threads = [threading.Thread(target=hold), threading.Thread(target=release)]
for thread in threads:
    thread.start()
held.wait()
calling.set()
try:
    calls[sys.argv[2]]()
except (t.Again, t.SocketClosed):
    pass
for thread in threads:
    thread.join()
client.close(0)
server.close(0)
context.term()
print("ended")
"""

# The same for the descriptor of a socket in pyzmq.
DESCRIPTOR = """
import threading, warnings
import zmq
warnings.simplefilter("ignore")
from tautline_zmq import Option

context = zmq.Context()
client, server = context.socket(zmq.CLIENT), context.socket(zmq.SERVER)
server.bind("inproc://server")
held, calling = threading.Event(), threading.Event()

def hold():
    held.set()
    client.set(int(Option.TAUTLINE_WAIT_PEERS), 1)

def release():
    calling.wait()
    client.connect("inproc://server")

threads = [threading.Thread(target=hold), threading.Thread(target=release)]
for thread in threads:
    thread.start()
held.wait()
calling.set()
client.get(zmq.FD)
client.get(zmq.EVENTS)
for thread in threads:
    thread.join()
context.destroy(0)
print("ended")
"""


class SharedTest(SyncTest):
    def test_call_that_waits_for_the_socket_leaves_the_interpreter_running(self):
        for holder in ("wait", "proxy"):
            for call in ("send", "recv", "recv_batch", "send_many", "get", "poll"):
                with self.subTest(holder=holder, call=call):
                    self.assertEqual(run_program(self, CONTENDED, holder, call), "ended")

    def test_descriptor_of_a_busy_socket_leaves_the_interpreter_running(self):
        self.assertEqual(run_program(self, DESCRIPTOR), "ended")

    def test_threads_send_and_receive_at_the_same_time(self):
        server, client = self.pair(SERVER, CLIENT, "tcp://127.0.0.1:*")
        received = []
        receivers = [
            threading.Thread(target=lambda: [received.append(server.recv()) for _ in range(500)]) for _ in range(2)
        ]
        senders = [threading.Thread(target=lambda: [client.send(b"x") for _ in range(250)]) for _ in range(4)]
        for thread in receivers + senders:
            thread.start()
        for thread in receivers + senders:
            thread.join()
        self.assertEqual(len(received), 1000)

    def test_send_many_never_goes_on_with_a_later_socket(self):
        first, second = self.open(SERVER), self.open(SERVER)
        second.rcvtimeo = 0
        endpoint = second.bind("inproc://second")
        client = self.open(CLIENT)
        client.connect(first.bind("inproc://first"))
        address = client.underlying

        def messages():
            yield b"for the first"
            client.close()
            while True:
                other = self.open(CLIENT)
                other.connect(endpoint)
                if other.underlying == address:
                    break
            # Not `bytes`: it is sent at once, after the collected messages.
            yield bytearray(b"for the first, too")

        with self.assertRaises(SocketClosed):
            client.send_many(messages())
        with self.assertRaises(Again):
            second.recv()

    def test_shadow_of_a_closed_socket_never_reaches_a_later_one(self):
        context = zmq.Context()
        self.addCleanup(context.destroy, 0)
        client = context.socket(zmq.CLIENT)
        shadow = zmq.Socket.shadow(client.underlying)
        address = client.underlying
        client.close()
        others = [context.socket(zmq.CLIENT)]
        while others[-1].underlying != address:
            others.append(context.socket(zmq.CLIENT))
        self.assertTrue(shadow.closed)
        with self.assertRaises(zmq.ZMQError) as caught:
            shadow.get(zmq.TYPE)
        self.assertEqual(caught.exception.errno, zmq.ENOTSOCK)

    def test_close_with_linger_ends_a_proxy(self):
        server, client = self.open(SERVER), self.open(CLIENT)
        server.bind("inproc://proxied")
        started = threading.Event()

        def run():
            started.set()
            with self.assertRaises(SocketClosed):
                proxy(server, client)

        thread = threading.Thread(target=run)
        thread.start()
        started.wait()
        client.close(0)
        thread.join()


if __name__ == "__main__":
    unittest.main()
