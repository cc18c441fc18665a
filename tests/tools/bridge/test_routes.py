"""Tests routes without faults, and errors in the configuration file of a bridge."""

import json
import os
import signal
import ssl
import subprocess
import time

import trustme
import zmq
from programs import TAUT, Bridge, config
from work import sock


def fails(case, text, *expected, arguments=()):
    """Asserts that the bridge refuses a file with a message that has these words, and exits with 1."""
    path = case.write(text)
    ended = subprocess.run([TAUT, "bridge", path, *arguments], capture_output=True, text=True)
    assert ended.returncode == 1, ended
    for words in expected:
        assert words in ended.stderr, (words, ended.stderr)
    assert "secret" not in ended.stderr, ended.stderr


PUB_OUT = """
name = "out"
promise = "as it comes"
socket = "SUB"
bind = "{endpoint}"
subject = "prices.>"
separator = "/"
"""

PUB_IN = """
name = "in"
promise = "as it comes"
socket = "PUB"
bind = "{endpoint}"
subject = "prices.>"
separator = "/"
"""


def test_topics_and_parts(case):
    """SUB to NATS to PUB. Topics and parts arrive unchanged."""
    server, client = case.nats()
    out, back = case.endpoint(), case.endpoint()
    bridge = case.bridge(config(server, PUB_OUT.format(endpoint=out), PUB_IN.format(endpoint=back)))
    subscriber = sock(case, "SUB", back, [b"", b"EUR/"])
    publisher = sock(case, "XPUB", out)
    assert publisher.recv() == b"\x01"
    seen = []

    async def watch():
        async def note(message):
            seen.append((message.subject, dict(message.headers or {}), message.data))

        await client.nats.subscribe("prices.>", cb=note)
        await client.nats.flush()

    client.run(watch())
    while len(server.bridges_subjects()) < 2:
        time.sleep(0.02)
    messages = [
        [b"EUR/USD", b"1.08"],
        [b"EUR/USD"],
        [b"EUR/USD", b""],
        [b"EUR/USD", b"a", b"", b"b" * 70000],
        [b"", b"no topic"],
        [b"//", b"only separators"],
        [bytes(range(256)), b"any bytes"],
        [b"a.b*c>d e%41", b"what NATS does not take"],
    ]
    for message in messages:
        publisher.send_multipart(message)
    for message in messages:
        got = subscriber.recv_multipart()
        assert got == message, (got, message)
    bridge.reaches("in", done=len(messages))
    bridge.reaches("out", done=len(messages))
    client.run(client.nats.flush())
    assert seen[0] == ("prices.EUR.USD", {"Zmq-Peer": seen[0][1].get("Zmq-Peer")}, b"1.08"), seen[0]
    assert seen[0][1]["Zmq-Peer"].startswith("127.0.0.1"), seen[0]
    assert [headers.get("Zmq-Parts") for _, headers, _ in seen[:4]] == [None, "none", None, "1,0,70000"], seen[:3]
    assert seen[4][0] == "prices.%", seen[4]


def test_subscriptions_travel(case):
    """The bridge subscribes in NATS to the topics of its subscribers, and unsubscribes when they do."""
    server, client = case.nats()
    back = case.endpoint()
    bridge = case.bridge(config(server, PUB_IN.format(endpoint=back), PUB_IN.replace("in", "tokens", 1).format(endpoint=case.endpoint()) + "whole_tokens = true"))

    def until(subjects):
        while server.bridges_subjects() != subjects:
            time.sleep(0.02)

    until([])
    subscriber = sock(case, "SUB", back, [b"EUR/"])
    until(["prices.EUR.>"])
    subscriber.setsockopt(zmq.SUBSCRIBE, b"USD/CHF")
    until(["prices.EUR.>", "prices.USD.>"])
    subscriber.setsockopt(zmq.UNSUBSCRIBE, b"EUR/")
    until(["prices.USD.>"])
    tokens = sock(case, "SUB", bridge_endpoint(bridge, "tokens"), [b"USD/CHF"])
    until(["prices.USD.>", "prices.USD.CHF", "prices.USD.CHF.>"])

    async def publish():
        for subject in ["prices.USD.CAD", "prices.USD.CHF", "prices.USD.CHF.spot", "prices.EUR.CHF"]:
            await client.nats.publish(subject, b"x")
        await client.nats.flush()

    client.run(publish())
    assert [subscriber.recv_multipart()[0] for _ in range(2)] == [b"USD/CHF", b"USD/CHF/spot"]
    # Both subscriptions deliver these messages.
    assert {tokens.recv_multipart()[0] for _ in range(2)} == {b"USD/CHF", b"USD/CHF/spot"}
    bridge.reaches("in", received=3, unwanted=1, done=2)
    bridge.reaches("tokens", received=2, unwanted=0, done=2)
    subscriber.close()
    tokens.close()
    until([])


