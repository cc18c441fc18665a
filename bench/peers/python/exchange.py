"""REQ to REP, and PUSH to PULL, with zmq.asyncio at both ends.

The far end binds. Each function returns the figures of its end. The clock is the near end's.
"""

from time import perf_counter_ns, process_time

import zmq
import zmq.asyncio

from messages import FINISH, Bodies, Tally


async def request(run):
    """REQ: sends and waits for the reply, one at a time."""
    with zmq.asyncio.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(await run.hear())
        bodies, tally = Bodies(run.size), Tally(run.size)

        async def exchange(number):
            await socket.send(bodies.body(number))
            tally.reply(await socket.recv(), number)

        return await run.round_trips(exchange, tally)


async def reply(run):
    """REP: returns each request."""
    with zmq.asyncio.Context() as context, context.socket(zmq.REP) as socket:
        run.tell(run.bind(socket))
        tally = Tally(run.size)
        for number in run.numbers():
            if number == 0:
                tally.expected = 0
                used = process_time()
            body = await socket.recv()
            tally.next(body)
            await socket.send(body)
        used = process_time() - used
        await run.hear()
        return tally.report() | {"cpu_seconds": used}


async def pull(run):
    """PULL: receives the stream, which begins when the warm-up has arrived."""
    with zmq.asyncio.Context() as context, context.socket(zmq.PULL) as socket:
        run.tell(run.bind(socket))
        for _ in range(run.warm_up):
            await socket.recv()
        return await receive_stream(run, socket.recv)


async def push(run):
    """PUSH: sends the stream."""
    with zmq.asyncio.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.connect(await run.hear())
        bodies = Bodies(run.size)
        for number in range(run.warm_up):
            await socket.send(bodies.body(number))
        await run.hear()
        used = process_time()
        for number in range(run.count):
            await socket.send(bodies.body(number))
        await socket.send(bodies.body(FINISH))
        # The engine may still be sending, which costs processor time, until the peer has everything.
        await run.hear()
        return {"cpu_seconds": process_time() - used}


async def receive_stream(run, receive):
    """Starts the stream and receives it. The clock runs from the first message to the last."""
    tally = Tally(run.size)
    received = 0
    used = process_time()
    run.tell("begin")
    body = await receive()
    begin = last = perf_counter_ns()
    while tally.next(body):
        received += 1
        last = perf_counter_ns()
        body = await receive()
    used = process_time() - used
    run.tell("all received")
    tally.lost += max(run.count - tally.expected, 0)
    seconds = (last - begin) / 1e9
    metrics = {"messages_per_second": (received - 1) / seconds}
    return tally.report() | {"cpu_seconds": used, "messages": received, "seconds": seconds, "metrics": metrics}
