"""Tests the calls that policies allow, warn of, refuse and wrap, in each language and with each library at the other end."""

import contextlib
import errno
import os
import stat

from programs import CLIENT, CURVE_AT, PROGRAMS, STRANGER, curve_to, wraps, write

# Effects of the ready-made policies, and of a policy that wraps all tcp sockets, on a bind or connect: A(llows it), W(arns of it),
# R(efuses it), puts C(URVE) on it.
CURVE_TO = curve_to(CLIENT)
POLICIES = ["audit", "loopback", "strict"]
TABLE = [
    ("bind", "tcp://*:*", [], "WRRC"),
    ("bind", "tcp://127.0.0.1:*", [], "AARC"),
    ("bind", "tcp://*:*", CURVE_AT, "AAAA"),
    ("bind", "ws://*:*", [], "WRRA"),
    ("bind", "ipc://{folder}/socket", [], "WAAA"),
    ("bind", "inproc://x", [], "AAAA"),
    ("connect", "tcp://127.0.0.1:*", [], "AARC"),
    ("connect", "tcp://127.0.0.1:*", CURVE_TO, "AAAA"),
    ("connect", "ipc://{folder}/socket", [], "AARA"),
]
SAYS = {"W": "warns about", "R": "refuses"}


def test_a_table_of_what_happens(start, tmp_path):
    at, to = wraps(tmp_path)
    for how, endpoint, options, letters in TABLE:
        policies = [*POLICIES, at if how == "bind" else to]
        cells = [(policy, letter, language) for policy, letter in zip(policies, letters, strict=True) for language in PROGRAMS]
        with contextlib.ExitStack() as peers:

            def begin(call, kind, endpoint, curve, **more):
                """Starts a peer that ends after the current line of the table. Each peer has its own folder for ipc sockets."""
                folder = tmp_path / str(len(os.listdir(tmp_path)))
                folder.mkdir(mode=0o755)
                return peers.enter_context(start(call, kind, endpoint.format(folder=folder), *curve, wait=False, **more))

            {"bind": binds, "connect": connects}[how](begin, endpoint, options, cells)


def binds(begin, endpoint, options, cells):
    """Starts servers under policies, and clients on both libraries for each server. All of them start in parallel."""
    servers = [begin("bind", "PULL", endpoint, options, policy=policy, language=language) for policy, _, language in cells]
    clients = []
    for server, (policy, letter, language) in zip(servers, cells):
        check(server, f"bind {endpoint} {options}", policy, letter, language)
        if letter == "R" or endpoint.startswith("inproc"):
            continue
        if endpoint.startswith("ipc") and policy in ("loopback", "strict"):
            assert stat.S_IMODE(os.stat(server.at.removeprefix("ipc://")).st_mode) == 0o600, (policy, language)
        curve = CURVE_TO if options or letter == "C" else []
        # The wheel of stock libzmq lacks ws.
        for ours in (True,) if endpoint.startswith("ws") else (True, False):
            clients.append((server, begin("connect", "PUSH", server.at.replace("0.0.0.0", "127.0.0.1"), curve, ours=ours)))
    for server, client in clients:
        client.opened()
        exchange(server, client)


def connects(begin, endpoint, options, cells):
    """Starts clients under policies for servers on both libraries, with CURVE and without. All of them start in parallel."""
    servers = {(curve, ours): begin("bind", "PULL", endpoint, CURVE_AT if curve else [], ours=ours) for curve in (True, False) for ours in (True, False)}
    for server in servers.values():
        server.opened()
    clients = []
    for policy, letter, language in cells:
        for ours in (True, False):
            server = servers[bool(options) or letter == "C", ours]
            clients.append((server, begin("connect", "PUSH", server.at, options, policy=policy, language=language), policy, letter, language))
    for server, client, policy, letter, language in clients:
        check(client, f"connect {server.at} {options}", policy, letter, language)
        if letter != "R":
            exchange(server, client)


def exchange(server, client):
    client.do("send over there")
    assert server.receive() == "received over there", (server.process.args, client.process.args)


def check(peer, call, policy, letter, language):
    """Waits for the peer's call, and asserts its result and the message of the policy."""
    peer.opened()
    about = f"{policy}: {call} {language}: {peer.failed} {peer.said()}"
    assert peer.failed == (errno.EACCES if letter == "R" else None), about
    assert (f"rule `{policy}:" in peer.said() and SAYS[letter] in peer.said()) if letter in SAYS else not peer.said(), about


def test_without_a_policy_nothing_is_different(start):
    for ours in (False, True):
        peer = start("bind", "PULL", "tcp://*:*", ours=ours)
        assert peer.failed is None and not peer.said()


def test_a_wrong_file_is_told(start, tmp_path):
    path = write(tmp_path / "wrong.toml", '[[rules]]\naction = "drop"\n')
    for language in PROGRAMS:
        peer = start("bind", "PULL", "tcp://127.0.0.1:*", policy=path, language=language)
        assert peer.failed == errno.EINVAL or language == "Node.js" and "Invalid argument" in peer.said(), language
        assert f"policy {path}: line 2: `action` must be one of" in peer.said()
    assert start("bind", "PULL", "tcp://127.0.0.1:*", policy="/nowhere").failed == errno.EINVAL


def test_users_see_their_topics(start, tmp_path):
    """A publisher without code for users sends a subscriber only the topics of its key. The subscriber uses either library."""
    at, _ = wraps(tmp_path)
    (tmp_path / "clients/one.pub").unlink()
    write(tmp_path / "clients/alice.pub", CLIENT[0] + "\n")
    write(tmp_path / "clients/bob.pub", STRANGER[0] + "\n")
    topics = '[[topics]]\nuser_id = "{}"\nsubscribe = "{}/"\n'.format
    policy = write(tmp_path / "topics.toml", at.read_text() + topics("alice", "prices") + topics("bob", "news"))
    for ours in (True, False):
        publisher = start("bind", "XPUB", "tcp://127.0.0.1:*", policy=policy)
        for keys, topic in ((CLIENT, "prices/"), (STRANGER, "news/")):
            refused = start("connect", "SUB", publisher.at, *curve_to(keys), "SUBSCRIBE=secret", ours=ours)
            subscriber = start("connect", "SUB", publisher.at, *curve_to(keys), "SUBSCRIBE=", ours=ours)
            # The publisher receives the narrowed subscription in place of the requested one.
            assert publisher.receive() == f"received \x01{topic}"
            for sent in ("secret", "prices/1", "news/1"):
                publisher.do("send " + sent)
            assert subscriber.receive() == f"received {topic}1"
            subscriber.end()
            assert publisher.receive() == f"received \x00{topic}"
            refused.end()
        publisher.end()