def bridge_endpoint(bridge, route):
    """Returns the endpoint of a route."""
    text = open(bridge.config).read().split(f'name = "{route}"')[1]
    return text.split('bind = "')[1].split('"')[0]


def test_work_is_handed_out(case):
    """PULL to NATS to PUSH. Dropped messages are counted."""
    server, client = case.nats()
    pull, push = case.endpoint(), case.endpoint()
    into = f'name = "out"\npromise = "as it comes"\nsocket = "PULL"\nbind = "{pull}"\nsubject = "jobs"'
    back = f'name = "in"\npromise = "as it comes"\nsocket = "PUSH"\nbind = "{push}"\nsubject = "jobs"\nqueue = 10'
    bridge = case.bridge(config(server, into, back))
    while server.bridges_subjects() != ["jobs"]:
        time.sleep(0.02)
    sender = sock(case, "PUSH", pull)
    for at in range(100):
        sender.send_multipart([b"%d" % at, b"x"])
    # Without a worker, one request waits for a worker and ten wait in the queue.
    bridge.reaches("out", done=100)
    bridge.reaches("in", dropped=89)
    assert bridge.numbers["in"]["done"] == 0, bridge.numbers
    worker = sock(case, "PULL", push)
    bridge.until(lambda: bridge.numbers["in"]["done"] + bridge.numbers["in"]["dropped"] == 100)
    done = bridge.numbers["in"]["done"]
    assert done in (10, 11), bridge.numbers
    came = [worker.recv_multipart() for _ in range(done)]
    assert came[:10] == [[b"%d" % at, b"x"] for at in range(10)], came
    # The last one is the first message that arrived after the queue had room again.
    assert all(int(last) > 9 for last, _ in came[10:]), came
    assert bridge.end() == 0


STORED = """
name = "in"
promise = "stored"
socket = "{socket}"
bind = "{endpoint}"
stream = "ORDERS"
subject = "orders.{subject}"
{more}
"""

STREAMS = '\n[[streams]]\nname = "ORDERS"\nsubjects = ["orders.>"]\n'


def test_senders_feel_a_slow_stream(case):
    """If the window is full, the bridge stops reading and a PUSH blocks. Once the stream is back, each message arrives once."""
    server, client = case.nats()
    endpoint = case.endpoint()
    bridge = case.bridge(config(server, STORED.format(socket="PULL", endpoint=endpoint, subject="new", more="window = 10\nhwm = 10")) + STREAMS)
    push = sock(case, "PUSH", endpoint, SNDHWM=10, SNDTIMEO=2000)
    push.send(b"0")
    bridge.reaches("in", done=1)
    server.servers[0].send_signal(signal.SIGSTOP)
    sent = 1
    # Large messages fill the kernel's buffers quickly.
    while True:
        try:
            push.send(b"%d " % sent + b"x" * 100_000)
            sent += 1
        except zmq.Again:
            break
    bridge.reaches("in", waiting=10)
    numbers = bridge.numbers["in"]
    assert numbers["received"] == numbers["done"] + 10, numbers
    server.servers[0].send_signal(signal.SIGCONT)
    bridge.reaches("in", done=sent)
    stored = [int(data.split()[0]) for _, _, data in client.stored("ORDERS")]
    # A message that the bridge published again may be out of order.
    assert (sorted(stored) if bridge.numbers["in"]["again"] else stored) == list(range(sent))


