"""Tests that a peer cannot harm the other peers, and that changed logins take effect."""

import signal
import time

import zmq
from programs import Bridge, config
from work import sock

STORED = """
name = "in"
promise = "stored"
socket = "{kind}"
bind = "{endpoint}"
stream = "S"
subject = "s.>"
window = 16
{more}
"""


def ask(case, endpoint, *parts):
    """Sends a message on a new REQ socket, and returns the answer of a route `stored`."""
    peer = sock(case, "REQ", endpoint)
    peer.send_multipart(parts)
    answer = peer.recv_multipart()
    peer.close()
    return answer


def test_refused_message_stops_nobody(case):
    """The bridge refuses an unknown subject, too many parts and an overlong id, and still stores the messages of other peers."""
    server, client = case.nats()
    client.make("S", ["s.eu.>"])
    endpoint = case.endpoint()
    bridge = case.bridge(config(server, STORED.format(kind="ROUTER", endpoint=endpoint, more="id_part = 1")))
    for parts, why in [
        ((b"us.a", b"1"), b"does not include the subject s.us.a"),
        ((b"eu.a", *[b"x"] * 5000), b"more than 4096 parts"),
        ((b"eu.a", b"i" * 70_000), b"longer than 1024 bytes"),
    ]:
        answer = ask(case, endpoint, *parts)
        assert answer[0] == b"refused" and why in answer[1], answer
        assert ask(case, endpoint, b"eu.a", b"good" + why)[0] == b"stored"
    # A different message with a known id is refused.
    assert ask(case, endpoint, b"eu.a", b"order-42", b"junk")[0] == b"stored"
    assert ask(case, endpoint, b"eu.a", b"order-42", b"junk")[0] == b"stored"
    answer = ask(case, endpoint, b"eu.a", b"order-42", b"1000 shares")
    assert answer == [b"refused", b"the stream has another message with its id"], answer
    bridge.reaches("in", refused=4, done=5)
    assert client.count("S") == 4


def test_refused_message_of_a_push_stops_nobody(case):
    server, client = case.nats()
    client.make("S", ["s.>"])
    endpoint = case.endpoint()
    bridge = case.bridge(config(server, STORED.format(kind="PULL", endpoint=endpoint, more="")))
    bad, good = sock(case, "PUSH", endpoint), sock(case, "PUSH", endpoint)
    bad.send_multipart([b"a", *[b"x"] * 40_000])
    for number in range(100):
        good.send_multipart([b"a", b"%d" % number])
    bridge.reaches("in", done=100, refused=1)
    assert bridge.end() == 0


def test_worker_cannot_answer_for_another(case):
    """An answer to another worker's job acknowledges no message."""
    server, client = case.nats()
    client.make("S", ["s.>"])
    endpoint = case.endpoint()
    work = f"""
name = "out"
promise = "worked off"
socket = "DEALER"
bind = "{endpoint}"
stream = "S"
subject = "s.jobs"
consumer = "workers"
answer_within = "5s"
"""
    bridge = case.bridge(config(server, work))
    hostile, good = sock(case, "ROUTER", endpoint), sock(case, "ROUTER", endpoint)

    jobs = {hostile: [], good: []}
    poller = zmq.Poller()
    for worker in jobs:
        poller.register(worker, zmq.POLLIN)
    while not all(jobs.values()):  # The worker that connects first gets all jobs until the other one has connected.
        client.run(client.streams.publish("s.jobs", b"job"))
        for worker, _ in poller.poll():
            jobs[worker].append(worker.recv_multipart())
    first = jobs[hostile][0]
    assert all(len(job[1]) == 16 for job in jobs[hostile] + jobs[good]), "tickets cannot be guessed"
    near = int.from_bytes(first[1], "big")
    for number in range(near - 100, near + 100):
        if number != near:
            hostile.send_multipart([first[0], (number % 2**128).to_bytes(16, "big"), b"", b"done"])
    for job in jobs[good]:
        good.send_multipart([job[0], job[1], b"", b"done"])
    bridge.reaches("out", done=len(jobs[good]))
    for job in jobs[hostile]:
        hostile.send_multipart([job[0], job[1], b"", b"done"])
    done = len(jobs[hostile] + jobs[good])
    bridge.reaches("out", done=done)
    assert bridge.numbers["out"]["done"] == done


ASKED_FOR = """
name = "out"
promise = "worked off"
socket = "ROUTER"
bind = "{endpoint}"
stream = "S"
subject = "s.jobs"
consumer = "workers"
answer_within = "1h"
"""


