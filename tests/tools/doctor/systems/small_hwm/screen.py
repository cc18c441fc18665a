"""Shows the frames of camera.py."""
import zmq

sub = zmq.Context.instance().socket(zmq.SUB)
sub.subscribe(b"")
sub.connect("tcp://127.0.0.1:5602")
frames = 0
while True:
    sub.recv()
    frames += 1
    if frames == 600:
        print("working", flush=True)
