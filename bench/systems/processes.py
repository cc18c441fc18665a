"""Questions of the programs in this folder about processes. pairs.py puts the folder into PYTHONPATH."""

import os
import pathlib


def tree(process):
    """Returns the numbers of a process and of all its descendants."""
    found = [process]
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += tree(int(child))
    return found


def processor(numbers):
    """Returns the processor time in seconds that these processes have used."""
    ticks = 0
    for number in numbers:
        fields = pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def libraries(numbers):
    """Returns the files of ZeroMQ that these processes have mapped: each libzmq, and the Python module of Tautline."""
    files = set()
    for number in numbers:
        lines = pathlib.Path(f"/proc/{number}/maps").read_text().splitlines()
        paths = (line.split(maxsplit=5)[5] for line in lines if "/" in line)
        files |= {path for path in paths if "libzmq" in path or "tautline_zmq/" in path}
    return sorted(files)
