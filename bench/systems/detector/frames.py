"""Sends detector frames of 4 MiB by karabo-bridge to four consumers, and prints one line of JSON.

    frames.py ipc|namespaces FRAMES [read]

The source computes each frame in new memory. Each consumer asks for the next frame, as karabo-bridge does by default, and looks at the
first and the last pixel; with `read` it sums all pixels. karabo-bridge receives with copy=False. The first frame of each consumer is not
counted: the clocks start when all consumers have it. `namespaces` is tcp with the consumers in a network namespace of their own.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import karabo_bridge
import numpy
from processes import libraries

CONSUMERS = 4
SHAPE = (1024, 2048)
SECONDS = 100
PREFIX = "frames-"
NAMESPACE, HERE, THERE = f"{PREFIX}{os.getpid()}", f"fh{os.getpid()}", f"ft{os.getpid()}"
WITHOUT_ROOT = "unshare --map-root-user --net --mount sh -c 'mount -t tmpfs tmpfs /run && exec bench/systems/run.sh detector namespaces'"


def consume(endpoint, frames, read):
    """Receives this number of frames, and prints a line after the first. Prints the processor time of the others."""
    client = karabo_bridge.Client(endpoint, timeout=SECONDS)
    for received in range(frames):
        if received == 1:
            print("ready", flush=True)
            sys.stdin.readline()
            used = time.process_time()
        data, _ = client.next()
        image = data["camera"]["image"]
        number = int(image[0, 0])
        assert number == image[-1, -1]
        if read:
            assert image.sum(dtype=numpy.uint64) == number * image.size
    print(json.dumps({"processor": time.process_time() - used, "libraries": libraries([os.getpid()])}), flush=True)


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, stdout=subprocess.PIPE, text=True).stdout


@contextlib.contextmanager
def namespace():
    """A network namespace that reaches this one by 10.86.0.1."""
    if os.geteuid():
        sys.exit(f"frames: network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN). Without root, run the plan frames, and then\n  {WITHOUT_ROOT}")
    if not shutil.which("ip"):
        sys.exit("frames: the program ip is missing. Install iproute2.")
    # A run that was ended by SIGKILL left its namespace and its device.
    for name in ip("netns", "list").split():
        process = name.removeprefix(PREFIX)
        if name != process and not pathlib.Path("/proc", process).exists():
            ip("netns", "delete", name)
            ip("link", "delete", f"fh{process}", check=False)
    try:
        ip("netns", "add", NAMESPACE)
        ip("link", "add", HERE, "type", "veth", "peer", "name", THERE, "netns", NAMESPACE)
        ip("address", "add", "10.86.0.1/24", "dev", HERE)
        ip("link", "set", HERE, "up")
        ip("-n", NAMESPACE, "address", "add", "10.86.0.2/24", "dev", THERE)
        ip("-n", NAMESPACE, "link", "set", THERE, "up")
        yield ["ip", "netns", "exec", NAMESPACE]
    finally:
        # A device ends together with the other one.
        ip("link", "delete", HERE, check=False)
        ip("netns", "delete", NAMESPACE, check=False)


def frame(number):
    return {"camera": {"image": numpy.full(SHAPE, number % 65536, dtype=numpy.uint16), "metadata": {}}}


def run(stack, way, frames, options):
    prefix, endpoint = [], f"ipc://@{NAMESPACE}"
    if way == "namespaces":
        prefix, endpoint = stack.enter_context(namespace()), "tcp://10.86.0.1:*"
    server = stack.enter_context(karabo_bridge.ServerInThread(endpoint))
    endpoint = server.server_socket.last_endpoint.decode().rstrip("\0")
    command = [*prefix, sys.executable, __file__, "consume", endpoint, str(frames // CONSUMERS), *options]
    consumers = []
    for _ in range(CONSUMERS):
        consumers.append(stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)))
        stack.callback(consumers[-1].kill)
    for number in range(CONSUMERS):
        server.feed(frame(number))
    for consumer in consumers:
        assert consumer.stdout.readline() == "ready\n"
    start, used = time.perf_counter(), time.process_time()
    for consumer in consumers:
        consumer.stdin.write("\n")
        consumer.stdin.flush()
    counted = frames // CONSUMERS * CONSUMERS - CONSUMERS
    for number in range(CONSUMERS, CONSUMERS + counted):
        server.feed(frame(number))
    results = [json.loads(consumer.stdout.readline()) for consumer in consumers]
    seconds, used = time.perf_counter() - start, time.process_time() - used
    files = {file for result in results for file in result["libraries"]}
    return {
        "GB/s": round(counted * frame(0)["camera"]["image"].nbytes / seconds / 1e9, 3),
        "processor ms a frame, source": round(used / counted * 1e3, 3),
        "processor ms a frame, consumer": round(sum(result["processor"] for result in results) / counted * 1e3, 3),
        "libraries": sorted({*libraries([os.getpid()]), *files}),
    }


def stop(number, _):
    sys.exit(f"frames: stopped by {signal.Signals(number).name}")


def main():
    # An exception ends the consumers and the namespace.
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, stop)
    signal.alarm(SECONDS)
    with contextlib.ExitStack() as stack:
        result = run(stack, sys.argv[1], int(sys.argv[2]), sys.argv[3:])
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "consume":
        consume(sys.argv[2], int(sys.argv[3]), len(sys.argv) > 4)
    else:
        main()
