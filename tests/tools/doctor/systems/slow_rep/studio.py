"""Has one film after the other converted."""
import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.connect("tcp://127.0.0.1:5653")
print("working", flush=True)
while True:
    req.send(b"a film")
    req.recv()
