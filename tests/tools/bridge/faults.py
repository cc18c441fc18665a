"""What is lost and doubled when one of those that take part is killed with SIGKILL, again and again, under load.

Each case returns a row: the promise, what is killed, how often, how many messages were sent, lost and doubled; and raises if the promise
is broken. When to kill is a number of messages, drawn from a fixed seed.
"""

import asyncio
import os
import random
import subprocess
import sys
import threading
from collections import Counter

import zmq
from harness import LIMIT, config

HERE = os.path.dirname(os.path.abspath(__file__))

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

REPLAY = """
name = "out"
promise = "replay"
socket = "PUB"
bind = "{endpoint}"
stream = "S"
subject = "jobs"
start = "first"
"""


def pusher(case, endpoint):
    """A PUSH that holds little, so that it feels when nobody reads."""
    push = zmq.Context.instance().socket(zmq.PUSH)
    push.setsockopt(zmq.SNDTIMEO, LIMIT * 1000)
    push.setsockopt(zmq.LINGER, 0)
    push.connect(endpoint)
    return case.keep(push)


class Workers(list):
    """REP workers, and what they have written down."""

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
        """All that they were given, in order."""
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
        """How many different ones."""
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
    """How many of those that were sent are not there, and how many are there again."""
    counts = Counter(found)
    strange = set(counts) - set(sent)
    assert not strange, f"never sent: {sorted(strange)[:5]}"
    return len(set(sent) - set(counts)), sum(counts.values()) - len(counts)


def numbers(messages):
    return [int(data.split()[-1]) for _, _, data in messages]


def stored_server(case, kills, servers=1):
    """PULL to a stream, and the server, or the leader of three, is killed: the bridge lives, and loses and doubles nothing."""
    server, client = case.nats(servers)
    client.make("S", ["jobs"], num_replicas=servers)
    endpoint, random_step, per = case.endpoint(), random.Random(1), 300
    bridge = case.bridge(config(server, STORED.format(socket="PULL", endpoint=endpoint, more="")))
    push, sent = pusher(case, endpoint), 0
    for _ in case.rounds(kills):
        step = random_step.randrange(per)
        for at in range(per):
            if at == step:
                victim = client.leader("S") if servers > 1 else 0
                server.again(victim if victim is not None else 0)
            push.send(b"%d" % sent)
            sent += 1
    bridge.reaches("in", done=sent)
    lost, doubled = compare(range(sent), numbers(client.stored("S")))
    assert (lost, doubled) == (0, 0), (lost, doubled)
    return "stored, PUSH to PULL", "NATS server" if servers == 1 else "leader of three", case.round, sent, lost, doubled


def stored_leader(case, kills):
    """The same with the leader of a cluster of three."""
    return stored_server(case, kills, 3)


def stored_answered_bridge(case, kills):
    """REQ to a stream with an id in each message, and the bridge is killed: what was answered is there, once."""
    server, client = case.nats()
    client.make("S", ["jobs"])
    endpoint, random_step, per, sent = case.endpoint(), random.Random(2), 60, 0
    bridge = case.bridge(config(server, STORED.format(socket="ROUTER", endpoint=endpoint, more="id_part = 0")))

    def ask(number):
        """As clients do that are prepared for the worst: again, on a new socket, until there is an answer."""
        while True:
            with zmq.Context.instance().socket(zmq.REQ) as request:
                request.setsockopt(zmq.LINGER, 0)
                request.setsockopt(zmq.RCVTIMEO, 300)
                request.connect(endpoint)
                while True:
                    request.send_multipart([b"id-%d" % number, b"%d" % number])
                    try:
                        answer = request.recv_multipart()
                    except zmq.Again:
                        break
                    assert answer[0] == b"stored", answer
                    number = yield

    client_of_bridge = None
    for _ in case.rounds(kills):
        step = random_step.randrange(per)
        killer = None
        for at in range(per):
            if at == step:
                killer = threading.Thread(target=bridge.again)
                killer.start()
            if client_of_bridge is None:
                client_of_bridge = ask(sent)
                next(client_of_bridge)
            else:
                client_of_bridge.send(sent)
            sent += 1
        killer.join()
    client_of_bridge.close()
    lost, doubled = compare(range(sent), answered(client))
    assert (lost, doubled) == (0, 0), (lost, doubled)
    return "stored, REQ to ROUTER, id in the message", "bridge", case.round, sent, lost, doubled


