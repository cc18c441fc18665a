"""Asks and waits for the answer, one request at a time."""

import asyncio
from time import perf_counter_ns

from zmq import REQ
from zmq.asyncio import Context

from common import HEADER, arguments, check, report_rounds


async def main():
    endpoint, size, rounds, warm_up = arguments()
    context = Context()
    socket = context.socket(REQ)
    socket.connect(endpoint)
    request = bytearray(size)
    times = [0] * rounds
    begin = last = perf_counter_ns()
    for number in range(warm_up + rounds):
        if number == warm_up:
            begin = last = perf_counter_ns()
        HEADER.pack_into(request, 0, number)
        await socket.send(request)
        check(await socket.recv(), size, number)
        if number >= warm_up:
            now = perf_counter_ns()
            times[number - warm_up] = now - last
            last = now
    report_rounds(size, times, last - begin)
    socket.close()
    context.term()


asyncio.run(main())
