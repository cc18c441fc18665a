"""Answers the questions of its tills."""
import zmq

router = zmq.Context.instance().socket(zmq.ROUTER)
router.bind("tcp://127.0.0.1:5639")
names = set()
while True:
    name, _ = router.recv_multipart()
    router.send_multipart([name, b"9.99"])
    if name not in names:
        names.add(name)
        if len(names) == 3:
            print("working", flush=True)
