"""What policies allow, warn of, refuse and wrap, in each language and with each library at the other end."""

import errno
import os
import stat

from programs import CLIENT, CURVE_AT, PROGRAMS, STRANGER, curve_to, wraps, write

# What each ready-made policy, and one that wraps all of tcp, does with a bind or a connect: A(llows it), W(arns of it), R(efuses it),
# puts C(URVE) on it.
CURVE_TO = curve_to(CLIENT)
POLICIES = ["audit", "loopback", "strict", "wrap"]
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
SAYS = {"W": "warns of", "R": "refuses"}


def test_a_table_of_what_happens(start, tmp_path):
    at, to = wraps(tmp_path)
    for how, endpoint, options, letters in TABLE:
        servers = {}
        for policy, letter in zip(POLICIES, letters):
            for language in PROGRAMS:
                curve = bool(options) or letter == "C"
                file = {"bind": at, "connect": to}[how] if policy == "wrap" else policy
                if how == "bind":
                    binds(start, fresh(endpoint, tmp_path), options, file, letter, language, curve)
                    continue
                for ours in (True, False):
                    # One server for all clients.
                    if (curve, ours) not in servers:
                        servers[curve, ours] = start("bind", "PULL", fresh(endpoint, tmp_path), *(CURVE_AT if curve else []), ours=ours)
                    connects(start, servers[curve, ours], options, file, letter, language)
        for server in servers.values():
            server.end()


def fresh(endpoint, tmp_path):
    """The endpoint, with a new folder that others may enter."""
    folder = tmp_path / str(len(os.listdir(tmp_path)))
    folder.mkdir(mode=0o755)
    return endpoint.format(folder=folder)


def binds(start, endpoint, options, policy, letter, language, curve):
    with start("bind", "PULL", endpoint, *options, policy=policy, language=language) as server:
        check(server, f"bind {endpoint} {options}", policy, letter, language)
        if letter == "R" or endpoint.startswith("inproc"):
            return
        if endpoint.startswith("ipc") and policy in ("loopback", "strict"):
            assert stat.S_IMODE(os.stat(endpoint.removeprefix("ipc://")).st_mode) == 0o600, (policy, language)
        # The wheel of stock libzmq lacks ws.
        for ours in (True,) if endpoint.startswith("ws") else (True, False):
            with start("connect", "PUSH", server.at.replace("0.0.0.0", "127.0.0.1"), *(CURVE_TO if curve else []), ours=ours) as client:
                client.do("send over there")
                assert server.receive() == "received over there", (policy, endpoint, options, language, ours)


def connects(start, server, options, policy, letter, language):
    with start("connect", "PUSH", server.at, *options, policy=policy, language=language) as client:
        check(client, f"connect {server.at} {options}", policy, letter, language)
        if letter != "R":
            client.do("send over there")
            assert server.receive() == "received over there", (policy, server.at, options, language)


def check(peer, call, policy, letter, language):
    """Asserts what the call returned and what the policy said."""
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
    """A publisher that knows no users sends subscribers, on either library, only the topics of their keys."""
    at, _ = wraps(tmp_path)
    (tmp_path / "clients/one").unlink()
    write(tmp_path / "clients/alice.pub", CLIENT[0] + "\n")
    write(tmp_path / "clients/bob.pub", STRANGER[0] + "\n")
    topics = '[[topics]]\nuser_id = "{}"\nsubscribe = "{}/"\n'.format
    policy = write(tmp_path / "topics.toml", at.read_text() + topics("alice", "prices") + topics("bob", "news"))
    for ours in (True, False):
        publisher = start("bind", "XPUB", "tcp://127.0.0.1:*", policy=policy)
        for keys, topic in ((CLIENT, "prices/"), (STRANGER, "news/")):
            refused = start("connect", "SUB", publisher.at, *curve_to(keys), "SUBSCRIBE=secret", ours=ours)
            subscriber = start("connect", "SUB", publisher.at, *curve_to(keys), "SUBSCRIBE=", ours=ours)
            # The publisher hears of the narrowed subscription, not of the refused one.
            assert publisher.receive() == f"received \x01{topic}"
            for sent in ("secret", "prices/1", "news/1"):
                publisher.do("send " + sent)
            assert subscriber.receive() == f"received {topic}1"
            subscriber.end()
            assert publisher.receive() == f"received \x00{topic}"
            refused.end()
        publisher.end()
