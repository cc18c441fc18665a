"""Gives each request to the worker that has been idle for the longest time."""
import zmq

context = zmq.Context.instance()
front = context.socket(zmq.ROUTER)
front.bind("tcp://127.0.0.1:5620")
back = context.socket(zmq.ROUTER)
back.bind("tcp://127.0.0.1:5621")
idle = []
poller = zmq.Poller()
poller.register(back, zmq.POLLIN)
while True:
    if idle:
        poller.register(front, zmq.POLLIN)
    ready = dict(poller.poll())
    if back in ready:
        worker, *reply = back.recv_multipart()
        idle.append(worker)
        # The first message of a worker has no client.
        if len(reply) > 1:
            front.send_multipart(reply)
    if front in ready:
        back.send_multipart([idle.pop(0), *front.recv_multipart()])
        if not idle:
            poller.unregister(front)