def answered(client):
    """The numbers of messages of two parts, `id-N` and `N`."""
    for _, headers, data in client.stored("S"):
        first = int(headers["Zmq-Parts"].split(",")[0])
        yield int(data[first:])


def stored_bridge(case, kills):
    """PUSH to a stream, and the bridge is killed: what the stream has acknowledged is there, once; what lay in sockets is lost."""
    server, client = case.nats()
    client.make("S", ["jobs"])
    endpoint, random_step, per, sent = case.endpoint(), random.Random(3), 300, 0
    bridge = case.bridge(config(server, STORED.format(socket="PULL", endpoint=endpoint, more="")))
    push = pusher(case, endpoint)
    for _ in case.rounds(kills):
        step = random_step.randrange(1, per)
        for at in range(per):
            if at == step:
                # It is in the midst of it.
                bridge.reaches("in", received=1)
                done = bridge.numbers["in"]["done"]
                before = client.count("S")
                assert before >= done, (before, done)
                bridge.numbers.clear()
                bridge.again()
            push.send(b"%d" % sent)
            sent += 1
    # What is sent now arrives.
    have = client.count("S")
    bridge.numbers.clear()
    push.send(b"%d" % sent)
    sent += 1
    while sent - 1 not in numbers(client.stored("S")[have:] if have else client.stored("S")):
        bridge.reaches("in", done=1)
    found = numbers(client.stored("S"))
    lost, doubled = compare(range(sent), found)
    assert doubled == 0, doubled
    # Of each round at most what was sent before the kill.
    assert lost <= case.round * per, lost
    return "stored, PUSH to PULL: from the acknowledgement on", "bridge", case.round, sent, f"{lost} that lay in sockets", doubled


def stored_publisher(case, kills):
    """Programs that push are killed: of each one the stream has the beginning, without a gap, once."""
    server, client = case.nats()
    client.make("S", ["jobs"])
    endpoint, random_step = case.endpoint(), random.Random(4)
    bridge = case.bridge(config(server, STORED.format(socket="PULL", endpoint=endpoint, more="")))
    received = 0
    for number in case.rounds(kills):
        program = subprocess.Popen([sys.executable, f"{HERE}/publisher.py", endpoint, f"p{number}"])
        try:
            bridge.reaches("in", received=received + random_step.randrange(1, 500))
        finally:
            program.kill()
            program.wait()
        received = bridge.numbers["in"]["received"]
    # One that lives still gets through. What the killed have left behind may come before it or after it.
    push = pusher(case, endpoint)
    push.send(b"end 0")
    arrived = []
    while not any(data == b"end 0" for _, _, data in arrived):
        arrived = client.stored("S")
    found = {}
    for _, _, data in arrived:
        name, at = data.decode().split()
        found.setdefault(name, []).append(int(at))
    lost = doubled = sent = 0
    for name, numbers_of in found.items():
        gone, again = compare(range(max(numbers_of) + 1), numbers_of)
        lost, doubled, sent = lost + gone, doubled + again, sent + len(numbers_of)
        assert numbers_of == sorted(numbers_of), f"{name}: not in order"
    assert (lost, doubled) == (0, 0), (lost, doubled)
    return "stored, PUSH to PULL: no gap in what arrived", "publisher", case.round, sent, lost, doubled