def test_ids_are_stored_once(case):
    """REQ and DEALER receive the number in the stream. A repeated id is stored once, even after the bridge restarts."""
    server, client = case.nats()
    endpoint = case.endpoint()
    bridge = case.bridge(config(server, STORED.format(socket="ROUTER", endpoint=endpoint, subject=">", more="id_part = 1")) + STREAMS)
    request = sock(case, "REQ", endpoint)
    for number, (topic, id_, answer) in enumerate([(b"a", b"1", b"1"), (b"a", b"2 \r\n", b"2"), (b"a", b"1", b"1")]):
        request.send_multipart([topic, id_, b"body"])
        assert request.recv_multipart() == [b"stored", answer], number
    request.send_multipart([b"no id"])
    assert request.recv_multipart() == [b"refused", b"it has no part with its id"]
    bridge.again()
    dealer = sock(case, "DEALER", endpoint)
    for id_ in [b"1", b"3", b"2 \r\n"]:
        dealer.send_multipart([b"a", id_, b"body"])
    assert [dealer.recv_multipart() for _ in range(3)] == [[b"stored", number] for number in (b"1", b"3", b"2")]
    dealer.send_multipart([b"a", b"4", b"x" * 2_000_000])
    answer = dealer.recv_multipart()
    assert answer[0] == b"refused" and b"ayload" in answer[1], answer
    assert client.count("ORDERS") == 3


def test_late_subscribers(case):
    """A subscriber gets a stream from its beginning, from a number or from a time, and then new messages."""
    server, client = case.nats()
    client.make("ORDERS", ["orders.>"])
    acks = [client.run(client.streams.publish(f"orders.{at}", b"%d" % at)) for at in range(2000)]
    assert acks[-1].seq == 2000
    time = client.run(client.streams.get_msg("ORDERS", 1501)).time
    starts = [('"first"', 0), ("1001", 1000), (f'"{time:%Y-%m-%dT%H:%M:%S.%fZ}"', 1500)]
    endpoints = [case.endpoint() for _ in starts]
    route = 'name = "r{at}"\npromise = "replay"\nsocket = "PUB"\nbind = "{endpoint}"\nstream = "ORDERS"\nsubject = "orders.>"\nstart = {start}\nsequence = true'
    case.bridge(config(server, *[route.format(at=at, endpoint=endpoint, start=start) for at, (endpoint, (start, _)) in enumerate(zip(endpoints, starts))]))
    for endpoint, (_, first) in zip(endpoints, starts):
        # The next subscriber gets the stream again, once the bridge has noticed that the last one disconnected.
        for _ in range(2):
            subscriber, message = None, None
            while message is None:
                subscriber = sock(case, "SUB", endpoint, [b""], RCVTIMEO=1000)
                try:
                    message = subscriber.recv_multipart()
                except zmq.Again:
                    subscriber.close()
            subscriber.setsockopt(zmq.RCVTIMEO, -1)
            for at in range(first, 2000):
                assert message == [b"%d" % at, (at + 1).to_bytes(8, "big"), b"%d" % at], (at, message)
                if at < 1999:
                    message = subscriber.recv_multipart()
            subscriber.close()
    subscriber = None
    while subscriber is None:
        subscriber = sock(case, "SUB", endpoints[0], [b"200"], RCVTIMEO=1000)
        try:
            assert subscriber.recv_multipart()[0] == b"200"
        except zmq.Again:
            subscriber.close()
            subscriber = None
    subscriber.setsockopt(zmq.RCVTIMEO, -1)
    client.run(client.streams.publish("orders.2000", b"new"))
    assert subscriber.recv_multipart() == [b"2000", (2001).to_bytes(8, "big"), b"new"]


