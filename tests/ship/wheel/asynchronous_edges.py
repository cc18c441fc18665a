"""Tests cancellation, time limits, errors and classes: `asynchronous_edges.py [NAME...]`.

Runs like asynchronous.py. pyzmq's methods pass every case as well.
"""

import asyncio
import gc
import importlib
import random
import sys
import threading
import time
import weakref

import zmq
import zmq.asyncio
from asynchronous import PATCHED, close, fails, main, pair

cases = []
MANY = 300


def case(function):
    cases.append(function)
    return function


# ---- a call is tried at once


@case
async def a_message_that_is_there_needs_no_wait():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    for number in range(MANY):
        await push.send(b"%d" % number)
    for number in range(MANY):
        assert await asyncio.wait_for(pull.recv(), 0) == b"%d" % number
    # The same with a turn of the loop between two messages.
    for number in range(MANY):
        await push.send(b"%d" % number)
        await asyncio.sleep(0)
        received = pull.recv()
        assert received.done() and received.result() == b"%d" % number
    close(push, pull)


@case
async def a_time_limit_of_zero_is_enough_for_a_message_that_is_there():
    pull, push = pair(zmq.PULL, zmq.PUSH, rcvtimeo=0, sndtimeo=0)
    for number in range(MANY):
        await push.send(b"%d" % number)
    for number in range(MANY):
        assert await pull.recv() == b"%d" % number
    await fails(zmq.Again, pull.recv())
    close(push, pull)


@case
async def sends_without_await_arrive_although_the_socket_closes():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    push.linger = -1
    for number in range(MANY):
        push.send(b"%d" % number)
    push.close()
    assert [await pull.recv() for _ in range(MANY)] == [b"%d" % number for number in range(MANY)]
    close(pull)


@case
async def a_buffer_may_change_after_send_returned():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    buffer = bytearray(4)
    for number in range(MANY):
        buffer[:] = b"%04d" % number
        push.send(buffer)
    assert [await pull.recv() for _ in range(MANY)] == [b"%04d" % number for number in range(MANY)]
    close(push, pull)


@case
async def a_send_out_of_turn_fails_at_once():
    reply, request = pair(zmq.REP, zmq.REQ)
    for _ in range(70):
        await request.send(b"")
        await reply.recv()
        await reply.send(b"")
        await request.recv()
        await fails(zmq.ZMQError, reply.send(b"wrong"), zmq.EFSM)
    await request.send(b"")
    await fails(zmq.ZMQError, request.send(b"wrong"), zmq.EFSM)
    close(request, reply)


# ---- cancellation


@case
async def a_receiver_that_another_cancels_leaves_its_message():
    pull, push = pair(zmq.PULL, zmq.PUSH)

    async def first():
        message = await pull.recv()
        second.cancel()
        return message

    async def other():
        return await pull.recv()

    one, second = asyncio.ensure_future(first()), asyncio.ensure_future(other())
    await asyncio.sleep(0)
    push.send(b"1")
    push.send(b"2")
    assert await one == b"1"
    await fails(asyncio.CancelledError, second)
    assert await asyncio.wait_for(pull.recv(), 5) == b"2"
    close(push, pull)


@case
async def a_cancelled_sender_leaves_no_message_unfinished():
    pull, push = pair(zmq.PULL, zmq.PUSH)

    async def send():
        await push.send(b"head", zmq.SNDMORE)
        await push.send(b"tail")

    for _ in range(MANY):
        sending = asyncio.ensure_future(send())
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    for _ in range(MANY):
        assert await asyncio.wait_for(pull.recv_multipart(), 5) == [b"head", b"tail"]
    close(push, pull)


@case
async def a_timed_out_receiver_is_released():
    class Large:
        pass

    pull, push = pair(zmq.PULL, zmq.PUSH, rcvtimeo=5)
    kept = []

    async def receive():
        large = Large()
        kept.append(weakref.ref(large))
        await pull.recv()

    await fails(zmq.Again, receive())
    await asyncio.sleep(0.02)
    gc.collect()
    assert kept[0]() is None and not pull._recv_futures
    close(push, pull)


