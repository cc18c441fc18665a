"""Publishes a video by FFmpeg's zmq output to a fast subscriber and to one that pauses, and prints one line of JSON.

    packets.py FOLDER VIDEO BYTES_OF_A_MESSAGE PAUSE_SECONDS [LIBRARY]

VIDEO is a key of VIDEOS. FFmpeg makes it from its test picture and stores it in FOLDER, unless it is there. Then FFmpeg publishes it in real
time, without encoding it again. LIBRARY is put before FFmpeg's libzmq. The subscribers use pyzmq. The slow one pauses after its first
message. They compare the received bytes with the same video in a file. A frame is lost if some of its bytes are. Frames before the first
message of a subscriber do not count, because it was not connected yet.
"""

import contextlib
import json
import os
import pathlib
import resource
import select
import signal
import socket
import subprocess
import sys
import time

import zmq
from processes import libraries

SECONDS = 100
PACKET = 188
SYNC = 0x47
VIDEO_PID = 0x100
TEST = "testsrc2=duration=6:size=1920x1080:rate=30,noise=alls=20:allf=t"
VIDEOS = {
    "stream": ["-b:v", "100M", "-maxrate", "100M", "-bufsize", "20M", "-g", "15"],
    "intra": ["-q:v", "1", "-qmin", "1", "-g", "1"],
}


def ffmpeg(*words):
    return ["ffmpeg", "-nostdin", "-v", "error", "-y", *words]


def make(folder, video):
    """Returns the file of a video, and the file with the bytes that FFmpeg publishes."""
    source, published = (pathlib.Path(folder, f"{video}.{kind}") for kind in ("mkv", "ts"))
    if not published.exists():
        part = published.with_suffix(".part")
        subprocess.run(ffmpeg("-f", "lavfi", "-i", TEST, "-pix_fmt", "yuv420p", "-c:v", "mpeg2video", *VIDEOS[video], source), check=True)
        subprocess.run(ffmpeg("-i", source, "-c", "copy", "-f", "mpegts", part), check=True)
        part.rename(published)
    return source, published


def receive(endpoint, pause):
    """Receives until standard input has ended and the queue is empty. Returns the messages."""
    subscriber = zmq.Context().socket(zmq.SUB)
    subscriber.subscribe(b"")
    subscriber.rcvtimeo = 500
    subscriber.connect(endpoint)
    messages = []
    while True:
        try:
            messages.append(subscriber.recv())
        except zmq.Again:
            if select.select([sys.stdin], [], [], 0)[0]:
                return messages
            continue
        if len(messages) == 1:
            print("connected", flush=True)
            time.sleep(pause)


def frames(published):
    """Returns the positions of the frames' first bytes, and the end of the last frame."""
    starts = []
    for at in range(0, len(published), PACKET):
        assert published[at] == SYNC
        is_start = published[at + 1] & 0x40
        if is_start and (published[at + 1] & 31) << 8 | published[at + 2] == VIDEO_PID:
            starts.append(at)
    return [*starts, len(published)]


def lost(published, messages):
    """Returns the number of lost frames, and the lost bytes in per cent."""
    begin = end = published.index(messages[0])
    holes = []
    for message in messages:
        # The first place after the previous message. Without a loss, this is the next byte.
        place = published.index(message, end)
        if place != end:
            holes.append((end, place))
        end = place + len(message)
    if end != len(published):
        holes.append((end, len(published)))
    starts = [start for start in frames(published) if start >= begin]
    bad = sum(any(first < after and start < last for first, last in holes) for start, after in zip(starts, starts[1:]))
    return bad, round(100 * (1 - sum(map(len, messages)) / (len(published) - begin)), 2)


def subscribe(endpoint, pause, file):
    messages = receive(endpoint, pause)
    used = time.process_time()
    files = libraries([os.getpid()])
    assert any("tautline_zmq/" in name for name in files) == (os.environ["TAUTLINE_PYZMQ"] != "0"), files
    bad, share = lost(pathlib.Path(file).read_bytes(), messages)
    print(json.dumps([bad, share, used]), flush=True)


def stop(number, _):
    sys.exit(f"packets: stopped by {signal.Signals(number).name}")


def main():
    folder, video, size, pause, *library = sys.argv[1:]
    source, published = make(folder, video)
    with contextlib.ExitStack() as stack:
        print(json.dumps(run(stack, source, published, size, pause, library)), flush=True)


def run(stack, source, published, size, pause, library):
    def start(command, **options):
        process = stack.enter_context(subprocess.Popen(command, **options))
        stack.callback(process.kill)
        return process

    # An exception ends the other processes.
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, stop)
    signal.alarm(SECONDS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, __file__, "subscribe", endpoint, published]
    slow, fast = (start([*command, seconds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for seconds in (pause, "0"))
    environment = {**os.environ, **({"LD_PRELOAD": library[0]} if library else {})}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["-re", "-i", source, "-c", "copy", "-pkt_size", size, "-f", "mpegts", f"zmq:{endpoint}"]
    publisher = start(ffmpeg(*words), env=environment)
    assert fast.stdout.readline() == slow.stdout.readline() == "connected\n"
    files = libraries([publisher.pid])
    assert publisher.wait() == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    results = []
    for subscriber in (slow, fast):
        subscriber.stdin.close()
        results.append(json.loads(subscriber.stdout.readline()))
    (slow_frames, slow_bytes, slow_used), (fast_frames, fast_bytes, fast_used) = results
    return {
        "frames lost, slow": slow_frames,
        "% of bytes, slow": slow_bytes,
        "frames lost, fast": fast_frames,
        "% of bytes, fast": fast_bytes,
        "processor s, FFmpeg": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 3),
        "processor s, subscribers": round(slow_used + fast_used, 3),
        "libraries": files,
    }


if __name__ == "__main__":
    if sys.argv[1] == "subscribe":
        subscribe(sys.argv[2], float(sys.argv[4]), sys.argv[3])
    else:
        main()
