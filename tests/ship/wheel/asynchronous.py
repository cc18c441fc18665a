"""Uses zmq.asyncio like its users, and checks each result: `asynchronous.py [NAME...]`.

Runs on pyzmq as it is and on the patched one. The last line is JSON: the names of the cases that
passed, and `patched`, which is true if zmq.asyncio is patched. asynchronous_edges.py and
asynchronous_turns.py contain more cases.
"""

import asyncio
import json
import os
import sys
import warnings

import zmq
import zmq.asyncio

PATCHED = "_tautline" in zmq.asyncio.Socket.__dict__
cases = []


def case(function):
    cases.append(function)
    return function


def pair(first, second, endpoint="inproc://pair", context=None, **options):
    context = context or zmq.asyncio.Context()
    sockets = []
    for kind, attach in ((first, "bind"), (second, "connect")):
        socket = context.socket(kind)
        socket.linger = 0
        for name, value in options.items():
            setattr(socket, name, value)
        getattr(socket, attach)(endpoint if attach == "bind" else sockets[0].last_endpoint.decode().rstrip("\0"))
        sockets.append(socket)
    return sockets


def close(*sockets):
    for socket in sockets:
        socket.close()
    sockets[0].context.term()


async def fails(kind, awaitable, errno=None):
    try:
        await asyncio.wait_for(awaitable, 60)
    except kind as error:
        assert errno is None or error.errno == errno, error
        return
    raise AssertionError("no error")


@case
async def waiting_receivers_are_served_in_order():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    waiting = [asyncio.ensure_future(pull.recv()) for _ in range(5)]
    await asyncio.sleep(0)
    for number in range(5):
        await push.send(b"%d" % number)
    assert await asyncio.gather(*waiting) == [b"0", b"1", b"2", b"3", b"4"]
    close(push, pull)


@case
async def a_cancelled_receiver_takes_no_message():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    for number in range(200):
        cancelled = [asyncio.ensure_future(pull.recv()) for _ in range(number % 4)]
        last = asyncio.ensure_future(pull.recv())
        await asyncio.sleep(0)
        for task in cancelled:
            task.cancel()
        await asyncio.gather(*cancelled, return_exceptions=True)
        await push.send(b"%d" % number)
        assert await last == b"%d" % number
    assert len(pull._recv_futures) <= 1
    close(push, pull)


@case
async def both_directions_wait_at_the_high_water_mark():
    for endpoint in ("inproc://both", "tcp://127.0.0.1:*"):
        first, second = pair(zmq.PAIR, zmq.PAIR, endpoint, sndhwm=1, rcvhwm=1)

        async def send(socket):
            for number in range(1500):
                await socket.send_multipart([b"%d" % number, b"x" * (number % 300)])

        async def receive(socket):
            for number in range(1500):
                parts = await socket.recv_multipart()
                assert parts == [b"%d" % number, b"x" * (number % 300)], (number, parts)

        await asyncio.gather(send(first), receive(second), send(second), receive(first))
        close(second, first)


@case
async def a_timeout_ends_a_call_with_again():
    pull, push = pair(zmq.PULL, zmq.PUSH, rcvtimeo=10, sndtimeo=10, sndhwm=1, rcvhwm=1)
    for call in (pull.recv, pull.recv_multipart):
        try:
            await call()
            raise AssertionError("received")
        except zmq.Again:
            pass
    try:
        while True:
            await push.send(b"")
    except zmq.Again:
        pass
    try:
        await pull.recv(zmq.DONTWAIT)
        while True:
            await pull.recv(zmq.DONTWAIT)
    except zmq.Again:
        pass
    close(push, pull)


@case
async def closing_cancels_the_waiting_calls():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    waiting = asyncio.ensure_future(pull.recv())
    await asyncio.sleep(0)
    pull.close()
    assert (await asyncio.gather(waiting, return_exceptions=True))[0].__class__ is asyncio.CancelledError
    for call in (pull.recv, pull.recv_multipart):
        try:
            await call()
            raise AssertionError("received on a closed socket")
        except zmq.ZMQError as error:
            assert error.errno == zmq.ENOTSOCK
    close(push)


