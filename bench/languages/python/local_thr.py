"""Receives; the first message after the warm-up starts the clock."""

from time import perf_counter_ns

import zmq

from common import arguments, check, report, secure

endpoint, size, count, warm_up = arguments()
context = zmq.Context()
socket = context.socket(zmq.PULL)
secure(socket)
socket.bind(endpoint)
for number in range(warm_up + 1):
    check(socket.recv(), size, number)
begin = perf_counter_ns()
for number in range(warm_up + 1, warm_up + count):
    check(socket.recv(), size, number)
seconds = (perf_counter_ns() - begin) / 1e9
report(count=count, size=size, seconds=seconds, messages_per_second=(count - 1) / seconds)
socket.close()
context.term()
