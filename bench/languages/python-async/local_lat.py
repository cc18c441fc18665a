"""Answers each request with itself."""

import asyncio

from zmq import REP
from zmq.asyncio import Context

from common import arguments, check


async def main():
    endpoint, size, rounds, warm_up = arguments()
    context = Context()
    socket = context.socket(REP)
    socket.bind(endpoint)
    for number in range(warm_up + rounds):
        message = await socket.recv()
        check(message, size, number)
        await socket.send(message)
    socket.close()
    context.term()


asyncio.run(main())