def worked_off(case, kills, what, servers=1):
    """From a stream to workers, and one of those that take part is killed: each message is worked off."""
    server, client = case.nats(servers)
    client.make("S", ["jobs"], num_replicas=servers)
    endpoint, random_step, per, sent = case.endpoint(), random.Random(5), 40, 0

    def more():
        nonlocal sent

        async def publish(start):
            at = start
            while at < start + per:
                try:
                    await client.streams.publish("jobs", b"%d" % at, headers={"Nats-Msg-Id": str(at)})
                    at += 1
                except Exception:
                    await asyncio.sleep(0.02)

        client.run(publish(sent))
        sent += per

    bridge = case.bridge(config(server, WORK.format(endpoint=endpoint)))
    workers = case.keep(work_force(endpoint, f"{case.folder}/done.txt"))
    more()
    for _ in case.rounds(kills):
        # What comes back late holds nobody up.
        more()
        least = sent - per - random_step.randrange(1, per)
        bridge.until(lambda: workers.count() >= least, f"{least} worked off")
        if what == "worker":
            workers.kill(random_step.randrange(len(workers)))
            workers.add()
        elif what == "bridge":
            bridge.again()
        else:
            victim = client.leader("S") if servers > 1 else 0
            server.again(victim if victim is not None else 0)
    bridge.until(lambda: workers.count() >= sent, "all worked off")
    lost, doubled = compare(range(sent), workers.done())
    assert lost == 0, lost
    named = {"worker": "worker", "bridge": "bridge", "server": "NATS server" if servers == 1 else "leader of three"}[what]
    return "worked off: at least once", named, case.round, sent, lost, doubled


def replayed(case, kills):
    """From a stream to subscribers that are killed, beside one that stays: it gets all, and each of the others has no gap while it lives."""
    server, client = case.nats()
    client.make("S", ["jobs"])
    endpoint, random_step, sent = case.endpoint(), random.Random(6), 0
    case.bridge(config(server, REPLAY.format(endpoint=endpoint)))
    stays = case.keep(zmq.Context.instance().socket(zmq.SUB))
    stays.setsockopt(zmq.RCVTIMEO, LIMIT * 1000)
    stays.setsockopt(zmq.RCVHWM, 0)
    stays.subscribe(b"")
    stays.connect(endpoint)

    def more():
        nonlocal sent

        async def publish(numbers):
            for number in numbers:
                await client.streams.publish("jobs", b"%d" % number)

        client.run(publish(range(sent, sent + 20)))
        sent += 20

    for at in case.rounds(kills):
        log = f"{case.folder}/{at}.txt"
        program = subprocess.Popen([sys.executable, f"{HERE}/subscriber.py", endpoint, log])
        try:
            least = random_step.randrange(1, 200)
            while len(found := lines(log)) < least:
                more()
        finally:
            program.kill()
            program.wait()
        found = lines(log)
        assert found == list(range(found[0], found[0] + len(found))), f"{log}: a gap"
    if not sent:
        more()
    found = [int(stays.recv()) for _ in range(sent)]
    lost, doubled = compare(range(sent), found)
    assert (lost, doubled) == (0, 0) and found == sorted(found), (lost, doubled)
    return "replay: no gap for one that stays", "other subscribers", case.round, sent, lost, doubled


def lines(log):
    """The numbers that a program has written down whole."""
    try:
        with open(log) as file:
            return [int(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


CASES = {
    "kill_server_stored": stored_server,
    "kill_leader_stored": stored_leader,
    "kill_bridge_answered": stored_answered_bridge,
    "kill_bridge_stored": stored_bridge,
    "kill_publisher_stored": stored_publisher,
    "kill_worker_worked_off": lambda case, kills: worked_off(case, kills, "worker"),
    "kill_bridge_worked_off": lambda case, kills: worked_off(case, kills, "bridge"),
    "kill_server_worked_off": lambda case, kills: worked_off(case, kills, "server"),
    "kill_leader_worked_off": lambda case, kills: worked_off(case, kills, "server", 3),
    "kill_subscriber_replayed": replayed,
}
