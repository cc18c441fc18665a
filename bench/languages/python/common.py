"""What the four programs share: arguments, numbered messages, and the line of JSON that the harness reads."""

import json
import os
import struct
import sys

HEADER = struct.Struct("<Q")
# True if `secure` has set keys.
encrypted = False


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


def secure(socket):
    """Sets the keys of CURVE, if the environment has some (../curve.sh). With the key of a server, this is a client."""
    global encrypted
    if "CURVE_SECRET" not in os.environ:
        return
    if "CURVE_SERVER" in os.environ:
        socket.curve_serverkey = os.environb[b"CURVE_SERVER"]
        socket.curve_publickey = os.environb[b"CURVE_PUBLIC"]
    else:
        socket.curve_server = True
    socket.curve_secretkey = os.environb[b"CURVE_SECRET"]
    encrypted = True


def report(**figures):
    print(json.dumps(figures | {"curve": encrypted, "verified": True}), flush=True)


def report_rounds(size, times, total):
    """Prints the figures of round trips from the time of each and of all, in nanoseconds. Latency is half a round trip."""
    times.sort()
    rounds = len(times)
    report(
        rounds=rounds,
        size=size,
        seconds=total / 1e9,
        mean_us=total / 2e3 / rounds,
        p50_us=times[rounds // 2] / 2e3,
        p99_us=times[rounds * 99 // 100] / 2e3,
    )
