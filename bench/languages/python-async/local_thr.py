"""Receives; the first message after the warm-up starts the clock."""

import asyncio
from time import perf_counter_ns

from zmq import PULL
from zmq.asyncio import Context

from common import arguments, check, report


async def main():
    endpoint, size, count, warm_up = arguments()
    context = Context()
    socket = context.socket(PULL)
    socket.bind(endpoint)
    for number in range(warm_up + 1):
        check(await socket.recv(), size, number)
    begin = perf_counter_ns()
    for number in range(warm_up + 1, warm_up + count):
        check(await socket.recv(), size, number)
    seconds = (perf_counter_ns() - begin) / 1e9
    report(count=count, size=size, seconds=seconds, messages_per_second=(count - 1) / seconds)
    socket.close()
    context.term()


asyncio.run(main())
