"""Tests names in NATS with a real server and agents (`taut names --serve`)."""

import time

from programs import Host, Server, asked, entries, until


def test_nats_two_hosts(hosts, run, tmp_path):
    """Clients reach a service over tcp from another host, and over ipc from its own host. The end of the service removes its entries."""
    (a, address_a), (b, address_b) = hosts
    server = Server(run, tmp_path, a, address_a)
    here = Host(run, tmp_path / "a", server.port, a, address_a, address_a)
    there = Host(run, tmp_path / "b", server.port, b, address_b, address_a)
    client, near, service = there.peer(), here.peer(), here.peer()
    for each in (client, near):
        each.socket("c", "REQ")
        assert each("monitor", "c") is True
        assert each("connect", "c", "name://orders") is True
    assert service("echo", "name://orders", "bind") is True
    assert asked(client, "c") == asked(near, "c") == service.process.pid
    ways = []
    for each in (client, near):
        remote = [event[2] for event in iter(lambda: each("event", "c", 200), None) if event[0] == 1]
        ways.append(remote[0])
    assert ways[0].startswith(f"tcp://{address_a}:") and ways[1].startswith("ipc://"), ways
    assert len(entries(there.names)) == 1
    service.end()
    until("the entry is removed", lambda: not entries(there.names))
    for each in (client, near):
        each.end()


def test_nats_away(run, tmp_path):
    """While NATS is down, known services stay connected. Once it is back, clients find services that were bound during the failure."""
    server = Server(run, tmp_path)
    here, there = Host(run, tmp_path / "a", server.port), Host(run, tmp_path / "b", server.port)
    one, client = here.peer(), there.peer()
    assert one("echo", "name://orders", "bind") is True
    client.socket("c", "REQ", connect="name://orders")
    assert asked(client, "c") == one.process.pid
    server.program.kill()
    # The entries stay for longer than the lease.
    end = time.monotonic() + Host.lease + 1
    while time.monotonic() < end:
        assert len(entries(there.names)) == 1
        assert asked(client, "c") == one.process.pid
    two = here.peer()
    assert two("echo", "name://orders", "bind") is True
    server.program.start()
    both = {one.process.pid, two.process.pid}
    until("both services answer", lambda: {asked(client, "c") for _ in range(4)} == both)
    for each in (client, one, two):
        each.end()


def test_nats_leases(run, tmp_path):
    """If an agent dies, its entries expire on other hosts and stay on its own, until a new agent takes over. The entry of a program that dies is
    removed."""
    server = Server(run, tmp_path)
    here, there = Host(run, tmp_path / "a", server.port), Host(run, tmp_path / "b", server.port)
    one, two = here.peer(), there.peer()
    for each in (one, two):
        assert each("echo", "name://orders", "bind") is True
    until("both hosts have both entries", lambda: len(entries(here.names)) == len(entries(there.names)) == 2)
    here.agent.kill()
    until("the lease expires", lambda: len(entries(there.names)) == 1)
    assert len(entries(here.names)) == 2
    here.agent.start()
    until("the entry is back", lambda: len(entries(there.names)) == 2)
    one.kill()
    client = there.peer()
    client.socket("c", "REQ", connect="name://orders")
    until("the entry is removed", lambda: len(entries(there.names)) == 1)
    assert {asked(client, "c") for _ in range(3)} == {two.process.pid}
    for each in (client, two):
        each.end()
