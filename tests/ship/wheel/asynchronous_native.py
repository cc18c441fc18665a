"""Tests how zmq.asyncio waits on the native backend: `asynchronous_native.py [NAME...]`. Runs only there, unlike asynchronous.py."""

import asyncio
import gc
import os
import sys
import warnings
import weakref

import zmq
import zmq.asyncio
from asynchronous import PATCHED, close, main, pair

assert PATCHED
cases = []


def case(function):
    cases.append(function)
    return function


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@case
async def zmq_fd_is_not_asked_for():
    asked, get = [], zmq.Socket.get

    def noted(self, option):
        asked.append(option)
        return get(self, option)

    zmq.Socket.get = zmq.Socket.getsockopt = noted
    try:
        pull, push = pair(zmq.PULL, zmq.PUSH, "tcp://127.0.0.1:*")
        waiting = pull.recv()
        await push.send(b"1")
        assert await waiting == b"1"
        assert zmq.FD not in asked, asked
    finally:
        zmq.Socket.get = zmq.Socket.getsockopt = get
    close(push, pull)


@case
async def messages_after_a_pause_arrive():
    """Gaps of different lengths: the engine spins, sleeps, or leaves the connection to its I/O thread."""
    for endpoint in ("inproc://pause", "tcp://127.0.0.1:*", f"ipc://@pause-{os.getpid()}"):
        one, other = pair(zmq.PAIR, zmq.PAIR, endpoint)
        for number in range(60):
            waiting = asyncio.ensure_future(one.recv_multipart())
            await asyncio.sleep((number % 6) ** 3 * 1e-4)
            await other.send(b"%d" % number)
            assert await asyncio.wait_for(waiting, 60) == [b"%d" % number]
            # This message arrives without a waiting task.
            await other.send(b"next")
            await asyncio.sleep((number % 5) ** 3 * 1e-4)
            assert await asyncio.wait_for(one.recv(), 60) == b"next"
        close(other, one)


@case
async def a_send_leaves_the_receiver_waiting():
    one, other = pair(zmq.PAIR, zmq.PAIR, "tcp://127.0.0.1:*")
    for number in range(100):
        waiting = asyncio.ensure_future(one.recv())
        await asyncio.sleep(0)
        await one.send(b"out")
        one.get(zmq.EVENTS)
        await one.poll(0)
        await other.send(b"%d" % number)
        assert await asyncio.wait_for(waiting, 60) == b"%d" % number
        assert await asyncio.wait_for(other.recv(), 60) == b"out"
    close(other, one)


@case
async def sockets_that_several_threads_may_use_work():
    # pyzmq calls its ZMQ_FD of such sockets experimental.
    warnings.simplefilter("ignore", zmq.error.DraftFDWarning)
    server, client = pair(zmq.SERVER, zmq.CLIENT, "tcp://127.0.0.1:*")
    for number in range(50):
        waiting = asyncio.ensure_future(server.recv(copy=False))
        await asyncio.sleep(0)
        await client.send(b"%d" % number)
        frame = await asyncio.wait_for(waiting, 60)
        assert frame.bytes == b"%d" % number
        await server.send(frame.bytes, routing_id=frame.routing_id)
        assert await asyncio.wait_for(client.recv(), 60) == b"%d" % number
    close(client, server)


@case
async def a_shadow_socket_in_the_loop_gets_the_messages():
    context = zmq.Context()
    one, other = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    one.bind("tcp://127.0.0.1:*")
    other.connect(one.last_endpoint)
    for shadow in (zmq.asyncio.Socket.from_socket(one), zmq.asyncio.Socket.shadow(one.underlying)):
        for number in range(50):
            waiting = asyncio.ensure_future(shadow.recv())
            await asyncio.sleep(0)
            other.send(b"%d" % number)
            assert await asyncio.wait_for(waiting, 60) == b"%d" % number
    context.destroy(0)


