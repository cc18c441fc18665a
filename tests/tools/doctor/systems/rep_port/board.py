"""Shows the quotes of two exchanges."""
import zmq

sub = zmq.Context.instance().socket(zmq.SUB)
sub.subscribe(b"")
sub.connect("tcp://127.0.0.1:5630")
sub.connect("tcp://127.0.0.1:5631")
seen = set()
while len(seen) < 2:
    seen.add(sub.recv().split()[0])
print("working", flush=True)
while True:
    sub.recv()
