"""The sockets of a server for language models: an asyncio frontend sends requests to an engine, whose answers are a stream of tokens.

The frontend binds a ROUTER for requests and a PULL for answers. The engine is a separate process with blocking calls, and connects
a DEALER and a PUSH. No socket has a high-water mark, and both ends use copy=False.
"""

from time import process_time

import zmq
import zmq.asyncio

from exchange import receive_stream
from messages import FINISH, Bodies, Tally, stamp

ANSWER = 300
NAME = b"engine-0"


def open_socket(context, kind):
    socket = context.socket(kind)
    socket.set_hwm(0)
    return socket


async def frontend(run, use):
    """Opens the sockets of the frontend, and waits for the engine's first message."""
    with zmq.asyncio.Context() as context:
        with open_socket(context, zmq.ROUTER) as requests, open_socket(context, zmq.PULL) as answers:
            run.tell((run.bind(requests), run.bind(answers)))
            name, _ = await requests.recv_multipart()
            return await use(run, requests, answers, name)


async def ask(run):
    """Sends requests of the cell's size, and waits for the answer to each."""

    async def use(run, requests, answers, name):
        body, tally = bytearray(run.size), Tally(ANSWER)

        async def exchange(number):
            # The engine checks a body before it answers, so the next request can use the same memory.
            stamp(body, number)
            await requests.send_multipart([name, b"generate", body], copy=False)
            (answer,) = await answers.recv_multipart(copy=False)
            tally.reply(answer.buffer, number)

        return await run.round_trips(exchange, tally)

    return await frontend(run, use)


async def listen(run):
    """Receives the answers that the engine sends without pause."""

    async def use(run, requests, answers, name):
        async def receive():
            (answer,) = await answers.recv_multipart(copy=False)
            return answer.buffer

        await requests.send_multipart([name, b"generate", b""], copy=False)
        for _ in range(run.warm_up):
            await receive()
        return await receive_stream(run, receive)

    return await frontend(run, use)


async def answer_each(run):
    """The engine answers each request."""
    with zmq.Context() as context, open_socket(context, zmq.DEALER) as requests, open_socket(context, zmq.PUSH) as answers:
        await connect(run, requests, answers)
        bodies, tally = Bodies(ANSWER), Tally(run.size)
        for number in run.numbers():
            if number == 0:
                tally.expected = 0
                used = process_time()
            _, body = requests.recv_multipart(copy=False)
            tally.next(body.buffer)
            answers.send(bodies.body(number), copy=False)
        used = process_time() - used
        await run.hear()
        return tally.report() | {"cpu_seconds": used}


async def stream(run):
    """The engine sends all answers after one request."""
    with zmq.Context() as context, open_socket(context, zmq.DEALER) as requests, open_socket(context, zmq.PUSH) as answers:
        await connect(run, requests, answers)
        requests.recv_multipart(copy=False)
        bodies = Bodies(run.size)
        for number in range(run.warm_up):
            answers.send(bodies.body(number), copy=False)
        await run.hear()
        used = process_time()
        for number in range(run.count):
            answers.send(bodies.body(number), copy=False)
        answers.send(bodies.body(FINISH), copy=False)
        await run.hear()
        return {"cpu_seconds": process_time() - used}


async def connect(run, requests, answers):
    for_requests, for_answers = await run.hear()
    requests.identity = NAME
    requests.connect(for_requests)
    answers.connect(for_answers)
    requests.send(b"ready")
