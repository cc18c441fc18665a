"""Cases with several hosts, as network namespaces, and with real servers of DNS and NATS."""

import contextlib
import os
import shutil
import socket
import subprocess
import time

from cases import FOLDER, NAME_EVENT, NATS, TAUT, asked, entries, fresh, free_port
from harness import Peer, Skipped, replace, until


class Process:
    """A server or agent that runs, with what it says in a file."""

    def __init__(self, command, host=None, log="log"):
        prefix = ["ip", "netns", "exec", host] if host else []
        self.log = FOLDER / f"{log}-{time.monotonic_ns()}"
        self.command = prefix + [str(part) for part in command]
        self.start()

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        Peer.all.append(self)

    def said(self):
        return self.log.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def two_hosts():
    """Two network namespaces with a wire between them: their names and addresses."""
    names = [f"taut-{os.getpid()}-{side}" for side in "ab"]
    if os.geteuid() or not shutil.which("ip"):
        raise Skipped("network namespaces need root and iproute2")

    def ip(*arguments):
        return subprocess.run(["ip", *arguments], capture_output=True, text=True)

    try:
        made = [ip("netns", "add", name) for name in names]
        made.append(ip("link", "add", "t0", "netns", names[0], "type", "veth", "peer", "name", "t0", "netns", names[1]))
        if any(one.returncode for one in made):
            raise Skipped(f"network namespaces: {made[-1].stderr.strip() or made[0].stderr.strip()}")
        for name, address in zip(names, ("10.99.7.1", "10.99.7.2")):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "t0")
            for link in ("t0", "lo"):
                ip("-n", name, "link", "set", link, "up")
        yield [(names[0], "10.99.7.1"), (names[1], "10.99.7.2")]
    finally:
        for name in names:
            ip("netns", "del", name)


def reachable(port, host="127.0.0.1"):
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
        return True
    return False


# ---- DNS


class Dns:
    """A real server, dnsmasq, on a port of its own."""

    def __init__(self, name, *records):
        if not shutil.which("dnsmasq"):
            raise Skipped("there is no dnsmasq")
        self.port = free_port()
        self.conf = fresh(name) / "dnsmasq.conf"
        self.process = None
        self.change(*records)

    def change(self, *records):
        """Other records: it is started anew, as its files of records know no SRV."""
        if self.process:
            self.process.kill()
        base = [f"port={self.port}", "listen-address=127.0.0.1", "bind-interfaces", "no-resolv", "no-hosts", "local=/test/", "local-ttl=1", "user=root"]
        self.conf.write_text("\n".join([*base, *records]) + "\n")
        self.process = Process(["dnsmasq", "--keep-in-foreground", f"--conf-file={self.conf}"], log="dnsmasq")
        until("dnsmasq listens", lambda: reachable(self.port))

    def names(self, more=""):
        return replace(self.conf.parent / "names.toml", f'[dns]\nsuffix = "test"\nservers = "127.0.0.1:{self.port}"\n{more}')


def echo_at(address):
    server = Peer()
    port = free_port()
    assert server("echo", f"tcp://{address}:{port}", "bind") is True
    return server, port


def two_echoes():
    """At one port of two addresses."""
    port = free_port()
    servers = Peer(), Peer()
    for number, server in enumerate(servers, 1):
        assert server("echo", f"tcp://127.0.0.{number}:{port}", "bind") is True
    return servers, port


def dns_addresses():
    """Each address of a name; followed as the records change, after their time to live."""
    (one, two), port = two_echoes()
    dns = Dns("addresses", "host-record=orders.test,127.0.0.1")
    client = Peer(dns.names(f"port = {port}"))
    client.socket("c", "REQ", connect="name://orders", RCVTIMEO=30000)
    assert {asked(client, "c") for _ in range(3)} == {one.process.pid}
    dns.change("host-record=orders.test,127.0.0.1", "host-record=orders.test,127.0.0.2")
    both = {one.process.pid, two.process.pid}
    until("both are asked", lambda: {asked(client, "c") for _ in range(4)} == both)
    dns.change("host-record=orders.test,127.0.0.2")
    until("only the second one", lambda: {asked(client, "c") for _ in range(4)} == {two.process.pid})
    client.end()


def dns_services():
    """SRV records: each with a port of its own, and the first priority only."""
    servers = [echo_at("127.0.0.1") for _ in range(3)]
    (one, first), (two, second), (backup, last) = servers
    dns = Dns(
        "services",
        "host-record=a.test,127.0.0.1",
        f"srv-host=_orders._tcp.test,a.test,{first},1",
        f"srv-host=_orders._tcp.test,a.test,{second},1",
        f"srv-host=_orders._tcp.test,a.test,{last},9",
    )
    client = Peer(dns.names())
    client.socket("c", "REQ", connect="name://orders", RCVTIMEO=30000)
    both = {one.process.pid, two.process.pid}
    until("both are asked", lambda: {asked(client, "c") for _ in range(4)} == both)
    assert all(asked(client, "c") != backup.process.pid for _ in range(6))
    client.end()


