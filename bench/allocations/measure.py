"""Measures the heap of zmq-bench on libzmq and on Tautline. run.sh builds what it needs.

    measure.py OUT BASELINE SECONDS

A short and a long run of the same cell differ only in their number of messages. So the difference of their counters, divided by the
difference of these numbers, is the cost of one message: connecting and closing are in both. Each figure is the median of three.
"""

import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

OUT, BASELINE, SECONDS = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
LIBRARIES = {"libzmq": BASELINE, "Tautline": str(OUT / "ours")}
TRANSPORTS = ["tcp", "ipc", "inproc"]
# Title, pattern, bytes, subscribers, and the numbers of messages of the short and of the long run.
CELLS = [
    ("PUSH/PULL 64 B", "push_pull", 64, 1, 100_000, 1_100_000),
    ("PUSH/PULL 1 KiB", "push_pull", 1024, 1, 50_000, 550_000),
    ("PUSH/PULL 64 KiB", "push_pull", 65536, 1, 2_000, 22_000),
    ("PUB to 8 SUB, 64 B", "fan_out", 64, 8, 20_000, 220_000),
]
# Cells of the longer runs, which have too many messages to end.
LONG = [("PUSH/PULL tcp 1 KiB", "push_pull", "tcp", 1024, 1), ("PUB to 8 SUB tcp 64 B", "fan_out", "tcp", 64, 8)]


def start(library, counters, pattern, transport, size, subscribers, count, timeout):
    environment = {**os.environ, "LD_LIBRARY_PATH": library, "LD_PRELOAD": str(OUT / "bin/count.so"), "COUNT_FILE": counters}
    command = [str(OUT / "bin/zmq-bench"), "--pattern", pattern, "--transport", transport, "--size", str(size), "--count", str(count)]
    command += ["--subscribers", str(subscribers), "--timeout", str(timeout)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def check(result, library):
    """Ends the program unless a run was complete and on the right library."""
    if not result["ok"] or result["lost"] + result["reordered"] + result["corrupted"] or not os.path.samefile(result["library"], f"{library}/libzmq.so.5"):
        sys.exit(f"allocations: {result}")


def read(counters):
    """Returns the number of allocations, of frees, the bytes asked for, and the live bytes."""
    return struct.unpack("4Q", pathlib.Path(counters).read_bytes()[:32])


def count(library, cell):
    with tempfile.NamedTemporaryFile() as counters:
        process = start(library, counters.name, *cell, timeout=100)
        output, _ = process.communicate(timeout=120)
        check(json.loads(output.splitlines()[-1]), library)
        return read(counters.name)


def for_each_message(library, transport, pattern, size, subscribers, short, long):
    """Returns the allocations and the bytes of one message."""
    trials = []
    for _ in range(3):
        less = count(library, (pattern, transport, size, subscribers, short))
        more = count(library, (pattern, transport, size, subscribers, long))
        trials.append([(after - before) / (long - short) for before, after in zip(less, more)])
    return statistics.median(t[0] for t in trials), statistics.median(t[2] for t in trials)


def resident_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1])
    return 0


def over_time(library, pattern, transport, size, subscribers):
    """Returns, for each second, the live bytes of the heap and the anonymous memory in KiB."""
    series = []
    with tempfile.NamedTemporaryFile() as counters:
        process = start(library, counters.name, pattern, transport, size, subscribers, 10**12, SECONDS + 60)
        begin = time.monotonic()
        for second in range(1, SECONDS + 1):
            time.sleep(max(0, begin + second - time.monotonic()))
            if process.poll() is not None:
                sys.exit(f"allocations: {pattern} ended early: {process.stdout.read()}")
            allocations, _, _, live = read(counters.name)
            series.append((second, live / 1024, resident_kib(process.pid), allocations))
        process.kill()
        process.wait()
    return series


def number(value):
    return "0" if value < 0.0005 else f"{value:.3f}" if value < 0.095 else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def main():
    figures = {"messages": [], "time": []}
    begin = time.monotonic()
    print("| allocations for each message (bytes) | library | " + " | ".join(TRANSPORTS) + " |\n|---|---|" + "--:|" * len(TRANSPORTS))
    for title, *cell in CELLS:
        for name, library in LIBRARIES.items():
            row = [for_each_message(library, transport, *cell) for transport in TRANSPORTS]
            figures["messages"].append({"cell": title, "library": name, "transports": dict(zip(TRANSPORTS, row))})
            print(f"| {title} | {name} | " + " | ".join(f"{number(a)} ({number(b)})" for a, b in row) + " |", flush=True)
    seconds = sorted({1, *range(10, SECONDS, 10), SECONDS})
    print(f"\n({time.monotonic() - begin:.0f} s)\n\n| KiB of heap (of anonymous memory) after | library | " + " | ".join(f"{s} s" for s in seconds) + " |")
    print("|---|---|" + "--:|" * len(seconds))
    for title, *cell in LONG:
        for name, library in LIBRARIES.items():
            series = over_time(library, *cell)
            figures["time"].append({"cell": title, "library": name, "series": [[s, round(live), rss, n] for s, live, rss, n in series]})
            shown = [series[s - 1] for s in seconds]
            print(f"| {title} | {name} | " + " | ".join(f"{live:,.0f} ({rss:,})" for _, live, rss, _ in shown) + " |", flush=True)
    (OUT / "allocations.json").write_text(json.dumps(figures, separators=(",", ":")), encoding="utf-8")
    print(f"\n({time.monotonic() - begin:.0f} s in all)")


main()
