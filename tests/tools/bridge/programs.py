"""Starts the programs of the cases: NATS servers, bridges, and a NATS client that reads streams.

run.sh sets NATS_SERVER, TAUT and MINUTES.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import nats
import pytest
import zmq
from nats.js.api import AckPolicy, ConsumerConfig

SERVER, TAUT = os.environ["NATS_SERVER"], os.environ["TAUT"]
# A case starts its last round within this number of seconds.
SECONDS = 60 * float(os.environ.get("MINUTES", "inf"))


def free_ports(number):
    """Returns ports that are free at the moment."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Hosts:
    """Network namespaces that a virtual switch connects with the current one. Cutting one off drops its packets."""

    def __init__(self, number):
        self.name, self.number = f"tb{os.getpid()}", 0
        self.net = f"198.18.{os.getpid() % 256}"
        try:
            self.ip(f"link add {self.name} type bridge forward_delay 0")
            self.ip(f"addr add {self.net}.1/24 dev {self.name}")
            self.ip(f"link set {self.name} up")
            for at in range(number):
                self.number = at + 1
                host = f"{self.name}h{at}"
                self.ip(f"netns add {host}")
                self.ip(f"link add {host} type veth peer name eth0 netns {host}")
                self.ip(f"link set {host} master {self.name} up")
                self.ip(f"-n {host} addr add {self.address(at)}/24 dev eth0")
                self.ip(f"-n {host} link set eth0 up")
                self.ip(f"-n {host} link set lo up")
        except (OSError, subprocess.CalledProcessError) as error:
            self.end()
            why = getattr(error, "stderr", None) or error
            pytest.skip(f"no network namespaces: {why}")

    @staticmethod
    def ip(command):
        subprocess.run(["ip", *command.split()], check=True, capture_output=True, text=True)

    def address(self, at):
        return f"{self.net}.{10 + at}"

    def within(self, at):
        """Returns the command prefix that runs a program in this namespace."""
        return ["ip", "netns", "exec", f"{self.name}h{at}"]

    def cut(self, at):
        self.ip(f"link set {self.name}h{at} down")

    def join(self, at):
        self.ip(f"link set {self.name}h{at} up")

    def end(self):
        # The kernel deletes the links of a deleted namespace with a delay. The next case in this process reuses their names.
        links = [f"link del {self.name}h{at}" for at in range(self.number)]
        for command in [*links, *[f"netns del {self.name}h{at}" for at in range(self.number)], f"link del {self.name}"]:
            with contextlib.suppress(OSError, subprocess.CalledProcessError):
                self.ip(command)