@case
async def cancelled_receivers_leave_the_queue():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    for _ in range(10):
        waiting = [pull.recv(), pull.recv_multipart()]
        for future in waiting:
            future.cancel()
        await asyncio.sleep(0)
        assert not pull._recv_futures
    close(push, pull)


# ---- errors


@case
async def a_failed_send_wakes_the_receivers():
    for how in ("no peer", "full", "type"):
        first, second = zmq.asyncio.Context(), zmq.Context()
        kinds = (zmq.ROUTER, zmq.DEALER) if how == "no peer" else (zmq.PAIR, zmq.PAIR)
        one, other = first.socket(kinds[0]), second.socket(kinds[1])
        one.sndhwm = other.rcvhwm = 1
        one.linger = other.linger = 0
        if how == "no peer":
            one.router_mandatory = 1
        port = one.bind_to_random_port("tcp://127.0.0.1")
        other.connect(f"tcp://127.0.0.1:{port}")
        waiting = asyncio.ensure_future(one.recv_multipart())
        await asyncio.sleep(0.05)
        other.send(b"hello")
        # The loop does not run while the message arrives.
        time.sleep(0.05)
        if how == "no peer":
            await fails(zmq.ZMQError, one.send_multipart([b"nobody", b""]), zmq.EHOSTUNREACH)
        elif how == "type":
            await fails(TypeError, one.send("text"))
        else:
            try:
                while True:
                    await one.send(bytes(100_000), zmq.DONTWAIT)
            except zmq.Again:
                pass
        assert (await asyncio.wait_for(waiting, 60))[-1] == b"hello", how
        close(other)
        close(one)


@case
async def errors_come_as_in_pyzmq():
    pull, push = pair(zmq.PULL, zmq.PUSH, rcvtimeo=20)
    # A PUSH never has a message.
    await fails(zmq.Again, push.recv())
    await fails(zmq.ZMQError, push.recv(zmq.DONTWAIT), zmq.ENOTSUP)
    await fails(TypeError, push.send(b"", unknown=1))
    pull.close()
    for receive in (pull.recv, pull.recv_multipart):
        try:
            receive()
            raise AssertionError("the call did not raise")
        except zmq.ZMQError as error:
            assert error.errno == zmq.ENOTSOCK
    await fails(zmq.ZMQError, pull.send(b""), zmq.ENOTSOCK)
    close(push)


@case
async def the_end_of_the_context_ends_calls():
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    context = zmq.asyncio.Context()
    pull = context.socket(zmq.PULL)
    waiting = asyncio.ensure_future(pull.recv())
    await asyncio.sleep(0)
    ending = threading.Thread(target=context.term)
    ending.start()
    try:
        while True:
            pull.get(zmq.EVENTS)
            await asyncio.sleep(0.001)
    except zmq.ContextTerminated:
        pass
    await asyncio.sleep(0)
    assert not waiting.done()
    try:
        pull.recv()
        raise AssertionError("the call did not raise")
    except zmq.ContextTerminated:
        pass
    pull.close()
    ending.join()
    assert waiting.cancelled()


# ---- classes


@case
async def methods_of_the_blocking_socket_get_their_options_by_name():
    class Plain(zmq.Socket):
        def recv(self, flags=0, **options):
            return super().recv(flags, **options)

        def send(self, data, flags=0, **options):
            return super().send(data, flags, **options)

    context = zmq.Context()
    first, second = Plain(context, zmq.PAIR), Plain(context, zmq.PAIR)
    first.bind("inproc://names")
    second.connect("inproc://names")
    one, other = map(zmq.asyncio.Socket.from_socket, (first, second))
    await one.send(b"1")
    assert await other.recv() == b"1"
    waiting = asyncio.ensure_future(other.recv())
    await asyncio.sleep(0)
    await one.send(b"2")
    assert await waiting == b"2"
    first.close(0)
    second.close(0)
    context.term()


