"""Answers searches."""
import zmq

router = zmq.Context.instance().socket(zmq.ROUTER)
router.bind("tcp://127.0.0.1:5657")
while True:
    router.send_multipart(router.recv_multipart())
