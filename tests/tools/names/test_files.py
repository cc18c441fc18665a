"""Tests names in place of endpoints in unmodified pyzmq programs on Tautline with TAUT_NAMES."""

from programs import NAME_EVENT, asked, entries, free_port, replace, until


def names_file(folder, text=""):
    """Writes a names file that has its entries in a folder beside it."""
    return replace(folder / "names.toml", f'{text}\n[folder]\npath = "{folder}/f"\n')


def test_without_names(start):
    """Without a names file, `name://` fails like an unknown transport in libzmq."""
    peer = start()
    peer.socket("a", "REQ")
    for call in ("bind", "connect"):
        assert peer(call, "a", "name://orders") == "EPROTONOSUPPORT"
    peer.end()


def test_what_is_no_name(start, tmp_path):
    peer = start(names_file(tmp_path))
    peer.socket("a", "REQ")
    for bad in ("a b", "../x", "a..b", ".", "a/b", "x" * 201):
        for call in ("bind", "connect"):
            assert peer(call, "a", f"name://{bad}") == "EINVAL", bad
    assert peer("connect", "a", "name://") == "EINVAL"
    assert peer("disconnect", "a", "name://orders") == "ENOENT"
    assert peer("unbind", "a", "name://orders") == "ENOENT"
    peer.end()


def test_a_faulty_file(start, tmp_path):
    """The error for a faulty file names the line, and each name fails. If a reload fails, the last valid file stays in force."""
    names = replace(tmp_path / "names.toml", '[names]\norders = "udp://a:1"\n')
    peer = start(names)
    peer.socket("a", "REQ")
    assert peer("connect", "a", "name://orders") == "EINVAL"
    assert f"names {names}: line 2" in peer.said(), peer.said()
    peer.socket("b", "REP", bind="tcp://127.0.0.1:*")
    peer.end()
    peer = start()
    peer.socket("a", "REQ")
    assert peer("names", str(names)) == "EINVAL"
    replace(names, f'[names]\norders = "tcp://127.0.0.1:{free_port()}"\n')
    assert peer("names", str(names)) is True
    assert peer("connect", "a", "name://orders") is True
    replace(names, "orders")
    until("the error is reported", lambda: "stays in force" in peer.said())
    peer.end()


def test_a_file_that_changes(start, tmp_path):
    """Connected peers follow the file, and messages that are already queued are still sent."""
    one, two = start(), start()
    ports = []
    pulls = {}
    for server in (one, two):
        server.socket("in", "PULL", bind="tcp://127.0.0.1:*", RCVTIMEO=20)
        pulls[server] = server("last", "in")
        ports.append(pulls[server])
    names = names_file(tmp_path, f'[names]\norders = "{ports[0]}"\n')
    client = start(names)
    client.socket("out", "PUSH")
    assert client("monitor", "out") is True
    assert client("connect", "out", "name://orders") is True
    assert client("last", "out") == "name://orders"
    assert client("send", "out", "1") is True
    assert until("the first server receives it", lambda: one("recv", "in")) == "1"
    replace(names, f'[names]\norders = ["{ports[0]}", "{ports[1]}"]\n')

    def both():
        client("send", "out", "x")
        return two("recv", "in") != "EAGAIN"

    until("the second server receives messages", both)
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

    until("only the second server receives messages", only_two)
    assert client("disconnect", "out", "name://orders") is True
    assert client("disconnect", "out", "name://orders") == "ENOENT"
    events = []
    while (event := client("event", "out", 200)) is not None:
        events.append(event)
    connected = [event[2] for event in events if event[0] == 1]
    assert set(connected) == set(ports), events
    counts = [event[3] for event in events if event[0] == NAME_EVENT and event[1] == 0]
    assert "the name has 2 endpoints" in counts, events
    for peer in (client, one, two):
        peer.end()


def test_one_process(start, tmp_path):
    """Within a process, a name means inproc, whichever side comes first. The entry is removed with the socket."""
    names = names_file(tmp_path)
    peer = start(names)
    peer.socket("early", "REQ", connect="name://orders")
    assert peer("echo", "name://orders", "bind") is True
    assert peer("monitor", "early") is True
    assert asked(peer, "early") == peer.process.pid
    peer.socket("late", "REQ", connect="name://orders")
    assert asked(peer, "late") == peer.process.pid
    # The monitor reports name events only, so the sockets use no stream connection.
    assert all(event[0] == NAME_EVENT for event in iter(lambda: peer("event", "early", 100), None))
    peer.end()
    assert entries(names) == []