def dns_away():
    """The server is gone: who is known stays connected, and it is said; once it is back it is asked again."""
    (one, two), port = two_echoes()
    dns = Dns("away", "host-record=orders.test,127.0.0.1")
    client = Peer(dns.names(f"port = {port}"))
    client.socket("c", "REQ", RCVTIMEO=30000)
    assert client("monitor", "c") is True
    assert client("connect", "c", "name://orders") is True
    assert asked(client, "c") == one.process.pid
    dns.process.kill()
    events = []

    def told(wanted, words):
        event = client("event", "c", 1000)
        events.append(event)
        return event and event[0] == NAME_EVENT and (event[1] != 0) == wanted and words in event[3]

    until("it is said", lambda: told(True, "DNS cannot be asked"))
    assert asked(client, "c") == one.process.pid
    dns.change("host-record=orders.test,127.0.0.2")
    until("it is said", lambda: told(False, "DNS can be asked again"))
    until("the second one is asked", lambda: {asked(client, "c") for _ in range(3)} == {two.process.pid})
    assert all(event is None or event[0] != 0x200 for event in events), events
    client.end()


# ---- NATS


class Host:
    """A host: a folder, a names file, and the agent."""

    def __init__(self, name, nats_port, namespace=None, address="127.0.0.1", nats_host="127.0.0.1", lease=3):
        place = fresh(name)
        text = f'[folder]\npath = "{place}/f"\ntcp = "tcp://{address}:*"\n[nats]\nservers = "nats://{nats_host}:{nats_port}"\nlease = {lease}\n'
        self.names = replace(place / "names.toml", text)
        self.namespace = namespace
        self.agent = Process([TAUT, "names", "--serve", "--file", self.names], host=namespace, log=f"agent-{name}")

    def peer(self):
        return Peer(self.names, host=self.namespace)


class Server:
    """A real nats-server with JetStream."""

    def __init__(self, name, namespace=None, address="127.0.0.1"):
        if not NATS or not TAUT:
            raise Skipped("there is no nats-server" if TAUT else "there is no taut with the bridge")
        self.port = free_port()
        self.process = Process(
            [NATS, "-a", address, "-p", self.port, "-js", "-sd", fresh(name)], host=namespace, log="nats"
        )


def nats_two_hosts():
    """Bound on one host, connected on another one, over tcp; on its own host over ipc. Taken back when it is closed."""
    with two_hosts() as ((a, address_a), (b, address_b)):
        server = Server("kv-hosts", a, address_a)
        here = Host("kv-a", server.port, a, address_a, address_a)
        there = Host("kv-b", server.port, b, address_b, address_a)
        client, near, service = there.peer(), here.peer(), here.peer()
        for each in (client, near):
            each.socket("c", "REQ", RCVTIMEO=30000)
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
        until("it is taken back", lambda: not entries(there.names))
        for each in (client, near):
            each.end()


def nats_away():
    """NATS is killed: who is known stays connected. It comes back: what was bound meanwhile is found."""
    server = Server("kv-away")
    here, there = Host("kv-away-a", server.port), Host("kv-away-b", server.port)
    one, client = here.peer(), there.peer()
    assert one("echo", "name://orders", "bind") is True
    client.socket("c", "REQ", connect="name://orders", RCVTIMEO=30000)
    assert asked(client, "c") == one.process.pid
    server.process.kill()
    time.sleep(4)  # longer than the lease
    assert len(entries(there.names)) == 1
    assert asked(client, "c") == one.process.pid
    two = here.peer()
    assert two("echo", "name://orders", "bind") is True
    server.process.start()
    both = {one.process.pid, two.process.pid}
    until("both are asked", lambda: {asked(client, "c") for _ in range(4)} == both)
    for each in (client, one, two):
        each.end()


def nats_leases():
    """An agent that dies: the lease ends elsewhere, what it knew stays with its own host; another one takes over. A program that dies: its
    entry is taken back."""
    server = Server("kv-lease")
    here, there = Host("kv-lease-a", server.port), Host("kv-lease-b", server.port)
    one, two = here.peer(), there.peer()
    for each in (one, two):
        assert each("echo", "name://orders", "bind") is True
    until("both know both", lambda: len(entries(here.names)) == len(entries(there.names)) == 2)
    here.agent.kill()
    until("the lease ends", lambda: len(entries(there.names)) == 1)
    assert len(entries(here.names)) == 2
    here.agent.start()
    until("it is told again", lambda: len(entries(there.names)) == 2)
    one.kill()
    client = there.peer()
    client.socket("c", "REQ", connect="name://orders", RCVTIMEO=30000)
    until("it is taken back", lambda: len(entries(there.names)) == 1)
    assert {asked(client, "c") for _ in range(3)} == {two.process.pid}
    for each in (client, two):
        each.end()


CASES = [dns_addresses, dns_services, dns_away, nats_two_hosts, nats_away, nats_leases]
