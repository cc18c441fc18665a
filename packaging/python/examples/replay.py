"""Publish and subscribe without gaps: prices, and a display that joins late or comes back.

    python replay.py publish LIVE RING [COUNT]      for example tcp://127.0.0.1:5555 tcp://127.0.0.1:5556
    python replay.py subscribe LIVE RING [NUMBER]   begins with the message of this number; without it, with the oldest one
    python replay.py watch LIVE RING                the same on asyncio, with the last price of each metal first

The publisher keeps its last 10,000 messages in memory, and sends missing messages again.
"""

import asyncio
import random
import sys

from tautline_zmq.replay import AsyncReliableSub, Delivery, Lost, ReliablePub, ReliableSub, Start, Update

METALS = ("gold", "iron", "zinc")


def publish(live: str, ring: str, count: int) -> None:
    with ReliablePub() as publisher:
        print("publishing", publisher.bind(live), publisher.serve(ring), flush=True)
        for _ in range(count):
            for metal in METALS:
                publisher.send(f"prices/{metal}", b"%.2f" % random.uniform(10, 2000))
        publisher.send("prices/end", b"")
        input("Press Enter to end.\n")


def show(delivery: Delivery) -> bool:
    """Prints a delivery. Returns False at the end."""
    if isinstance(delivery, Update):
        if delivery.topic == b"prices/end":
            print("the end is message", delivery.number)
            return False
        print(delivery.number, delivery.topic.decode(), delivery.body.decode())
    elif isinstance(delivery, Lost):
        print("lost", delivery.first, "to", delivery.last)
    else:
        print("the publisher has restarted")
    return True


def subscribe(live: str, ring: str, number: int) -> None:
    start = number if number >= 0 else Start.OLDEST
    with ReliableSub(live, ring, subscribe=["prices/"], start=start) as subscriber:
        for delivery in subscriber:
            if not show(delivery):
                return


async def watch(live: str, ring: str) -> None:
    with AsyncReliableSub(live, ring, subscribe=["prices/"], start=Start.LAST_OF_EACH_TOPIC) as subscriber:
        async for delivery in subscriber:
            if not show(delivery):
                return


if __name__ == "__main__":
    command, live, ring, *numbers = sys.argv[1:]
    if command == "publish":
        publish(live, ring, int(numbers[0]) if numbers else 100)
    elif command == "subscribe":
        subscribe(live, ring, int(numbers[0]) if numbers else -1)
    else:
        asyncio.run(watch(live, ring))
