"""Topics with patterns: members of a space publish to each other without a server.

    python topics.py station tcp://127.0.0.1:5555
    python topics.py display tcp://127.0.0.1:5555 'weather.*.wind'

With a names file (TAUT_NAMES), `Topics("weather")` finds all members itself.
"""

import random
import sys

from tautline_zmq import TimedOut
from tautline_zmq.topics import Topics

TOWNS = ("bern", "lima", "oslo")


def station(endpoint: str) -> None:
    with Topics(bind=[endpoint]) as topics:
        print("publishing", topics.endpoint, flush=True)
        topics.wait_for_subscriptions(1)
        for town in TOWNS:
            topics.publish(f"weather.{town}.rain", "none")
            topics.publish(f"weather.{town}.wind", f"{random.randrange(20)} m/s")


def display(endpoint: str, pattern: str) -> None:
    with Topics(connect=[endpoint]) as topics:
        topics.subscribe(pattern)
        try:
            for _ in TOWNS:
                update = topics.recv(10_000)
                print(update.topic, update.body.decode())
        except TimedOut as error:
            sys.exit(f"no weather: {error}")


if __name__ == "__main__":
    if sys.argv[1] == "station":
        station(sys.argv[2])
    else:
        display(sys.argv[2], sys.argv[3])
