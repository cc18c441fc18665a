"""Counts lost and doubled messages while one program is killed with SIGKILL repeatedly under load.

Each case adds a row to the final table. The program is killed after a number of messages, drawn with a fixed seed.
"""

import asyncio
import random
import subprocess
import sys
import threading

import pytest
import zmq
from programs import config
from work import HERE, STORED, WORK, answered, compare, numbers, pusher, work_force

REPLAY = """
name = "out"
promise = "replay"
socket = "PUB"
bind = "{endpoint}"
stream = "S"
subject = "jobs"
start = "first"
"""


def stored_server(case, kills, servers=1):
    """PULL to a stream. If the server or the leader of three is killed, the bridge survives and stores each message once."""
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
    case.row("stored, PUSH to PULL", "NATS server" if servers == 1 else "leader of three", case.round, sent, lost, doubled)


def test_kill_server_stored(case, kills):
    stored_server(case, kills)


@pytest.mark.long
def test_kill_leader_stored(case, kills):
    stored_server(case, kills, 3)


def test_kill_bridge_answered(case, kills):
    """REQ to a stream with an id in each message. If the bridge is killed, each answered message is stored once."""
    server, client = case.nats()
    client.make("S", ["jobs"])
    endpoint, random_step, per, sent = case.endpoint(), random.Random(2), 60, 0
    bridge = case.bridge(config(server, STORED.format(socket="ROUTER", endpoint=endpoint, more="id_part = 0")))

    def ask(number):
        """Repeats the request on a new socket until an answer arrives, as robust clients do."""
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
    case.row("stored, REQ to ROUTER, id in the message", "bridge", case.round, sent, lost, doubled)


def test_kill_bridge_stored(case, kills):
    """PUSH to a stream. If the bridge is killed, each acknowledged message is stored once; messages in sockets are lost."""
    server, client = case.nats()
    client.make("S", ["jobs"])
    endpoint, random_step, per, sent = case.endpoint(), random.Random(3), 300, 0
    bridge = case.bridge(config(server, STORED.format(socket="PULL", endpoint=endpoint, more="")))
    push = pusher(case, endpoint)
    for _ in case.rounds(kills):
        step = random_step.randrange(1, per)
        for at in range(per):
            if at == step:
                # Kill the bridge while it forwards messages.
                bridge.reaches("in", received=1)
                done = bridge.numbers["in"]["done"]
                before = client.count("S")
                assert before >= done, (before, done)
                bridge.numbers.clear()
                bridge.again()
            push.send(b"%d" % sent)
            sent += 1
    # A message sent after the last kill arrives.
    have = client.count("S")
    bridge.numbers.clear()
    push.send(b"%d" % sent)
    sent += 1
    while sent - 1 not in numbers(client.stored("S")[have:] if have else client.stored("S")):
        bridge.reaches("in", done=1)
    found = numbers(client.stored("S"))
    lost, doubled = compare(range(sent), found)
    assert doubled == 0, doubled
    # A round loses at most the messages that it sent before the kill.
    assert lost <= case.round * per, lost
    case.row("stored, PUSH to PULL: from the acknowledgement on", "bridge", case.round, sent, f"{lost} that lay in sockets", doubled)


@pytest.mark.long
def test_kill_publisher_stored(case, kills):
    """If a pushing program is killed, the stream has its first messages once each, without a gap."""
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
    # The message of a living program still arrives. Messages of the killed programs may come before it or after it.
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
    case.row("stored, PUSH to PULL: no gap in what arrived", "publisher", case.round, sent, lost, doubled)


def worked_off(case, kills, what, servers=1):
    """From a stream to workers. Each message is worked off, although a worker, the bridge or a server is killed."""
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
        # These messages keep the workers busy while a message waits for its redelivery.
        more()
        least = sent - per - random_step.randrange(1, per)
        bridge.until(lambda: workers.count() >= least)
        if what == "worker":
            workers.kill(random_step.randrange(len(workers)))
            workers.add()
        elif what == "bridge":
            bridge.again()
        else:
            victim = client.leader("S") if servers > 1 else 0
            server.again(victim if victim is not None else 0)
    bridge.until(lambda: workers.count() >= sent)
    lost, doubled = compare(range(sent), workers.done())
    assert lost == 0, lost
    named = {"worker": "worker", "bridge": "bridge", "server": "NATS server" if servers == 1 else "leader of three"}[what]
    case.row("worked off: at least once", named, case.round, sent, lost, doubled)


def test_kill_worker_worked_off(case, kills):
    worked_off(case, kills, "worker")


def test_kill_bridge_worked_off(case, kills):
    worked_off(case, kills, "bridge")


@pytest.mark.long
def test_kill_server_worked_off(case, kills):
    worked_off(case, kills, "server")


def test_kill_leader_worked_off(case, kills):
    worked_off(case, kills, "server", 3)


def test_kill_subscriber_replayed(case, kills):
    """From a stream to subscribers. A running subscriber receives all messages. A killed one has no gap before its end."""
    server, client = case.nats()
    client.make("S", ["jobs"])
    endpoint, random_step, sent = case.endpoint(), random.Random(6), 0
    case.bridge(config(server, REPLAY.format(endpoint=endpoint)))
    stays = case.keep(zmq.Context.instance().socket(zmq.SUB))
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
    case.row("replay: no gap for one that stays", "other subscribers", case.round, sent, lost, doubled)


def lines(log):
    """Returns the numbers of the complete lines in a log."""
    try:
        with open(log) as file:
            return [int(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
