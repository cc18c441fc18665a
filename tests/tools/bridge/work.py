"""Sockets, routes and workers that cases share."""

import os
import subprocess
import sys
from collections import Counter

import zmq

HERE = os.path.dirname(os.path.abspath(__file__))


def sock(case, kind, connect=None, subscribe=(), **options):
    """Returns a pyzmq socket that is closed at the end of the case."""
    made = zmq.Context.instance().socket(getattr(zmq, kind))
    made.setsockopt(zmq.LINGER, 0)
    for name, value in options.items():
        made.setsockopt(getattr(zmq, name), value)
    for topic in subscribe:
        made.setsockopt(zmq.SUBSCRIBE, topic)
    if connect:
        made.connect(connect)
    return case.keep(made)


STORED = """
name = "in"
promise = "stored"
socket = "{socket}"
bind = "{endpoint}"
stream = "S"
subject = "jobs"
window = 64
{more}
"""

WORK = """
name = "work"
promise = "worked off"
socket = "DEALER"
bind = "{endpoint}"
stream = "S"
subject = "jobs"
consumer = "crew"
answer_within = "1s"
window = 64
"""


def pusher(case, endpoint):
    """Returns a PUSH that is connected to an endpoint."""
    push = zmq.Context.instance().socket(zmq.PUSH)
    push.setsockopt(zmq.LINGER, 0)
    push.connect(endpoint)
    return case.keep(push)


class Workers(list):
    """Worker processes, and the log that they write."""

    def __init__(self, endpoint, log):
        self.endpoint, self.log, self.read, self.all, self.different = endpoint, log, 0, [], set()
        open(log, "w").close()

    def add(self):
        self.append(subprocess.Popen([sys.executable, f"{HERE}/worker.py", self.endpoint, self.log, "REP"]))

    def kill(self, at):
        worker = self.pop(at)
        worker.kill()
        worker.wait()

    def words(self):
        """Returns all messages that the workers received, in order."""
        with open(self.log) as file:
            file.seek(self.read)
            lines = file.readlines()
        if lines and not lines[-1].endswith("\n"):
            lines.pop()
        self.read += sum(map(len, lines))
        words = [line.rstrip("\n") for line in lines]
        self.all += words
        self.different.update(words)
        return self.all

    def done(self):
        return [int(word) for word in self.words()]

    def count(self):
        """Returns the number of different messages that the workers received."""
        self.words()
        return len(self.different)

    def end(self):
        while self:
            self.kill(0)


def work_force(endpoint, log):
    workers = Workers(endpoint, log)
    for _ in range(3):
        workers.add()
    return workers


def compare(sent, found):
    """Returns the numbers of lost and of doubled messages."""
    counts = Counter(found)
    strange = set(counts) - set(sent)
    assert not strange, f"never sent: {sorted(strange)[:5]}"
    return len(set(sent) - set(counts)), sum(counts.values()) - len(counts)


def numbers(messages):
    return [int(data.split()[-1]) for _, _, data in messages]


def answered(client):
    """Yields the N of each stored message with the two parts `id-N` and `N`."""
    for _, headers, data in client.stored("S"):
        first = int(headers["Zmq-Parts"].split(",")[0])
        yield int(data[first:])
