"""Counts lost and doubled messages in other faults: partitions, a full disk, a stalled or deleted stream, two bridges with one file.

Most cases have a pipeline: a PUSH, a route *stored*, the stream, a route *worked off* and workers. They add a row for each route.
"""

import os
import random
import signal
import subprocess
import threading
import time

import pytest
import zmq
from programs import Hosts, config
from work import STORED, WORK, answered, compare, numbers, pusher, sock, work_force

# Number of messages that a case pushes during each fault.
PER = 200


class Pipeline:
    """A PUSH, the stream and workers. The sockets use ipc, so that a case can cut only the link between the bridge and NATS."""

    def __init__(self, case, servers=1, hosts=None, store=None, more=""):
        self.case, self.sent = case, 0
        self.server, self.client = case.nats(servers, hosts=hosts, store=store)
        self.client.make("S", ["jobs"], num_replicas=servers)
        into, out = (f"ipc://{case.folder}/{name}" for name in ("in", "out"))
        self.log = f"{case.folder}/done.txt"
        self.bridge = case.bridge(
            config(self.server, STORED.format(socket="PULL", endpoint=into, more=more), WORK.format(endpoint=out)),
            within=hosts.within(servers) if hosts else [],
        )
        self.workers = case.keep(work_force(out, self.log))
        self.push = pusher(case, into)

    def send(self, number, size=0):
        for _ in range(number):
            self.push.send(b"x" * size + b" %d" % self.sent)
            self.sent += 1

    def stored(self):
        """Waits until the stream has all sent messages."""
        self.bridge.reaches("in", done=self.sent)

    def rows(self, trouble):
        """Waits until all messages are stored and worked off, and asserts that all of them arrived."""
        self.stored()
        self.bridge.until(lambda: self.workers.count() == self.sent)
        found = numbers(self.client.stored("S"))
        lost, doubled = compare(range(self.sent), found)
        assert (lost, doubled) == (0, 0), (lost, doubled)
        gone, again = compare(found, self.workers.done())
        assert gone == 0, gone
        self.case.row("stored, PUSH to PULL", trouble, self.case.round, self.sent, lost, doubled)
        self.case.row("worked off: at least once", trouble, self.case.round, self.sent, gone, again)


def test_partition(case, times):
    """The link between the bridge and NATS is cut, for moments and until the bridge gives up the connection."""
    hosts = case.keep(Hosts(2))
    pipeline, seconds = Pipeline(case, hosts=hosts), random.Random(6)
    for at in case.rounds(times):
        pipeline.send(PER)
        hosts.cut(1)
        pipeline.send(PER)
        # Every fifth cut lasts until the bridge gives up its connection.
        time.sleep(12 if at % 5 == 4 else seconds.uniform(0.05, 3))
        hosts.join(1)
    pipeline.rows("partition of bridge and NATS")


@pytest.mark.long
def test_partition_of_leader(case, times):
    """The leader of three is cut off from the other servers and from the bridge. The other two servers store all messages."""
    hosts = case.keep(Hosts(4))
    pipeline = Pipeline(case, servers=3, hosts=hosts)
    for _ in case.rounds(times):
        pipeline.send(PER)
        leader = None
        while leader is None:
            leader = pipeline.client.leader("S")
        hosts.cut(leader)
        pipeline.send(PER)
        pipeline.stored()
        hosts.join(leader)
    pipeline.rows("leader of three cut off")


def test_full_disk(case, times):
    """While the disk of the server is full, senders block. Once the disk has room, all messages are stored."""
    store = f"{case.folder}/disk"
    os.makedirs(store)
    case.keep(Disk(store))
    pipeline = Pipeline(case, store=store, more="hwm = 10")
    pipeline.push.setsockopt(zmq.SNDTIMEO, 3000)
    for at in case.rounds(times):
        start = pipeline.sent
        try:
            while pipeline.sent < start + 20_000:
                pipeline.send(1, 10_000)
        except zmq.Again:
            pass
        assert pipeline.sent < start + 20_000, "the disk is not full"
        pipeline.bridge.reaches("in", waiting=64)
        Disk.resize(store, 16 * (at + 2))
        # A server with a full disk disables its streams until a restart.
        pipeline.server.again()
    pipeline.push.setsockopt(zmq.SNDTIMEO, -1)
    pipeline.rows("full disk")


class Disk:
    """A small file system in memory, whose size can change."""

    def __init__(self, folder):
        self.folder = folder
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], capture_output=True, text=True)
        if mounted.returncode:
            pytest.skip(f"no small disk: {mounted.stderr.strip()}")

    @staticmethod
    def resize(folder, megabytes):
        subprocess.run(["mount", "-o", f"remount,size={megabytes}m", folder], check=True)

    def end(self):
        subprocess.run(["umount", "-l", self.folder], check=True)


@pytest.mark.long
def test_stalled_stream(case, times):
    """The server is stopped, for moments and for longer than the bridge waits for an answer. A repeated request is stored once."""
    pipeline, seconds = Pipeline(case), random.Random(7)
    for at in case.rounds(times):
        pipeline.send(PER)
        pipeline.server.servers[0].send_signal(signal.SIGSTOP)
        try:
            pipeline.send(PER)
            time.sleep(14 if at % 5 == 4 else seconds.uniform(0.05, 6))
        finally:
            pipeline.server.servers[0].send_signal(signal.SIGCONT)
    pipeline.rows("stream stands still")


