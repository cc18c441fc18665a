"""Names in place of endpoints, as programs of users see them: unmodified pyzmq on Tautline, with TAUT_NAMES.

cases.py LIBRARY FOLDER TAUT NATS_SERVER [WORD...]: TAUT and NATS_SERVER may be empty.
"""

import pathlib
import shutil
import socket
import sys

from harness import Peer, replace, run, until

Peer.library, FOLDER, TAUT, NATS = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
NAME_EVENT = 0x20000000


def fresh(name):
    """An empty folder. Its path is short, for `ipc`."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def names_file(name, text="", folder=True):
    place = fresh(name)
    if folder:
        text += f'\n[folder]\npath = "{place}/f"\n'
    return replace(place / "names.toml", text)


def entries(names, name="orders"):
    """The entries in the folder of a names file."""
    folder = names.parent / "f" / name
    return [path for path in folder.glob("*") if path.suffix != ".ipc" and not path.name.startswith(".")] if folder.is_dir() else []


def asked(peer, name, text="hello"):
    """The process that has answered a REQ."""
    answer = peer("ask", name, text)
    assert answer.endswith(f" {text}"), answer
    return int(answer.split()[0])


def without_names():
    """Nothing knows names: what libzmq says of an unknown transport."""
    peer = Peer()
    peer.socket("a", "REQ")
    for call in ("bind", "connect"):
        assert peer(call, "a", "name://orders") == "EPROTONOSUPPORT"
    peer.end()


def what_is_no_name():
    peer = Peer(names_file("bad"))
    peer.socket("a", "REQ")
    for bad in ("a b", "../x", "a..b", ".", "a/b", "x" * 201):
        for call in ("bind", "connect"):
            assert peer(call, "a", f"name://{bad}") == "EINVAL", bad
    assert peer("connect", "a", "name://") == "EINVAL"
    assert peer("disconnect", "a", "name://orders") == "ENOENT"
    assert peer("unbind", "a", "name://orders") == "ENOENT"
    peer.end()


def a_faulty_file():
    """Is told with its line, and stands for nothing. One that becomes faulty changes nothing."""
    names = replace(fresh("faulty") / "names.toml", '[names]\norders = "udp://a:1"\n')
    peer = Peer(names)
    peer.socket("a", "REQ")
    assert peer("connect", "a", "name://orders") == "EINVAL"
    assert f"names {names}: line 2" in peer.said(), peer.said()
    peer.socket("b", "REP", bind="tcp://127.0.0.1:*")
    peer.end()
    peer = Peer()
    peer.socket("a", "REQ")
    assert peer("names", str(names)) == "EINVAL"
    replace(names, f'[names]\norders = "tcp://127.0.0.1:{free_port()}"\n')
    assert peer("names", str(names)) is True
    assert peer("connect", "a", "name://orders") is True
    replace(names, "orders")
    until("the fault is told", lambda: "stay as they were" in peer.said())
    peer.end()


def a_file_that_changes():
    """Peers follow the file while they are connected; messages that were queued still go."""
    one, two = Peer(), Peer()
    ports = []
    pulls = {}
    for server in (one, two):
        server.socket("in", "PULL", bind="tcp://127.0.0.1:*", RCVTIMEO=20)
        pulls[server] = server("last", "in")
        ports.append(pulls[server])
    names = names_file("changes", f'[names]\norders = "{ports[0]}"\n', folder=False)
    client = Peer(names)
    client.socket("out", "PUSH")
    assert client("monitor", "out") is True
    assert client("connect", "out", "name://orders") is True
    assert client("last", "out") == "name://orders"
    assert client("send", "out", "1") is True
    assert until("the first one gets it", lambda: one("recv", "in")) == "1"
    replace(names, f'[names]\norders = ["{ports[0]}", "{ports[1]}"]\n')

    def both():
        client("send", "out", "x")
        return two("recv", "in") != "EAGAIN"

    until("the second one gets some", both)
    replace(names, f'[names]\norders = ["{ports[1]}"]\n')

    def drained(server):
        count = 0
        while server("recv", "in") != "EAGAIN":
            count += 1
        return count

    def only_two():
        drained(one), drained(two)
        for _ in range(4):
            client("send", "out", "y")
        return drained(one) == 0 and drained(two) == 4

    until("only the second one", only_two)
    assert client("disconnect", "out", "name://orders") is True
    assert client("disconnect", "out", "name://orders") == "ENOENT"
    events = []
    while (event := client("event", "out", 200)) is not None:
        events.append(event)
    connected = [event[2] for event in events if event[0] == 1]
    assert set(connected) == set(ports), events
    counts = [event[3] for event in events if event[0] == NAME_EVENT and event[1] == 0]
    assert "it stands for 2 endpoints" in counts, events
    for peer in (client, one, two):
        peer.end()


def one_process():
    """Over inproc, in either order; and the entry goes with the socket."""
    names = names_file("process")
    peer = Peer(names)
    peer.socket("early", "REQ", connect="name://orders", RCVTIMEO=20000)
    assert peer("echo", "name://orders", "bind") is True
    assert peer("monitor", "early") is True
    assert asked(peer, "early") == peer.process.pid
    peer.socket("late", "REQ", connect="name://orders", RCVTIMEO=20000)
    assert asked(peer, "late") == peer.process.pid
    # Nothing was connected over streams.
    assert all(event[0] == NAME_EVENT for event in iter(lambda: peer("event", "early", 100), None))
    peer.end()
    assert entries(names) == []


def one_host():
    """Over ipc; binders come, go in order, and die."""
    names = names_file("host")
    client = Peer(names)
    client.socket("c", "REQ", connect="name://orders", RCVTIMEO=20000, REQ_RELAXED=1, REQ_CORRELATE=1)
    assert client("monitor", "c") is True
    first = Peer(names)
    first("echo", "name://orders", "bind")
    assert asked(client, "c") == first.process.pid
    remotes = [event[2] for event in iter(lambda: client("event", "c", 100), None) if event[0] == 1]
    assert remotes and all(remote.startswith("ipc://") for remote in remotes), remotes
    second = Peer(names)
    second("echo", "name://orders", "bind")
    until("both answer", lambda: len({asked(client, "c") for _ in range(4)}) == 2)
    first.kill()
    client("close", "c")
    client.socket("d", "REQ", connect="name://orders", RCVTIMEO=20000)
    assert asked(client, "d") == second.process.pid
    until("the dead one's entry is swept", lambda: len(entries(names)) == 1)
    second.end()
    assert entries(names) == []
    client.end()


def unbinding():
    """Takes all that was bound for the name, and connected peers leave."""
    names = names_file("unbind")
    server, client = Peer(names), Peer(names)
    server.socket("in", "PULL", bind="name://orders", RCVTIMEO=20000)
    assert server("last", "in") == "name://orders"
    client.socket("out", "PUSH", connect="name://orders", SNDTIMEO=100)
    until("it arrives", lambda: client("send", "out", "a") is True)
    assert server("recv", "in") == "a"
    assert server("unbind", "in", "name://orders") is True
    assert entries(names) == []
    until("nobody is there", lambda: client("send", "out", "b") == "EAGAIN")
    assert server("bind", "in", "name://orders") is True
    until("it is back", lambda: client("send", "out", "c") is True)
    until("c arrives", lambda: server("recv", "in") == "c")
    server.end()
    client.end()


def publishers():
    """A SUB follows all publishers of a name; one that sleeps and then publishes is heard."""
    names = names_file("pub")
    subscriber = Peer(names)
    subscriber.socket("s", "SUB", connect="name://prices", SUBSCRIBE="", RCVTIMEO=20)
    heard = set()
    publishers = [Peer(names) for _ in range(3)]
    for peer in publishers:
        peer.socket("p", "PUB", bind="name://prices")

    def all_heard():
        for peer in publishers:
            peer("send", "p", str(peer.process.pid))
        while (text := subscriber("recv", "s")) != "EAGAIN":
            heard.add(int(text))
        return len(heard) == 3

    until("all are heard", all_heard)
    for peer in [subscriber, *publishers]:
        peer.end()


def a_policy():
    """Is asked of each endpoint; what it refuses is an event."""
    names = names_file("policy", f'[names]\norders = "tcp://127.0.0.1:{free_port()}"\n')
    policy = replace(
        names.parent / "policy.toml", '[[rules]]\nname = "no-tcp"\ncall = "connect"\nendpoint = "tcp://*"\naction = "refuse"\n'
    )
    peer = Peer(names, TAUT_POLICY=str(policy))
    peer.socket("a", "PUSH")
    assert peer("monitor", "a") is True
    assert peer("connect", "a", "name://orders") is True
    events = list(iter(lambda: peer("event", "a", 500), None))
    refused = [event for event in events if event[0] == 0x800]
    assert len(refused) == 1 and "no-tcp" in refused[0][3], events
    replace(policy, '[[rules]]\nname = "no-ipc"\ncall = "bind"\nendpoint = "ipc://*"\naction = "refuse"\n')
    server = Peer(names, TAUT_POLICY=str(policy))
    server.socket("b", "PULL")
    assert server("bind", "b", "name://orders") == "EACCES"
    assert entries(names) == []
    for each in (peer, server):
        each.end()


CASES = [
    without_names,
    what_is_no_name,
    a_faulty_file,
    a_file_that_changes,
    one_process,
    one_host,
    unbinding,
    publishers,
    a_policy,
]

