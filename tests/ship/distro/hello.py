"""Exchanges a request and its answer through the distribution's own pyzmq."""

import zmq

context = zmq.Context()
answering, asking = context.socket(zmq.REP), context.socket(zmq.REQ)
port = answering.bind_to_random_port("tcp://127.0.0.1")
asking.connect(f"tcp://127.0.0.1:{port}")
for socket in (answering, asking):
    socket.setsockopt(zmq.RCVTIMEO, 60000)
asking.send(b"Who is there?")
answering.send(answering.recv() + b" pyzmq.")
print(asking.recv().decode())
asking.close()
answering.close()
context.term()
