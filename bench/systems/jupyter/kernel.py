"""Runs cells in an IPython kernel over ipc, and prints one line of JSON.

    kernel.py LINES CELLS

A cell prints LINES lines and flushes each, while the client is busy for two seconds. Then the client reads all that has arrived. After
that, CELLS short cells run one after the other.
"""

import json
import os
import queue
import re
import sys
import time

from jupyter_client.manager import KernelManager
from processes import libraries, tree

BUSY_SECONDS = 2


def lines_of(client, count):
    """Returns the numbers of the lines that arrive."""
    cell = client.execute(f"for number in range({count}): print(number, 'x' * 200, flush=True)")
    time.sleep(BUSY_SECONDS)
    text = []
    while True:
        try:
            message = client.get_iopub_msg(timeout=10)
        except queue.Empty:
            break
        if message["parent_header"].get("msg_id") != cell:
            continue
        if message["msg_type"] == "stream":
            text.append(message["content"]["text"])
        elif message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            break
    return [int(number) for number in re.findall(r"^(\d+) x", "".join(text), re.MULTILINE)]


def main():
    count, cells = int(sys.argv[1]), int(sys.argv[2])
    manager = KernelManager(transport="ipc")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    arrived = lines_of(client, count)
    assert arrived == sorted(arrived), "lines are out of order"
    client.get_shell_msg(timeout=60)
    start = time.perf_counter()
    for _ in range(cells):
        client.execute_interactive("1 + 1", store_history=False, output_hook=lambda message: None)
    seconds = time.perf_counter() - start
    print(
        json.dumps(
            {
                "lines lost": count - len(arrived),
                "cells/s": round(cells / seconds, 1),
                "libraries": libraries(tree(os.getpid())),
            }
        ),
        flush=True,
    )
    client.stop_channels()
    manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