@case
async def overridden_internals_are_used():
    class Counting(zmq.asyncio.Socket):
        calls = []

        def _add_recv_event(self, kind, *arguments, **options):
            self.calls.append(kind)
            return super()._add_recv_event(kind, *arguments, **options)

    context = zmq.asyncio.Context()
    first, second = Counting(context, zmq.PAIR), Counting(context, zmq.PAIR)
    first.bind("inproc://internals")
    second.connect("inproc://internals")
    await first.send(b"")
    await second.recv()
    assert Counting.calls == ["recv"]
    close(first, second)


def other_modules_are_untouched():
    try:
        from zmq.eventloop import future
    except ImportError:
        return
    assert "recv" not in future.Socket.__dict__ and "_tautline" not in dir(future.Socket)

    async def exchange():
        pull, push = pair(zmq.PULL, zmq.PUSH, context=future.Context())
        waiting = pull.recv()
        for number in range(MANY):
            await push.send(b"%d" % number)
        assert [await waiting, *[await pull.recv() for _ in range(MANY - 1)]] == [b"%d" % number for number in range(MANY)]
        close(push, pull)

    asyncio.run(exchange())


def the_module_can_be_loaded_again():
    importlib.reload(zmq.asyncio)
    assert ("_tautline" in zmq.asyncio.Socket.__dict__) == PATCHED


# ---- all together


@case
async def random_calls_keep_all_messages_in_order():
    """Both directions at a high-water mark of 1, with all kinds of calls and cancellations."""
    context, choose = zmq.asyncio.Context(), random.Random(5)
    sockets = pair(zmq.PAIR, zmq.PAIR, context=context, sndhwm=1, rcvhwm=1)

    async def send(socket):
        number = 0
        while number < 400:
            kind, parts = choose.randrange(6), [b"%d" % number, b"x" * choose.choice((0, 10, 300, 70000))]
            if kind == 0:
                await socket.send_multipart(parts)
            elif kind == 1:
                await socket.send(parts[0], zmq.SNDMORE)
                await socket.send(parts[1])
            elif kind == 2:
                try:
                    await socket.send_multipart(parts, zmq.DONTWAIT)
                except zmq.Again:
                    await asyncio.sleep(0)
                    continue
            elif kind == 3:
                future = socket.send_multipart(parts)
                await asyncio.sleep(0)
                if future.cancel():
                    await asyncio.sleep(0)
                    continue
            elif kind == 4:
                await socket.poll(5, zmq.POLLOUT)
                await socket.send_multipart(parts, copy=False)
            else:
                socket.sndtimeo = 1
                future = socket.send_multipart(parts)
                socket.sndtimeo = -1
                try:
                    await future
                except zmq.Again:
                    continue
            number += 1

    async def receive(socket):
        number = 0
        while number < 400:
            kind = choose.randrange(5)
            try:
                if kind == 0:
                    parts = await socket.recv_multipart()
                elif kind == 1:
                    parts = await asyncio.wait_for(socket.recv_multipart(), 0)
                elif kind == 2:
                    parts = await socket.recv_multipart(zmq.DONTWAIT)
                elif kind == 3:
                    future = socket.recv_multipart()
                    await asyncio.sleep(0)
                    if future.cancel():
                        continue
                    parts = await future
                else:
                    await socket.poll(5)
                    socket.rcvtimeo = 1
                    future = socket.recv()
                    socket.rcvtimeo = -1
                    parts = [await future]
                    while socket.getsockopt(zmq.RCVMORE):
                        parts.append(await socket.recv())
            except (zmq.Again, asyncio.TimeoutError):
                await asyncio.sleep(0)
                continue
            assert len(parts) == 2 and parts[0] == b"%d" % number, (parts[0], len(parts), number)
            number += 1

    await asyncio.gather(*(act(socket) for socket in sockets for act in (send, receive)))
    assert not any(socket._recv_futures or socket._send_futures for socket in sockets)
    close(*sockets)


cases += [other_modules_are_untouched, the_module_can_be_loaded_again]

if __name__ == "__main__":
    main(cases, sys.argv[1:])
