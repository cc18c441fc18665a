"""Tests that other tasks run while messages keep coming: `asynchronous_turns.py [NAME...]`.

Runs like asynchronous.py. pyzmq's methods take no turns of the event loop, so the cases check less
if zmq.asyncio is not patched.
"""

import asyncio
import sys
import time

import zmq
import zmq.asyncio
from asynchronous import PATCHED, close, fails, main, pair

cases = []
# Calls that are enough for several turns of the loop.
MANY = 300


def case(function):
    cases.append(function)
    return function


async def turns_of_the_loop(counter):
    while True:
        await asyncio.sleep(0)
        counter.append(None)


# ---- fairness


@case
async def other_tasks_run_while_messages_keep_coming():
    pull, push = pair(zmq.PULL, zmq.PUSH, rcvhwm=0, sndhwm=0)
    turns = []
    counting = asyncio.ensure_future(turns_of_the_loop(turns))
    await asyncio.sleep(0)
    for _ in range(3000):
        await push.send(b"")
    sending = len(turns)
    for _ in range(3000):
        await pull.recv()
    counting.cancel()
    if PATCHED:
        assert sending >= 40 and len(turns) - sending >= 40, (sending, len(turns))
    close(push, pull)


@case
async def other_tasks_run_while_a_receiver_computes():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    for _ in range(100):
        await push.send(b"")
    turns = []
    counting = asyncio.ensure_future(turns_of_the_loop(turns))
    for _ in range(100):
        await pull.recv()
        time.sleep(0.001)
    counting.cancel()
    if PATCHED:
        assert len(turns) >= 40, turns
    close(push, pull)


@case
async def a_few_calls_take_no_turn():
    pull, push = pair(zmq.PULL, zmq.PUSH)
    turns = []
    counting = asyncio.ensure_future(turns_of_the_loop(turns))
    for _ in range(MANY):
        await asyncio.sleep(0)
        before = len(turns)
        await push.send(b"")
        await pull.recv()
        assert len(turns) == before
    counting.cancel()
    close(push, pull)


@case
async def parts_of_a_message_take_no_turn():
    pull, push = pair(zmq.PULL, zmq.PUSH, rcvhwm=0, sndhwm=0)
    parts = 100

    async def send(name):
        for _ in range(20):
            for number in range(parts):
                await push.send(name, zmq.SNDMORE if number < parts - 1 else 0)

    async def receive():
        for _ in range(20):
            message = [await pull.recv()]
            while pull.getsockopt(zmq.RCVMORE):
                message.append(await pull.recv())
            assert len(message) == parts and len(set(message)) == 1, message

    await asyncio.gather(send(b"1"), send(b"2"))
    await asyncio.gather(receive(), receive())
    close(push, pull)


@case
async def eager_tasks_complete():
    if not hasattr(asyncio, "eager_task_factory"):
        return
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    pull, push = pair(zmq.PULL, zmq.PUSH)

    async def send(number):
        await push.send(b"%d" % number)

    async def receive():
        return await pull.recv()

    tasks = [asyncio.ensure_future(send(number)) for number in range(MANY)]
    received = await asyncio.gather(*(receive() for _ in range(MANY)))
    await asyncio.gather(*tasks)
    assert received == [b"%d" % number for number in range(MANY)]
    close(push, pull)


def a_coroutine_that_no_task_runs_takes_no_turn():
    async def exchange():
        for number in range(MANY):
            await push.send(b"%d" % number)
            assert await pull.recv() == b"%d" % number

    async def drive():
        nonlocal pull, push
        pull, push = pair(zmq.PULL, zmq.PUSH)

        def step():
            try:
                exchange().send(None)
                ended.set_exception(AssertionError("it waits"))
            except BaseException as end:
                ended.set_result(None) if isinstance(end, StopIteration) else ended.set_exception(end)

        ended = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(step)
        await ended
        close(push, pull)

    pull = push = None
    asyncio.run(drive())


# ---- cancellation in a turn


@case
async def a_cancelled_receiver_keeps_what_it_received():
    """The receiver is cancelled after each number of turns. No message is lost or doubled."""
    pull, push = pair(zmq.PULL, zmq.PUSH, rcvhwm=0, sndhwm=0)
    for number in range(8000):
        push.send(b"%d" % number)
    got = []

    async def receive():
        while True:
            got.append(int(await pull.recv()))

    for turns in range(40):
        receiving = asyncio.ensure_future(receive())
        for _ in range(turns % 5 + 1):
            await asyncio.sleep(0)
        receiving.cancel()
        push.send(b"%d" % (8000 + turns))
        await fails(asyncio.CancelledError, receiving)
    while len(got) < 8040:
        got.append(int(await asyncio.wait_for(pull.recv(), 5)))
    assert got == list(range(8040)), [number for number in range(8040) if number not in got]
    close(push, pull)


@case
async def a_cancellation_arrives_although_messages_keep_coming():
    """Tasks that always find messages and room. In pyzmq nothing cancels them: no other task runs."""
    if not PATCHED:
        return
    pull, push = pair(zmq.PULL, zmq.PUSH, rcvhwm=0, sndhwm=0)
    sent, got = 0, []

    async def send():
        nonlocal sent
        while True:
            sent += 1
            await push.send(b"%d" % sent)

    async def forward():
        nonlocal sent
        while True:
            sent += 1
            await push.send(b"%d" % sent)
            got.append(int(await pull.recv()))

    for act in (send, forward) * 20:
        acting = asyncio.ensure_future(act())
        await asyncio.sleep(0)
        acting.cancel()
        await fails(asyncio.CancelledError, acting)
    while len(got) < sent:
        got.append(int(await asyncio.wait_for(pull.recv(), 5)))
    assert got == list(range(1, sent + 1))
    close(push, pull)


@case
async def a_task_that_ends_after_its_message_keeps_the_result():
    pull, push = pair(zmq.PULL, zmq.PUSH)

    async def one():
        return await pull.recv()

    for number in range(MANY):
        await push.send(b"%d" % number)
        receiving = asyncio.ensure_future(one())
        await asyncio.sleep(0)
        receiving.cancel()
        assert await receiving == b"%d" % number
    close(push, pull)


@case
async def a_time_limit_that_ends_with_the_message_cancels_nothing_later():
    if not hasattr(asyncio, "timeout"):
        return
    pull, push = pair(zmq.PULL, zmq.PUSH, rcvhwm=0, sndhwm=0)
    for _ in range(10):
        for _ in range(70):
            push.send(b"")
        for _ in range(70):
            async with asyncio.timeout(0):
                await pull.recv()
            assert not asyncio.current_task().cancelling()
        for _ in range(3):
            await asyncio.sleep(0)
    close(push, pull)


cases.append(a_coroutine_that_no_task_runs_takes_no_turn)

if __name__ == "__main__":
    main(cases, sys.argv[1:])