def test_workers_of_both_kinds(case):
    """An answer of a REP or REQ worker acknowledges the message. An unanswered message goes to another worker, at once if a REQ leaves."""
    server, client = case.nats()
    endpoint = case.endpoint()
    work = """
name = "work"
promise = "worked off"
socket = "{socket}"
bind = "{endpoint}"
stream = "ORDERS"
subject = "orders.>"
consumer = "crew"
answer_within = "{within}"
"""
    client.make("ORDERS", ["orders.>"])
    for kind, socket, within in [("REP", "DEALER", "1s"), ("REQ", "ROUTER", "1h")]:
        bridge = case.bridge(config(server, work.format(endpoint=endpoint, socket=socket, within=within)))
        first = sock(case, kind, endpoint)
        if kind == "REQ":
            first.send(b"ready")
        client.run(client.streams.publish("orders.a", kind.encode()))
        assert first.recv_multipart() == [b"a", kind.encode()]
        # The first worker disconnects without an answer, so the next worker gets the message.
        first.close()
        second = sock(case, kind, endpoint)
        if kind == "REQ":
            second.send(b"ready")
        assert second.recv_multipart() == [b"a", kind.encode()]
        second.send(b"done")
        bridge.reaches("work", done=1, again=1)
        second.close()
        bridge.end()
    info = client.run(client.streams.consumer_info("ORDERS", "crew"))
    assert (info.num_pending, info.num_ack_pending) == (0, 0), info


def test_changes_without_loss(case):
    """A changed file is loaded: routes are added and removed, and a PULL keeps its socket and its queued messages."""
    server, client = case.nats()
    endpoint = case.endpoint()

    def text(window, *more):
        return config(server, STORED.format(socket="PULL", endpoint=endpoint, subject="new", more=f"window = {window}"), *more) + STREAMS

    bridge = case.bridge(text(10))
    push, sent, other = sock(case, "PUSH", endpoint), 0, case.endpoint()
    added = f'name = "more"\npromise = "as it comes"\nsocket = "PULL"\nbind = "{other}"\nsubject = "more"'
    for change in range(10):
        for _ in range(500):
            push.send(b"%d" % sent)
            sent += 1
        read_again = sum("reloaded the file" in line for line in bridge.said)
        case.write(text(11 + change, *([added] if change % 2 else [])))
        if change % 3:
            bridge.process.send_signal(signal.SIGHUP)
        bridge.until(lambda: sum("reloaded the file" in line for line in bridge.said) > read_again)
    read_again = len(bridge.said)
    case.write(text(0))
    bridge.until(lambda: len(bridge.said) > read_again)
    assert "`window` must be from 1 to" in bridge.said[-1] and "line 11:" in bridge.said[-1], bridge.said
    bridge.reaches("in", done=sent)
    assert [int(data) for _, _, data in client.stored("ORDERS")] == list(range(sent))


def test_ends_without_nats(case):
    """A bridge exits at the first SIGTERM while NATS is down."""
    server, _ = case.nats()
    into = f'name = "out"\npromise = "as it comes"\nsocket = "PULL"\nbind = "{case.endpoint()}"\nsubject = "jobs"'
    bridge = case.bridge(config(server, into))
    server.kill()
    assert bridge.end() == 0


def test_observed(case):
    """With TAUT_OBSERVE=1 the tools show each route with its statistics."""
    server, client = case.nats()
    endpoint, place = case.endpoint(), {"XDG_RUNTIME_DIR": case.folder, "TAUT_COUNTERS": f"{case.folder}/tautline"}
    text = config(server, STORED.format(socket="PULL", endpoint=endpoint, subject="new", more="")) + STREAMS
    bridge = case.bridge(text, TAUT_OBSERVE="1", **place)
    push, pid = sock(case, "PUSH", endpoint), str(bridge.process.pid)
    for _ in range(5):
        push.send(b"x")
    bridge.reaches("in", done=5)

    def taut(*arguments):
        return subprocess.run([TAUT, *arguments], capture_output=True, text=True, check=True, env={**os.environ, **place}).stdout

    def route():
        routes = json.loads(taut("show", pid, "--json"))["routes"]
        return routes[0] if routes else {"done": 0}

    # The observed state is updated four times a second. The first update may come before the route exists.
    while route()["done"] < 5:
        time.sleep(0.05)
    shown = route()
    assert (shown["name"], shown["promise"], shown["received"], shown["waiting"]) == ("in", "stored", 5, 0), shown
    assert "route in (stored): 5 received, 5 done, 0 waiting" in taut("show", pid)
    assert "1 route" in taut("ps")
    assert 'route="in",promise="stored"} 5' in taut("metrics")
    # The socket stays open with a changed route. The new route replaces the old one in the output.
    case.write(text.replace('subject = "orders.new"', 'subject = "orders.new"\nwindow = 7'))
    bridge.until(lambda: any("reloaded the file" in line for line in bridge.said))
    push.send(b"x")
    while route()["done"] < 6:
        time.sleep(0.05)
    assert len(json.loads(taut("show", pid, "--json"))["routes"]) == 1