def test_deleted_stream(case, times):
    """The stream is deleted under load and created again. Later messages are stored, answered and worked off."""
    server, client = case.nats()
    client.make("S", ["jobs"])
    endpoint, out, log = case.endpoint(), case.endpoint(), f"{case.folder}/done.txt"
    bridge = case.bridge(config(server, STORED.format(socket="ROUTER", endpoint=endpoint, more="id_part = 0"), WORK.format(endpoint=out)))
    workers = case.keep(work_force(out, log))
    dealer, sent, lost, doubled, again = sock(case, "DEALER", endpoint), 0, 0, 0, 0

    def send():
        nonlocal sent
        for _ in range(PER):
            dealer.send_multipart([b"id-%d" % sent, b"%d" % sent])
            sent += 1

    def heard(number):
        for _ in range(number):
            answer = dealer.recv_multipart()
            assert answer[0] == b"stored", answer

    for _ in case.rounds(times):
        send()
        heard(PER // 2)
        client.persist(lambda: client.streams.delete_stream("S"))
        # The stored messages are deleted with the stream. All other messages are stored in the new stream.
        first = sent
        send()
        bridge.until(lambda: bridge.numbers["in"]["again"] > 0)
        client.make("S", ["jobs"])
        heard(2 * PER - PER // 2)
        found = [number for number in answered(client) if number >= first]
        gone, twice = compare(range(first, sent), found)
        lost, doubled = lost + gone, doubled + twice
        wanted = {f"id-{at}" for at in range(first, sent)}
        bridge.until(lambda: workers.count() and wanted <= workers.different)
        again += sum(int(word[3:]) >= first for word in workers.words()) - (sent - first)
    assert (lost, doubled) == (0, 0), (lost, doubled)
    case.row("stored, DEALER to ROUTER", "stream deleted, made again", case.round, sent, lost, doubled)
    case.row("worked off: at least once", "stream deleted, made again", case.round, case.round * PER, 0, again)


TWINS = """
name = "all"
promise = "stored"
socket = "SUB"
connect = "{pub}"
subscribe = "all"
stream = "S"
subject = "all.>"
id_part = 1

[[routes]]
name = "some"
promise = "stored"
socket = "PULL"
connect = "{push}"
stream = "S"
subject = "some"

[[routes]]
name = "work"
promise = "worked off"
socket = "DEALER"
connect = "{work}"
stream = "S"
subject = "some"
consumer = "crew"
answer_within = "2s"
"""


def test_twin_bridges(case, times):
    """Two bridges have one file, and one of them is killed repeatedly. If both bridges publish a message, the stream
    stores it once. It redelivers the messages that the killed bridge had fetched."""
    server, client = case.nats()
    client.make("S", ["all.>", "some"])
    publisher, push, service = (sock(case, kind, **more) for kind, more in (("XPUB", {"XPUB_VERBOSE": 1}), ("PUSH", {}), ("REP", {})))
    ends = {}
    for name, socket in [("pub", publisher), ("push", push), ("work", service)]:
        ends[name] = case.endpoint()
        socket.bind(ends[name])
    text = config(server, TWINS.format(**ends))
    twins = [case.bridge(text), case.bridge(text)]
    assert [publisher.recv(), publisher.recv()] == [b"\x01all", b"\x01all"]
    done, ended = [], threading.Event()

    def serve():
        poller = zmq.Poller()
        poller.register(service, zmq.POLLIN)
        while not ended.is_set():
            if poller.poll(100):
                done.append(int(service.recv_multipart()[-1]))
                service.send(b"done")

    worker = threading.Thread(target=serve, daemon=True)
    worker.start()
    sent = 0
    for _ in case.rounds(times):
        for _ in range(PER):
            publisher.send_multipart([b"all", b"id-%d" % sent, b"%d" % sent])
            push.send(b"%d" % sent)
            sent += 1
        # A killed bridge loses the messages in its PULL. The kill waits until all messages are stored, while the worker is still busy.
        while client.count("S") < 2 * sent:
            time.sleep(0.02)
        twins[1].again()
    while len(set(done)) < sent:
        time.sleep(0.02)
    ended.set()
    worker.join()
    messages = client.stored("S")
    every = [int(data[int(headers["Zmq-Parts"].split(",")[0]) :]) for subject, headers, data in messages if subject != "some"]
    some = [int(data) for subject, _, data in messages if subject == "some"]
    killed = "one of two bridges with one file"
    for promise, found in [("stored, SUB, id in the message", every), ("stored, PUSH to PULL", some)]:
        lost, doubled = compare(range(sent), found)
        assert (lost, doubled) == (0, 0), (promise, lost, doubled)
        case.row(promise, killed, case.round, sent, lost, doubled)
    lost, again = compare(range(sent), done)
    assert lost == 0, lost
    case.row("worked off: at least once", killed, case.round, sent, lost, again)
