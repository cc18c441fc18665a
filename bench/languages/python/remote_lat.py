"""Asks and waits for the answer, one request at a time."""

from time import perf_counter_ns

import zmq

from common import HEADER, arguments, check, report, secure

endpoint, size, rounds, warm_up = arguments()
context = zmq.Context()
socket = context.socket(zmq.REQ)
secure(socket)
socket.connect(endpoint)
request = bytearray(size)
times = [0] * rounds
begin = last = perf_counter_ns()
for number in range(warm_up + rounds):
    if number == warm_up:
        begin = last = perf_counter_ns()
    HEADER.pack_into(request, 0, number)
    socket.send(request)
    check(socket.recv(), size, number)
    if number >= warm_up:
        now = perf_counter_ns()
        times[number - warm_up] = now - last
        last = now
total = last - begin
times.sort()
report(
    rounds=rounds,
    size=size,
    seconds=total / 1e9,
    mean_us=total / 2e3 / rounds,
    p50_us=times[rounds // 2] / 2e3,
    p99_us=times[rounds * 99 // 100] / 2e3,
)
socket.close()
context.term()