def test_faults_name_their_line(case):
    """Wrong credentials, an unknown stream, an endpoint in use and a wrong file print the line and the reason, and exit with 1."""
    server, client = case.nats(settings='authorization { user: "bridge", password: "right" }\n', user="bridge", password="right")
    route = STORED.format(socket="PULL", endpoint=case.endpoint(), subject="new", more="")
    password = case.write("secret-but-wrong\n", "password")
    login = config(server, route).replace("\n\n", f'\nuser = "bridge"\npassword_file = "{password}"\n\n', 1)
    fails(case, login, "line 3: NATS refused the login")
    fails(case, config(server, route), "line 2: NATS refused the login")
    case.write("right\n", "password")
    fails(case, login, "line 11: JetStream: stream not found")
    taken = sock(case, "PULL")
    port = taken.bind_to_random_port("tcp://127.0.0.1")
    client.make("ORDERS", ["orders.>"])
    fails(case, login.replace(route.split('bind = "')[1].split('"')[0], f"tcp://127.0.0.1:{port}"), "line 7: ", "the address is in use")
    fails(case, login.replace("PULL", "PULLL"), "line 9: ", "PULL, SUB, ROUTER")
    fails(case, login.replace("PULL", "PULLL"), "line 9: ", arguments=["--check"])
    good = subprocess.run([TAUT, "bridge", case.write(login), "--check"], capture_output=True, text=True)
    assert good.returncode == 0 and "1 route\n" in good.stdout, good
    assert case.bridge(login).end() == 0


def test_tls(case):
    """Both sides have certificates. The bridge refuses a certificate of another authority, without a fallback to plain text."""
    authority, stranger = trustme.CA(), trustme.CA()
    files = {}
    for name, blob in [
        ("ca", authority.cert_pem),
        ("stranger", stranger.cert_pem),
        *[(f"{who}.{part}", blob) for who in ("server", "client") for part, blob in identity(authority, who)],
    ]:
        files[name] = f"{case.folder}/{name}.pem"
        blob.write_to_path(files[name])
    secured = f'tls {{ cert_file: "{files["server.cert"]}", key_file: "{files["server.key"]}", ca_file: "{files["ca"]}", verify: true }}\n'
    context = ssl.create_default_context(cafile=files["ca"])
    context.load_cert_chain(files["client.cert"], files["client.key"])
    server, client = case.nats(settings=secured, tls=context)
    endpoint = case.endpoint()
    text = config(server, STORED.format(socket="PULL", endpoint=endpoint, subject="new", more="")) + STREAMS
    with_tls = '[nats.tls]\nca = "{ca}"\ncertificate = "{client.cert}"\nkey = "{client.key}"\n'
    for name, path in files.items():
        with_tls = with_tls.replace("{" + name + "}", path)
    bridge = case.bridge(text + "\n" + with_tls)
    sock(case, "PUSH", endpoint).send(b"hello")
    bridge.reaches("in", done=1)
    assert client.stored("ORDERS")[0][2] == b"hello"
    bridge.end()
    # The fault may be temporary, as a certificate can be renewed. The bridge reports it and retries.
    refused = case.keep(Bridge(case.write(text + "\n" + with_tls.replace(files["ca"], files["stranger"])), wait=False))
    refused.until(lambda: any("cannot connect to NATS" in line for line in refused.said))


def identity(authority, name):
    issued = authority.issue_cert("127.0.0.1", common_name=name)
    return [("cert", issued.cert_chain_pems[0]), ("key", issued.private_key_pem)]
