"""`python -m tautline_zmq bench`: runs the same Python programs on pyzmq's own libzmq and on Tautline, in turn."""

import json
import os
import platform
import subprocess
import sys

from tautline_zmq import _library, version

# Title, role that binds and prints its endpoint, role that connects, role that measures, size of a message in bytes.
CASES = [
    ("64 B, PUSH to PULL", "collect", "supply", "collect", 64),
    ("8 KiB, PUSH to PULL", "collect", "supply", "collect", 8192),
    ("64 B, REQ to REP and back", "answer", "ask", "ask", 64),
    ("the same with asyncio", "answer_async", "ask_async", "ask_async", 64),
]


def run(rounds, seconds):
    try:
        import zmq
    except ImportError as error:
        print(f"cannot import pyzmq: {error}")
        return 1
    print(f"pyzmq {zmq.__version__}, {platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} processors.")
    print(f"Two processes over tcp, {rounds} times with each library in turn.\n")
    print(f"{'':<27}{'its own libzmq':>16}{'Tautline ' + version():>18}   Tautline is")
    try:
        for case in CASES:
            # The libraries begin in turn, so that other load on the machine slows both down.
            pairs = [measure_pair(case, seconds, first=number % 2) for number in range(rounds)]
            print(line(case, pairs), flush=True)
    except Failure as failure:
        print(f"\n{failure}")
        return 1
    print("\nMore per second is better. Each line shows the pair with the median ratio, and in brackets the least and the greatest ratio.")
    return 0


def measure_pair(case, seconds, first):
    result = [0.0, 0.0]
    for on in (first, 1 - first):
        result[on] = measure(case, seconds, on)
    return result


def measure(case, seconds, on):
    _, binds, connects, measures, size = case
    environment = dict(os.environ, **{_library.VARIABLE: str(on)})

    def start(*arguments):
        command = [sys.executable, "-m", "tautline_zmq._measure", *arguments, str(size), str(seconds)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    binding = start(binds)
    connecting = None
    try:
        endpoint = binding.stdout.readline().strip()
        if not endpoint:
            raise Failure("A process ended before it was ready.")
        connecting = start(connects, endpoint)
        measuring = binding if measures == binds else connecting
        answer = measuring.stdout.readline()
        if not answer:
            raise Failure("A process ended before it finished its measurement.")
        result = json.loads(answer)
    finally:
        for process in filter(None, (binding, connecting)):
            process.kill()
            process.wait()
            process.stdout.close()
    if result["tautline"] != bool(on):
        which = "does not run on Tautline" if on else "still runs on Tautline"
        raise Failure(f"With {_library.VARIABLE}={on}, pyzmq {which}. Run python -m tautline_zmq doctor.")
    return result["per_second"]


def line(case, pairs):
    def ratio(pair):
        return pair[1] / pair[0]

    pairs = sorted(pairs, key=ratio)
    least, middle, greatest = pairs[0], pairs[(len(pairs) - 1) // 2], pairs[-1]
    verdict = f"{ratio(middle):.1f} times as fast"
    if ratio(least) <= 1 <= ratio(greatest):
        verdict = "as fast, within the measured range"
    return f"{case[0]:<27}{rate(middle[0]):>16}{rate(middle[1]):>18}   {verdict} ({ratio(least):.2f} to {ratio(greatest):.2f})"


def rate(per_second):
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if per_second >= factor:
            return f"{per_second / factor:.3g} {unit}/s"
    return f"{per_second:.3g} /s"


class Failure(Exception):
    """Error with a text for the user of the command."""