class Nats:
    """One nats-server with JetStream, or a cluster. A restarted server keeps its port and its store. With `hosts`
    each server runs in its own namespace."""

    def __init__(self, folder, number=1, settings="", hosts=None, store=None):
        self.folder, self.number, self.settings, self.store = folder, number, settings, store or folder
        self.hosts = [hosts.address(at) if hosts else "127.0.0.1" for at in range(number)]
        self.within = [hosts.within(at) if hosts else [] for at in range(number)]
        ports = free_ports(3 * number)
        self.ports, self.routes, self.http = ports[:number], ports[number : 2 * number], ports[2 * number :]
        self.servers = [None] * number
        os.makedirs(folder, exist_ok=True)
        for at in range(number):
            self.start(at)
        for at in range(number):
            self.wait(at)

    def start(self, at):
        config = f"{self.folder}/server-{at}.conf"
        routes = ", ".join(f'"nats://{host}:{port}"' for host, port in zip(self.hosts, self.routes))
        host = self.hosts[at]
        cluster = "" if self.number == 1 else f"cluster {{ name: three, listen: {host}:{self.routes[at]}, routes: [{routes}] }}\n"
        with open(config, "w") as file:
            file.write(
                f"server_name: s{at}\nlisten: {host}:{self.ports[at]}\nhttp: {host}:{self.http[at]}\n"
                f'jetstream {{ store_dir: "{self.store}/store-{at}", max_file_store: 1TB }}\n{cluster}{self.settings}'
            )
        log = open(f"{self.folder}/server-{at}.log", "a")
        self.servers[at] = subprocess.Popen([*self.within[at], SERVER, "-c", config], stdout=log, stderr=log)
        log.close()

    def wait(self, at):
        """Waits until the server answers."""
        while True:
            try:
                with urllib.request.urlopen(f"http://{self.hosts[at]}:{self.http[at]}/healthz?js-server-only=true", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                if self.servers[at].poll() is not None:
                    raise RuntimeError(open(f"{self.folder}/server-{at}.log").read()[-2000:])
                time.sleep(0.02)

    def kill(self, at=0, number=signal.SIGKILL):
        self.servers[at].send_signal(number)
        self.servers[at].wait()

    def again(self, at=0):
        self.kill(at)
        self.start(at)
        self.wait(at)

    def urls(self):
        return [f"nats://{host}:{port}" for host, port in zip(self.hosts, self.ports)]

    def get(self, path, at=0):
        with urllib.request.urlopen(f"http://{self.hosts[at]}:{self.http[at]}{path}", timeout=10) as answer:
            return json.load(answer)

    def bridges_subjects(self):
        """Returns the subjects that bridges subscribe to, without their reply inboxes."""
        connections = self.get("/connz?subs=1")["connections"]
        bridges = [one for one in connections if one.get("name") == "taut bridge"]
        return sorted(name for one in bridges for name in one.get("subscriptions_list", []) if not name.startswith("_INBOX"))

    def end(self):
        for server in self.servers:
            if server.poll() is None:
                server.kill()
                server.wait()


class Client:
    """A NATS client that runs on its own thread. Its calls block until the result arrives."""

    def __init__(self, urls, **options):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

        async def quiet(_):
            pass

        self.nats = self.run(nats.connect(urls, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=quiet, **options))
        self.streams = self.nats.jetstream(timeout=10)

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def persist(self, make):
        """Repeats a call until it succeeds. Calls fail while a cluster elects a new leader."""
        while True:
            try:
                return self.run(make())
            except Exception:
                time.sleep(0.1)

    def make(self, name, subjects, **settings):
        return self.persist(lambda: self.streams.add_stream(name=name, subjects=subjects, **settings))

    def stored(self, name):
        """Returns all messages of a stream as (subject, headers, payload)."""

        async def read():
            info = await self.streams.stream_info(name)
            messages, state = [], info.state
            if state.messages == 0:
                return messages
            every = ConsumerConfig(ack_policy=AckPolicy.NONE)
            subscription = await self.streams.pull_subscribe(">", stream=name, config=every)
            while len(messages) < state.messages:
                for message in await subscription.fetch(500, timeout=10):
                    messages.append((message.subject, message.headers or {}, message.data))
            await subscription.unsubscribe()
            return messages

        return self.persist(read)

    def count(self, name):
        return self.persist(lambda: self.streams.stream_info(name)).state.messages

    def leader(self, name):
        info = self.persist(lambda: self.streams.stream_info(name))
        return int(info.cluster.leader[1:]) if info.cluster and info.cluster.leader else None

    def end(self):
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(self.nats.close(), self.loop).result(5)
        self.loop.call_soon_threadsafe(self.loop.stop)


class Bridge:
    """A running `taut bridge` with its configuration file, and the statistics and notices that it prints."""

    def __init__(self, config, wait=True, within=(), **environment):
        self.within, self.environment = within, {**os.environ, **environment}
        self.config, self.said, self.numbers, self.changed = config, [], {}, threading.Condition()
        self.start(wait)

    def start(self, wait=True):
        self.process = subprocess.Popen(
            [*self.within, TAUT, "bridge", self.config, "--stats", "20ms"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        with self.changed:
            self.said.clear()
        for read, stream in [(self.read, self.process.stdout), (self.hear, self.process.stderr)]:
            threading.Thread(target=read, args=(stream,), daemon=True).start()
        if wait:
            self.until(lambda: any("routes running: " in line for line in self.said))

    def read(self, stream):
        for line in stream:
            numbers = json.loads(line)
            with self.changed:
                self.numbers[numbers["route"]] = numbers
                self.changed.notify_all()

    def hear(self, stream):
        for line in stream:
            with self.changed:
                self.said.append(line.rstrip())
                self.changed.notify_all()

    def until(self, is_so):
        with self.changed:
            self.changed.wait_for(is_so)

    def reaches(self, route, **least):
        """Waits until the statistics of a route reach these values."""
        self.until(lambda: all(self.numbers.get(route, {}).get(name, -1) >= value for name, value in least.items()))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def again(self):
        self.kill()
        self.start()

    def end(self):
        """Stops the bridge with SIGTERM and returns its exit code. Fails if the bridge is still running after 60 seconds."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        return self.process.returncode


class Case:
    """The folder and the programs of a case. `end` stops the programs."""

    def __init__(self, folder, record):
        self.folder, self.record = folder, record
        self.round, self.start, self.made = 0, time.monotonic(), []

    def row(self, *cells):
        """Adds a row to the final table: promise, killed, kills, sent, lost, doubled."""
        self.record("row", cells)

    def keep(self, thing):
        self.made.append(thing)
        return thing

    def nats(self, number=1, settings="", hosts=None, store=None, **options):
        server = self.keep(Nats(f"{self.folder}/nats", number, settings, hosts, store))
        return server, self.keep(Client(server.urls(), **options))

    def rounds(self, most):
        """Yields at most `most` rounds, fewer if the time runs out. `round` counts them."""
        while self.round < most and time.monotonic() < self.start + SECONDS:
            yield self.round
            self.round += 1

    def write(self, text, name="bridge.toml"):
        path = f"{self.folder}/{name}"
        with open(f"{path}.new", "w") as file:
            file.write(text)
        os.replace(f"{path}.new", path)
        return path

    def bridge(self, text, wait=True, **more):
        return self.keep(Bridge(self.write(text), wait, **more))

    def endpoint(self):
        return f"tcp://127.0.0.1:{free_ports(1)[0]}"

    def end(self):
        with contextlib.ExitStack() as ends:
            for thing in self.made:
                # A pyzmq socket has no `end`, and reading that attribute raises an exception.
                ends.callback(thing.close if isinstance(thing, zmq.Socket) else thing.end)


def config(server, *routes):
    """Returns the text of a bridge's configuration file."""
    servers = ", ".join(f'"{url}"' for url in server.urls())
    return f"[nats]\nservers = [{servers}]\n" + "".join(f"\n[[routes]]\n{route.strip()}\n" for route in routes)
