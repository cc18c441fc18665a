"""What the four programs share: arguments, numbered messages, and the line of JSON that the harness reads."""

import json
import struct
import sys

HEADER = struct.Struct("<Q")


def arguments():
    """Endpoint, size in bytes, how many, and how many before those as a warm-up."""
    endpoint, size, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warm_up = int(sys.argv[4]) if len(sys.argv) > 4 else 1000
    if size < HEADER.size or count < 2:
        sys.exit("use at least 2 messages of at least 8 bytes")
    return endpoint, size, count, warm_up


def check(message, size, number):
    """Ends the program unless the message is the one with that number."""
    if len(message) != size or HEADER.unpack_from(message)[0] != number:
        sys.exit(f"message {number} is wrong: {len(message)} bytes, {bytes(message[:8])!r}")


def report(**figures):
    print(json.dumps(figures | {"verified": True}), flush=True)