def test_worker_that_has_gone_holds_no_job(case):
    """A bridge fetches no job while all workers are disconnected. If a worker disconnects, another worker gets its job at once.
    `answer_within` is longer than the time of this case, so it cannot cause the redelivery."""
    server, client = case.nats()
    client.make("S", ["s.>"])
    deserted, endpoint = case.endpoint(), case.endpoint()
    case.bridge(config(server, ASKED_FOR.format(endpoint=deserted)))
    for number in range(3):
        # The context ends after its only message has been sent.
        with zmq.Context() as context, context.socket(zmq.DEALER) as ghost:
            ghost.connect(deserted)
            ghost.send(b"")
    sent = {b"job %d" % number for number in range(5)}
    for job in sent:
        client.run(client.streams.publish("s.jobs", job))
    bridge = case.keep(Bridge(case.write(config(server, ASKED_FOR.format(endpoint=endpoint)), "other.toml")))

    dying = sock(case, "REQ", endpoint)
    dying.send(b"")
    held = dying.recv()
    dying.close()

    worker, done = sock(case, "REQ", endpoint), []
    worker.send(b"")
    while set(done) != sent:
        done.append(worker.recv())
        worker.send(b"done")
    assert held in done
    bridge.reaches("out", done=5)
    assert bridge.numbers["out"]["again"] >= 1
    info = client.run(client.streams.consumer_info("S", "workers"))
    assert (info.num_ack_pending, info.num_pending) == (0, 0)


def test_subscriber_with_many_topics_shuts_nobody_out(case):
    """Above `max_subscriptions` the bridge subscribes to the whole route, until the subscriber with too many topics disconnects."""
    server, client = case.nats()
    endpoint = case.endpoint()
    route = f"""
name = "out"
promise = "as it comes"
socket = "PUB"
bind = "{endpoint}"
subject = "s.>"
max_subscriptions = 20
"""
    bridge = case.bridge(config(server, route))

    def receives(subscriber, subject, topic):
        while True:  # The subscription may still be in transit.
            client.run(client.nats.publish(subject, b"1"))
            while subscriber.poll(20):
                if subscriber.recv_multipart() == [topic, b"1"]:
                    return

    early = sock(case, "SUB", endpoint, [b"early."])
    receives(early, "s.early.a", b"early.a")
    hostile = sock(case, "SUB", endpoint, [b"t%d." % number for number in range(1000)])
    bridge.until(lambda: any("`max_subscriptions` (20)" in line for line in bridge.said))
    receives(hostile, "s.t999.a", b"t999.a")
    late = sock(case, "SUB", endpoint, [b"late."])
    receives(late, "s.late.a", b"late.a")
    subjects = server.bridges_subjects()
    assert len(subjects) == 21 and {"s.>", "s.early.>"} <= set(subjects), subjects
    # If two subscriptions match a message, it arrives once.
    while early.poll(0):
        early.recv_multipart()
    for number in range(100):
        client.run(client.nats.publish("s.early.b", b"%d" % number))
    found = []
    while len(found) < 100:
        topic, body = early.recv_multipart()
        if topic == b"early.b":
            found.append(int(body))
    assert found == list(range(100))

    hostile.close()
    while server.bridges_subjects() != ["s.early.>", "s.late.>"]:
        time.sleep(0.02)
    receives(early, "s.early.c", b"early.c")
    receives(late, "s.late.c", b"late.c")
    assert bridge.end() == 0


def test_rotated_password_counts_without_a_restart(case):
    """The password changes on the server first and in the file later. Until then, the bridge prints statistics even with a changed file."""
    login = 'authorization {{ user: "bridge", password: "{}" }}\n'
    server, client = case.nats(settings=login.format("old"), user="bridge", password="old")
    client.make("S", ["s.>"])
    client.end()
    endpoint = case.endpoint()
    secret = case.write("old\n", "password")
    text = config(server, STORED.format(kind="ROUTER", endpoint=endpoint, more=""))
    text = text.replace("\n\n", f'\nuser = "bridge"\npassword_file = "{secret}"\n\n', 1)
    bridge = case.bridge(text)
    assert ask(case, endpoint, b"a", b"1")[0] == b"stored"
    server.settings = login.format("new")
    server.again()
    bridge.until(lambda: any("authorization" in line for line in bridge.said))
    waiting = sock(case, "REQ", endpoint)
    waiting.send_multipart([b"a", b"2"])
    case.write(text + "\n# touched\n")
    bridge.process.send_signal(signal.SIGHUP)
    # The bridge prints statistics while the changed file waits for NATS.
    bridge.reaches("in", received=2)
    case.write("new\n", "password")
    assert waiting.recv_multipart()[0] == b"stored"
    bridge.until(lambda: any("reloaded the file" in line for line in bridge.said))
    assert bridge.end() == 0
