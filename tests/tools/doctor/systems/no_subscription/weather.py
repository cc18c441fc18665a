"""Publishes the weather of three towns."""
import itertools
import time

import zmq

pub = zmq.Context.instance().socket(zmq.PUB)
pub.bind("tcp://127.0.0.1:5604")
for number in itertools.count():
    for town in ("lund", "rome", "oslo"):
        pub.send_string(f"weather.{town} {number % 30}")
    time.sleep(0.02)
