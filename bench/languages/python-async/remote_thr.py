"""Sends numbered messages as fast as the socket takes them."""

import asyncio

from zmq import PUSH
from zmq.asyncio import Context

from common import HEADER, arguments


async def main():
    endpoint, size, count, warm_up = arguments()
    context = Context()
    socket = context.socket(PUSH)
    socket.connect(endpoint)
    message = bytearray(size)
    for number in range(warm_up + count):
        HEADER.pack_into(message, 0, number)
        await socket.send(message)
    socket.close()
    context.term()


asyncio.run(main())
