"""Publishes a video by FFmpeg's zmq output to a subscriber that pauses, and prints one line of JSON.

    packets.py SECONDS_OF_VIDEO LIBRARY_OR_NOTHING

FFmpeg encodes a test picture as fast as it can, and publishes MPEG transport packets. The subscriber, on pyzmq's own libzmq, sleeps for
two seconds after the first packet, and then reads all. Each packet has a counter of four bits, which shows gaps.
"""

import json
import os
import subprocess
import sys
import time

os.environ["TAUTLINE_PYZMQ"] = "0"

import zmq
from processes import libraries

PACKET = 188
PAUSE_SECONDS = 2


def main():
    seconds, library = sys.argv[1:3]
    environment = {**os.environ, **({"LD_PRELOAD": library} if library else {})}
    subscriber = zmq.Context().socket(zmq.SUB)
    subscriber.subscribe(b"")
    subscriber.rcvtimeo = 5000
    port = 20000 + os.getpid() % 20000
    subscriber.connect(f"tcp://127.0.0.1:{port}")
    source = ["-re", "-f", "lavfi", "-i", f"testsrc=duration={seconds}:size=1920x1080:rate=60"]
    code = ["-c:v", "mpeg2video", "-q:v", "1", "-f", "mpegts", f"zmq:tcp://127.0.0.1:{port}?pkt_size=1316"]
    publisher = subprocess.Popen(["ffmpeg", "-nostdin", "-v", "error", *source, *code], env=environment)
    packets, files = [subscriber.recv()], libraries([publisher.pid])
    time.sleep(PAUSE_SECONDS)
    try:
        while True:
            packets.append(subscriber.recv())
    except zmq.Again:
        pass
    publisher.wait()
    last, gaps, count = {}, 0, 0
    for data in packets:
        for at in range(0, len(data), PACKET):
            header = data[at : at + 4]
            pid, counter = (header[1] & 31) << 8 | header[2], header[3] & 15
            if header[3] & 16:
                gaps += pid in last and counter != (last[pid] + 1) % 16
                last[pid] = counter
                count += 1
    print(json.dumps({"messages": len(packets), "gaps": gaps, "libraries": files}), flush=True)


main()