@case
async def a_wait_for_that_times_out_keeps_the_message():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    for number in range(20):
        try:
            await asyncio.wait_for(pull.recv(), 0.001)
            raise AssertionError("received")
        except asyncio.TimeoutError:
            pass
        await push.send(b"%d" % number)
        assert await pull.recv() == b"%d" % number
    close(push, pull)


@case
async def methods_of_subclasses_are_called():
    class Counting(zmq.asyncio.Socket):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.__dict__["calls"] = []

        def recv(self, *arguments, **options):
            self.calls.append("recv")
            return super().recv(*arguments, **options)

        def send(self, data, *arguments, **options):
            self.calls.append("send")
            return super().send(data, *arguments, **options)

    context = zmq.asyncio.Context()
    first, second = Counting(context, zmq.PAIR), Counting(context, zmq.PAIR)
    first.bind("inproc://subclass")
    second.connect("inproc://subclass")
    await first.send_string("text")
    assert await second.recv_string() == "text"
    await first.send_json({"a": 1})
    assert await second.recv_json() == {"a": 1}
    assert first.calls == ["send"] * 2 and second.calls == ["recv"] * 2
    close(first, second)


@case
async def replaced_methods_of_the_blocking_class_are_called():
    calls = []

    def counting(name, method):
        def replacement(self, *arguments, **options):
            calls.append(name)
            return method(self, *arguments, **options)

        return replacement

    originals = {name: getattr(zmq.Socket, name) for name in ("send", "recv")}
    try:
        for name, method in originals.items():
            setattr(zmq.Socket, name, counting(name, method))
        pull, push = pair(zmq.PULL, zmq.PUSH)
        for _ in range(3):
            await push.send(b"")
            await pull.recv()
    finally:
        for name, method in originals.items():
            setattr(zmq.Socket, name, method)
    assert calls == ["send", "recv"] * 3
    close(push, pull)


@case
async def a_socket_made_from_another_uses_its_methods():
    class Upper(zmq.Socket):
        def recv(self, *arguments, **options):
            return super().recv(*arguments, **options).upper()

    context = zmq.Context()
    first, second = Upper(context, zmq.PAIR), context.socket(zmq.PAIR)
    first.bind("inproc://from")
    second.connect("inproc://from")
    shadow = zmq.asyncio.Socket.from_socket(first)
    second.send(b"now")
    assert await shadow.recv() == b"NOW"
    waiting = asyncio.ensure_future(shadow.recv())
    await asyncio.sleep(0)
    second.send(b"later")
    assert await waiting == b"LATER"
    second.close(0)
    first.close(0)
    context.term()


@case
async def frames_and_trackers_are_as_in_pyzmq():
    first, second = pair(zmq.PAIR, zmq.PAIR)
    tracker = await first.send(b"x" * 100_000, copy=False, track=True)
    assert isinstance(tracker, zmq.MessageTracker)
    frame = await second.recv(copy=False)
    assert isinstance(frame, zmq.Frame) and len(frame) == 100_000
    del frame
    while not tracker.done:
        await asyncio.sleep(0.001)
    await first.send_multipart([b"a", memoryview(b"b")], copy=False)
    assert [bytes(part) for part in await second.recv_multipart(copy=False)] == [b"a", b"b"]
    for wrong in (1, "text"):
        try:
            await first.send(wrong)
            raise AssertionError(wrong)
        except TypeError:
            pass
    buffer = bytearray(10)
    await first.send(b"into")
    # pyzmq 25 has no such method.
    if any("recv_into" in base.__dict__ for base in zmq.asyncio.Socket.__mro__ if base.__module__ == "zmq._future"):
        assert await second.recv_into(buffer) == 4 and buffer[:4] == b"into"
    else:
        await second.recv()
    close(first, second)