def test_one_host(start, tmp_path):
    """On one host, a name means ipc. Clients follow services that start, close and die."""
    names = names_file(tmp_path)
    client = start(names)
    client.socket("c", "REQ", connect="name://orders", REQ_RELAXED=1, REQ_CORRELATE=1)
    assert client("monitor", "c") is True
    first = start(names)
    first("echo", "name://orders", "bind")
    assert asked(client, "c") == first.process.pid
    remotes = [event[2] for event in iter(lambda: client("event", "c", 100), None) if event[0] == 1]
    assert remotes and all(remote.startswith("ipc://") for remote in remotes), remotes
    second = start(names)
    second("echo", "name://orders", "bind")
    until("both answer", lambda: len({asked(client, "c") for _ in range(4)}) == 2)
    first.kill()
    client("close", "c")
    client.socket("d", "REQ", connect="name://orders")
    assert asked(client, "d") == second.process.pid
    until("the entry of the killed service is removed", lambda: len(entries(names)) == 1)
    second.end()
    assert entries(names) == []
    client.end()


def test_unbinding(start, tmp_path):
    """Unbinding removes all endpoints of the name and disconnects the peers."""
    names = names_file(tmp_path)
    server, client = start(names), start(names)
    server.socket("in", "PULL", bind="name://orders")
    assert server("last", "in") == "name://orders"
    client.socket("out", "PUSH", connect="name://orders", SNDTIMEO=100)
    until("message a arrives", lambda: client("send", "out", "a") is True)
    assert server("recv", "in") == "a"
    assert server("unbind", "in", "name://orders") is True
    assert entries(names) == []
    until("the peer is disconnected", lambda: client("send", "out", "b") == "EAGAIN")
    assert server("bind", "in", "name://orders") is True
    until("the server is bound again", lambda: client("send", "out", "c") is True)
    until("message c arrives", lambda: server("recv", "in") == "c")
    server.end()
    client.end()


def test_publishers(start, tmp_path):
    """A SUB receives from all publishers of a name, including later ones."""
    names = names_file(tmp_path)
    subscriber = start(names)
    subscriber.socket("s", "SUB", connect="name://prices", SUBSCRIBE="", RCVTIMEO=20)
    heard = set()
    publishers = [start(names) for _ in range(3)]
    for peer in publishers:
        peer.socket("p", "PUB", bind="name://prices")

    def all_heard():
        for peer in publishers:
            peer("send", "p", str(peer.process.pid))
        while (text := subscriber("recv", "s")) != "EAGAIN":
            heard.add(int(text))
        return len(heard) == 3

    until("all publishers are received", all_heard)
    for peer in [subscriber, *publishers]:
        peer.end()


def test_a_policy(start, tmp_path):
    """A policy checks each endpoint of a name, and each refusal is an event."""
    names = names_file(tmp_path, f'[names]\norders = "tcp://127.0.0.1:{free_port()}"\n')
    policy = replace(
        names.parent / "policy.toml", '[[rules]]\nname = "no-tcp"\ncall = "connect"\nendpoint = "tcp://*"\naction = "refuse"\n'
    )
    peer = start(names, TAUT_POLICY=str(policy))
    peer.socket("a", "PUSH")
    assert peer("monitor", "a") is True
    assert peer("connect", "a", "name://orders") is True
    events = list(iter(lambda: peer("event", "a", 500), None))
    refused = [event for event in events if event[0] == 0x800]
    assert len(refused) == 1 and "no-tcp" in refused[0][3], events
    replace(policy, '[[rules]]\nname = "no-ipc"\ncall = "bind"\nendpoint = "ipc://*"\naction = "refuse"\n')
    server = start(names, TAUT_POLICY=str(policy))
    server.socket("b", "PULL")
    assert server("bind", "b", "name://orders") == "EACCES"
    assert entries(names) == []
    for each in (peer, server):
        each.end()
