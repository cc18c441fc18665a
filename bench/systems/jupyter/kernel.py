"""Runs cells in an IPython kernel over ipc, and prints one line of JSON.

    kernel.py LINES CELLS

- A cell prints LINES lines and flushes each, while the client is busy for two seconds. Then the client reads all that has arrived.
- CELLS short cells run one after the other. The processor times end here. They are those of the kernel and of the client.
- The first cell runs once more, and the client reads nothing before it has ended. So "lines held" is the number that both ends hold together.
"""

import json
import os
import queue
import re
import sys
import time

from jupyter_client.manager import KernelManager
from processes import libraries, processor, tree

BUSY_SECONDS = 2
CELL = """
import time
start = time.perf_counter()
for number in range({count}):
    print(number, "x" * 200, flush=True)
seconds = time.perf_counter() - start
"""


def print_lines(client, count):
    """Starts the cell and returns the number of its request."""
    return client.execute(CELL.format(count=count), user_expressions={"seconds": "seconds"})


def seconds_of(client, cell):
    """Waits for the end of the cell and returns the seconds in which the kernel printed the lines."""
    while (reply := client.get_shell_msg(timeout=120))["parent_header"]["msg_id"] != cell:
        pass
    return float(reply["content"]["user_expressions"]["seconds"]["data"]["text/plain"])


def arrived_lines(client, cell):
    """Returns the numbers of the lines that arrive. The end of the cell may be lost like a line, so five silent seconds also end it."""
    text = []
    while True:
        try:
            message = client.get_iopub_msg(timeout=5)
        except queue.Empty:
            break
        if message["parent_header"].get("msg_id") != cell:
            continue
        if message["msg_type"] == "stream":
            text.append(message["content"]["text"])
        elif message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            break
    numbers = [int(number) for number in re.findall(r"^(\d+) x", "".join(text), re.MULTILINE)]
    assert numbers == sorted(set(numbers)), "lines are out of order or duplicated"
    return numbers


def main():
    count, cells = int(sys.argv[1]), int(sys.argv[2])
    manager = KernelManager(transport="ipc")
    manager.start_kernel()
    try:
        print(json.dumps(measure(manager, count, cells)), flush=True)
    finally:
        manager.shutdown_kernel(now=True)


def measure(manager, count, cells):
    """Runs all cells and returns the figures."""
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    own = [os.getpid()]
    kernel = [process for process in tree(os.getpid()) if process not in own]
    used = processor(kernel), processor(own)
    cell = print_lines(client, count)
    time.sleep(BUSY_SECONDS)
    arrived = arrived_lines(client, cell)
    printing = seconds_of(client, cell)
    start = time.perf_counter()
    for _ in range(cells):
        client.execute_interactive("1 + 1", store_history=False, output_hook=lambda message: None)
    seconds = time.perf_counter() - start
    used = processor(kernel) - used[0], processor(own) - used[1]
    loaded = libraries(own), libraries(kernel)
    cell = print_lines(client, count)
    seconds_of(client, cell)
    held = arrived_lines(client, cell)
    client.stop_channels()
    assert loaded[0] == loaded[1], loaded
    return {
        "lines lost": count - len(arrived),
        "lines held": len(held),
        "lines/s printed": round(count / printing),
        "cells/s": round(cells / seconds, 1),
        "kernel s": round(used[0], 2),
        "client s": round(used[1], 2),
        "libraries": loaded[0],
    }


if __name__ == "__main__":
    main()