@case
async def a_full_queue_and_a_poller_wait():
    pull, push = pair(zmq.PULL, zmq.PUSH, sndhwm=1, rcvhwm=1)
    for _ in range(50):
        sent = 0
        while (sending := push.send(b"x")).done():
            sent += 1
        poller = zmq.asyncio.Poller()
        poller.register(push, zmq.POLLOUT)
        polling = poller.poll(20000)
        for _ in range(sent):
            assert await asyncio.wait_for(pull.recv(), 60) == b"x"
        await asyncio.wait_for(sending, 60)
        assert dict(await asyncio.wait_for(polling, 60)) == {push: zmq.POLLOUT}
        assert await asyncio.wait_for(pull.recv(), 60) == b"x"
    close(push, pull)


class Spin:
    """Replaces the spins of a socket: calls `act` in place of waiting for the peer."""

    def __init__(self, socket, act):
        self.watch, self.act, self.count = socket._watch, act, 0
        self.readiness, self.watch._readiness, self.watch._poll = self.watch._readiness, self, self.poll
        # The calls so far are no long burst.
        socket._burst.begin()

    def poll(self, timeout):
        """Only a spin polls the loop."""
        self.count += 1
        return []

    def arm(self, events):
        self.act()
        return self.readiness.READY

    def end(self):
        self.watch._readiness = self.readiness

    def __getattr__(self, name):
        return getattr(self.readiness, name)


async def waiting_pair():
    """Returns a socket that has waited once, and a blocking one that sends to it."""
    one, other = pair(zmq.PAIR, zmq.PAIR)
    waiting = one.recv()
    await other.send(b"first")
    assert await waiting == b"first"
    for _ in range(3):
        await asyncio.sleep(0)
    return one, other, zmq.Socket.shadow(other.underlying)


def shows_its_calls(loop):
    return hasattr(loop, "_ready")


@case
async def a_message_that_comes_during_the_spin_needs_no_turn():
    one, other, sender = await waiting_pair()
    if shows_its_calls(asyncio.get_running_loop()):
        for receive, expected, limit in ((one.recv, b"x", -1), (one.recv_multipart, [b"x"], -1), (one.recv, b"x", 60000)):
            one.rcvtimeo = limit
            waiting, late = receive(), []
            asyncio.get_running_loop().call_later(0, late.append, None)
            spin = Spin(one, lambda: sender.send(b"x"))
            assert await waiting == expected
            assert spin.count == 1 and not late and not one._recv_futures and not one._state
            spin.end()
            while not late:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
    close(other, one)


@case
async def a_task_does_not_spin_if_the_loop_has_other_work():
    one, other, sender = await waiting_pair()
    waiting, counts = one.recv(), []

    def work():
        counts.append(spin.count)
        spin.end()
        sender.send(b"x")

    spin = Spin(one, lambda: None)
    asyncio.get_running_loop().call_soon(work)
    assert await waiting == b"x"
    assert counts == [0], counts
    close(other, one)


@case
async def spins_that_succeed_give_way():
    one, other, sender = await waiting_pair()
    if shows_its_calls(asyncio.get_running_loop()):
        sent, got, seen = [], [], []

        def act():
            if len(sent) == len(got):
                sent.append(None)
                sender.send(b"x")

        spin = Spin(one, act)
        asyncio.get_running_loop().call_later(0, lambda: seen.append(len(got)))
        for _ in range(100):
            got.append(await one.recv())
        assert seen and seen[0] > 0, seen
        spin.end()
    close(other, one)


@case
async def closed_sockets_leave_nothing():
    async def once():
        pull, push = pair(zmq.PULL, zmq.PUSH, "tcp://127.0.0.1:*")
        waiting = asyncio.ensure_future(pull.recv())
        await asyncio.sleep(0)
        await push.send(b"")
        await waiting
        pull.recv()
        close(push, pull)
        return weakref.ref(pull)

    await once()
    gc.collect()
    before = descriptors()
    gone = [await once() for _ in range(20)]
    await asyncio.sleep(0)
    gc.collect()
    assert descriptors() == before, (descriptors(), before)
    assert not any(socket() for socket in gone)


if __name__ == "__main__":
    main(cases, sys.argv[1:])
