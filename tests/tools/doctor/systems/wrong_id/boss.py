"""Sends each of its workers a job ten times a second: boss.py NAME..."""
import sys
import time

import zmq

router = zmq.Context.instance().socket(zmq.ROUTER)
router.bind("tcp://127.0.0.1:5606")
# Each worker announces itself with a first message.
for _ in sys.argv[1:]:
    router.recv_multipart()
done = 0
while True:
    for name in sys.argv[1:]:
        router.send_multipart([name.encode(), b"dig"])
    while router.poll(100):
        router.recv_multipart()
        done += 1
        if done == 10:
            print("working", flush=True)
    time.sleep(0.1)