@case
async def poll_and_receive_can_be_mixed():
    # On a busy machine, a message is overlooked in 1 of 10,000 turns of this loop by the methods of pyzmq, and by any methods on
    # libzmq.
    if not PATCHED or os.environ.get("TAUTLINE_PYZMQ") == "asyncio":
        return
    pull, push = pair(zmq.PULL, zmq.PUSH, "tcp://127.0.0.1:*")
    for number in range(100):
        polling = asyncio.ensure_future(pull.poll())
        await asyncio.sleep(0)
        await push.send(b"%d" % number)
        assert await polling == zmq.POLLIN
        assert await pull.recv() == b"%d" % number
        assert await pull.poll(0) == 0
        waiting, polling = asyncio.ensure_future(pull.recv()), asyncio.ensure_future(pull.poll(1))
        await push.send(b"again")
        assert await waiting == b"again"
        await polling
    close(push, pull)


@case
async def request_and_reply():
    reply, request = pair(zmq.REP, zmq.REQ, "tcp://127.0.0.1:*")

    async def serve():
        for _ in range(1000):
            await reply.send(await reply.recv())

    serving = asyncio.ensure_future(serve())
    for number in range(1000):
        await request.send(b"%d" % number)
        assert await request.recv() == b"%d" % number
    await serving
    # The reply is awaited before the request is sent.
    waiting, serving = asyncio.ensure_future(request.recv()), asyncio.ensure_future(reply.recv())
    await asyncio.sleep(0)
    await request.send(b"late")
    assert await serving == b"late"
    await reply.send(b"later")
    assert await waiting == b"later"
    try:
        await request.recv(zmq.DONTWAIT)
        raise AssertionError("received out of turn")
    except zmq.ZMQError as error:
        assert error.errno == zmq.EFSM
    close(request, reply)


@case
async def an_idle_socket_costs_no_turns_of_the_loop():
    pull, push = pair(zmq.PULL, zmq.PUSH, "tcp://127.0.0.1:*")
    selector = asyncio.get_running_loop()._selector
    turns, select = 0, selector.select

    def counted(timeout=None):
        nonlocal turns
        turns += 1
        return select(timeout)

    waiting = asyncio.ensure_future(pull.recv())
    await asyncio.sleep(0)
    for number in range(3):
        await push.send(b"%d" % number)
    assert await waiting == b"0"
    while await pull.recv() != b"2":
        pass
    selector.select = counted
    await asyncio.sleep(0.05)
    selector.select = select
    assert turns < 50, turns
    close(push, pull)


@case
async def many_sockets_in_one_loop():
    context = zmq.asyncio.Context()
    pairs = [pair(zmq.PAIR, zmq.PAIR, "tcp://127.0.0.1:*", context) for _ in range(20)]

    async def bounce(first, second):
        for number in range(100):
            await first.send(b"%d" % number)
            await second.send(await second.recv())
            assert await first.recv() == b"%d" % number

    await asyncio.gather(*(bounce(*sockets) for sockets in pairs))
    close(*(socket for sockets in pairs for socket in sockets))


def one_socket_in_two_loops():
    pull, push = pair(zmq.PULL, zmq.PUSH)

    async def exchange(number):
        waiting = asyncio.ensure_future(pull.recv())
        await asyncio.sleep(0)
        await push.send(number)
        assert await waiting == number

    for number in (b"1", b"2"):
        asyncio.run(exchange(number))
    close(push, pull)


def a_call_outside_of_a_loop_warns():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    pull, push = pair(zmq.PULL, zmq.PUSH)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        received, sent = pull.recv(), push.send(b"early")
        loop.run_until_complete(asyncio.gather(received, sent))
    assert received.result() == b"early" and seen, seen
    loop.close()
    close(push, pull)


cases += [one_socket_in_two_loops, a_call_outside_of_a_loop_warns]


def main(cases, names):
    passed = []
    for function in cases:
        if names and function.__name__ not in names:
            continue
        print(function.__name__, flush=True)
        if asyncio.iscoroutinefunction(function):
            asyncio.run(function())
        else:
            function()
        passed.append(function.__name__)
    print(json.dumps({"passed": passed, "patched": PATCHED}))


if __name__ == "__main__":
    main(cases, sys.argv[1:])
