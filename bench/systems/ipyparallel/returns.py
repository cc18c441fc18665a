"""Starts a controller and 20 engines of ipyparallel, lets the engines return 1 MiB for each task, and prints one line of JSON.

    returns.py BURSTS

A burst is one task for each engine, all at once.
"""

import json
import os
import pathlib
import sys
import time

import ipyparallel

ENGINES = 20
LENGTH = 1 << 20


def processes(process):
    """Returns the numbers of a process and of all its descendants."""
    found = [process]
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += processes(int(child))
    return found


def processor(numbers):
    """Returns the processor time in seconds that these processes have used."""
    ticks = 0
    for number in numbers:
        fields = pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def libraries(numbers):
    files = set()
    for number in numbers:
        maps = pathlib.Path(f"/proc/{number}/maps").read_text().splitlines()
        files |= {line.split()[-1] for line in maps if "libzmq" in line or "tautline" in line}
    return sorted(files)


def task(number):
    return bytes([number % 256]) * 1048576


def main():
    bursts = int(sys.argv[1])
    with ipyparallel.Cluster(n=ENGINES, log_level=40) as client:
        client.wait_for_engines(ENGINES, timeout=300)
        view = client[:]
        view.map_sync(task, range(ENGINES))
        numbers = processes(os.getpid())
        used, start = processor(numbers), time.perf_counter()
        for burst in range(bursts):
            results = view.map_sync(task, range(burst, burst + ENGINES))
            assert all(result[0] == (burst + at) % 256 and len(result) == LENGTH for at, result in enumerate(results))
        seconds, used = time.perf_counter() - start, processor(numbers) - used
        print(
            json.dumps(
                {
                    "returns/s": round(bursts * ENGINES / seconds, 1),
                    "processor ms a return": round(used / (bursts * ENGINES) * 1e3, 2),
                    "libraries": libraries(numbers),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
