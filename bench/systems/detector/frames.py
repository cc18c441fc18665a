"""Sends detector frames of 4 MiB by karabo-bridge to four consumers, and prints one line of JSON.

    frames.py ipc|tcp|namespaces FRAMES [read]

Each consumer asks for the next frame, as karabo-bridge does by default, and looks at its first and last pixel; with `read` it sums the
frame. `namespaces` is tcp with the consumers in a network namespace of their own, which needs root.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

import karabo_bridge
import numpy
from processes import libraries

CONSUMERS = 4
SHAPE = (1024, 2048)
NAMESPACE, HERE, THERE = f"frames-{os.getpid()}", f"fh{os.getpid()}", f"ft{os.getpid()}"


def processor():
    own, children = os.times()[:2], os.times()[2:4]
    return sum(own) + sum(children)


def consume(endpoint, frames, read):
    """Receives this number of frames. Prints the used libraries."""
    client = karabo_bridge.Client(endpoint)
    for _ in range(frames):
        data, _ = client.next()
        image = data["camera"]["image"]
        number = int(image[0, 0])
        assert number == image[-1, -1]
        if read:
            assert image.sum(dtype=numpy.uint64) == number * image.size
    print(json.dumps(libraries([os.getpid()])), flush=True)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def namespace():
    """A network namespace that reaches this one by 10.86.0.1."""
    ip("netns", "add", NAMESPACE)
    try:
        ip("link", "add", HERE, "type", "veth", "peer", "name", THERE, "netns", NAMESPACE)
        ip("address", "add", "10.86.0.1/24", "dev", HERE)
        ip("link", "set", HERE, "up")
        ip("-n", NAMESPACE, "address", "add", "10.86.0.2/24", "dev", THERE)
        ip("-n", NAMESPACE, "link", "set", THERE, "up")
        yield ["ip", "netns", "exec", NAMESPACE]
    finally:
        ip("netns", "delete", NAMESPACE)


def main():
    way, frames = sys.argv[1], int(sys.argv[2])
    with contextlib.ExitStack() as stack:
        prefix, endpoint = [], "tcp://127.0.0.1:*"
        if way == "ipc":
            endpoint = f"ipc://{stack.enter_context(tempfile.TemporaryDirectory())}/frames"
        elif way == "namespaces":
            prefix, endpoint = stack.enter_context(namespace()), "tcp://10.86.0.1:*"
        server = stack.enter_context(karabo_bridge.ServerInThread(endpoint))
        endpoint = server.server_socket.last_endpoint.decode().rstrip("\0")
        command = [*prefix, sys.executable, __file__, "consume", endpoint, str(frames // CONSUMERS), *sys.argv[3:]]
        consumers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(CONSUMERS)]
        # The first request shows that a consumer is there.
        used = processor()
        start = None
        for number in range(frames // CONSUMERS * CONSUMERS):
            image = numpy.full(SHAPE, number % 65536, dtype=numpy.uint16)
            server.feed({"camera": {"image": image, "metadata": {}}})
            if number == CONSUMERS:
                start = time.perf_counter()
        files = {file for consumer in consumers for file in json.loads(consumer.communicate()[0])}
        seconds = time.perf_counter() - start
        assert all(consumer.returncode == 0 for consumer in consumers)
        sent = (frames // CONSUMERS * CONSUMERS - CONSUMERS) * image.nbytes
        print(
            json.dumps(
                {
                    "GB/s": round(sent / seconds / 1e9, 3),
                    "processor ms a frame": round((processor() - used) / frames * 1e3, 3),
                    "libraries": sorted({*libraries([os.getpid()]), *files}),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1] == "consume":
        consume(sys.argv[2], int(sys.argv[3]), len(sys.argv) > 4)
    else:
        main()
