"""Sends numbered messages as fast as the socket takes them."""

import zmq

from common import HEADER, arguments, secure

endpoint, size, count, warm_up = arguments()
context = zmq.Context()
socket = context.socket(zmq.PUSH)
secure(socket)
socket.connect(endpoint)
message = bytearray(size)
for number in range(warm_up + count):
    HEADER.pack_into(message, 0, number)
    socket.send(message)
socket.close()
context.term()
