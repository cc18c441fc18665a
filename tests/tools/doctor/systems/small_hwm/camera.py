"""Publishes two bursts of frames a second: camera.py HIGH-WATER-MARK."""
import sys
import time

import zmq

FRAME = bytes(50_000)

pub = zmq.Context.instance().socket(zmq.PUB)
pub.sndhwm = int(sys.argv[1])
pub.bind("tcp://127.0.0.1:5602")
while True:
    for _ in range(300):
        pub.send(FRAME)
    time.sleep(0.5)
