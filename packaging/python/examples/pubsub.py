"""Publish and subscribe: a weather station, and a display that follows one town.

    python pubsub.py publish tcp://127.0.0.1:5555 [COUNT]
    python pubsub.py subscribe tcp://127.0.0.1:5555 TOWN

A publisher sends nothing to nobody: messages from before the subscription are not kept.
"""

import random
import sys
import time

from tautline_zmq import PUB, SUB, Context, TimedOut

TOWNS = ("Bern", "Lima", "Oslo")


def publish(endpoint: str, count: int) -> None:
    with Context() as context, context.socket(PUB) as station:
        print("publishing", station.bind(endpoint), flush=True)
        station.wait_for_subscriptions(1)
        for _ in range(count):
            for town in TOWNS:
                # The first part is the topic. Subscriptions compare its beginning.
                station.send_multipart([town.encode(), b"%.1f" % random.uniform(-20, 40)])
            time.sleep(0.01)
        for town in TOWNS:
            station.send_multipart([town.encode(), b"end"])


def subscribe(endpoint: str, town: str) -> None:
    with Context() as context, context.socket(SUB) as display:
        display.subscribe(town)
        display.rcvtimeo = 10_000
        display.connect(endpoint)
        readings = 0
        try:
            while (reading := display.recv_multipart()[1]) != b"end":
                readings += 1
                print(town, reading.decode(), "degrees")
        except TimedOut as error:
            sys.exit(f"no weather: {error}")
        print(readings, "readings")


if __name__ == "__main__":
    if sys.argv[1] == "publish":
        publish(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 100)
    else:
        subscribe(sys.argv[2], sys.argv[3])
