"""Tests names in DNS with a real server (dnsmasq)."""

from programs import NAME_EVENT, Dns, asked, free_port, until


def echo_at(start, address):
    server = start()
    port = free_port()
    assert server("echo", f"tcp://{address}:{port}", "bind") is True
    return server, port


def two_echoes(start):
    """Starts two services on the same port of two addresses."""
    port = free_port()
    servers = start(), start()
    for number, server in enumerate(servers, 1):
        assert server("echo", f"tcp://127.0.0.{number}:{port}", "bind") is True
    return servers, port


def test_dns_addresses(start, run, tmp_path):
    """A client connects to all addresses of a name. It follows changed records after their time to live."""
    (one, two), port = two_echoes(start)
    dns = Dns(run, tmp_path, "host-record=orders.test,127.0.0.1")
    client = start(dns.names(f"port = {port}"))
    client.socket("c", "REQ", connect="name://orders")
    assert {asked(client, "c") for _ in range(3)} == {one.process.pid}
    dns.change("host-record=orders.test,127.0.0.1", "host-record=orders.test,127.0.0.2")
    both = {one.process.pid, two.process.pid}
    until("both services answer", lambda: {asked(client, "c") for _ in range(4)} == both)
    dns.change("host-record=orders.test,127.0.0.2")
    until("only the second service answers", lambda: {asked(client, "c") for _ in range(4)} == {two.process.pid})
    client.end()


def test_dns_services(start, run, tmp_path):
    """Each SRV record sets its own port, and a client uses only records of the first priority."""
    servers = [echo_at(start, "127.0.0.1") for _ in range(3)]
    (one, first), (two, second), (backup, last) = servers
    dns = Dns(
        run,
        tmp_path,
        "host-record=a.test,127.0.0.1",
        f"srv-host=_orders._tcp.test,a.test,{first},1",
        f"srv-host=_orders._tcp.test,a.test,{second},1",
        f"srv-host=_orders._tcp.test,a.test,{last},9",
    )
    client = start(dns.names())
    client.socket("c", "REQ", connect="name://orders")
    both = {one.process.pid, two.process.pid}
    until("both services answer", lambda: {asked(client, "c") for _ in range(4)} == both)
    assert all(asked(client, "c") != backup.process.pid for _ in range(6))
    client.end()


def test_dns_away(start, run, tmp_path):
    """If the DNS server fails, connections stay and the monitor reports it. Once the server is back, the client asks it again."""
    (one, two), port = two_echoes(start)
    dns = Dns(run, tmp_path, "host-record=orders.test,127.0.0.1")
    client = start(dns.names(f"port = {port}"))
    client.socket("c", "REQ")
    assert client("monitor", "c") is True
    assert client("connect", "c", "name://orders") is True
    assert asked(client, "c") == one.process.pid
    dns.program.kill()
    events = []

    def told(wanted, words):
        event = client("event", "c", 1000)
        events.append(event)
        return event and event[0] == NAME_EVENT and (event[1] != 0) == wanted and words in event[3]

    until("the failure is reported", lambda: told(True, "DNS failed"))
    assert asked(client, "c") == one.process.pid
    dns.change("host-record=orders.test,127.0.0.2")
    until("the recovery is reported", lambda: told(False, "DNS recovered"))
    until("the second service answers", lambda: {asked(client, "c") for _ in range(3)} == {two.process.pid})
    assert all(event is None or event[0] != 0x200 for event in events), events
    client.end()
