"""Runs bursts of jobs on a Salt master and its minions, and prints one line of JSON.

    returns.py MINIONS BURSTS [open|policy]

Each minion answers each burst with 1 MiB. The minions are processes of their own that were forked from one, so Salt is loaded only once. The
master binds to every interface, as it does by default. With `policy`, the master and the minions run with a Tautline policy: both ports
have CURVE, with one key for the master and one for the minions. TAUT names the program `taut`, which makes the keys; with it, "audit"
has the lines of `taut audit` about the master.
"""

import json
import logging
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import salt.client
import salt.exceptions
import salt.scripts
from processes import libraries, processor, tree

SIZE = 1 << 20
READY_SECONDS = 240
MASTER = """
root_dir: {folder}
interface: 0.0.0.0
publish_port: {publish}
ret_port: {returns}
auto_accept: True
max_event_size: 4194304
worker_threads: 3
log_level: error
log_level_logfile: error
"""
MINION = """
id: minion{number}
root_dir: {folder}/minion{number}
master: 127.0.0.1
publish_port: {publish}
master_port: {returns}
module_dirs: [{folder}]
multiprocessing: False
max_event_size: 4194304
grains_cache: True
enable_fqdns_grains: False
enable_gpu_grains: False
log_level: error
log_level_logfile: error
"""
MODULE = """
def data(size):
    return "x" * size
"""
POLICY = """
extends = "loopback"

[[rules]]
name = "master"
call = "bind"
endpoint = "tcp://*"
action = "wrap"
wrap = "master"

[[rules]]
name = "minion"
call = "connect"
endpoint = "tcp://*"
action = "wrap"
wrap = "minion"

[wraps.master]
key = "{folder}/master.key"
clients = "{folder}/minions"

[wraps.minion]
key = "{folder}/minion.key"
servers = {{ "tcp://127.0.0.1:{publish}" = "{folder}/master.pub", "tcp://127.0.0.1:{returns}" = "{folder}/master.pub" }}
"""


def free_ports(count):
    """Returns ports that no socket of this machine is bound to."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("0.0.0.0", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def write(folder, minions):
    """Writes the configuration of the master and of all minions."""
    publish, returns = free_ports(2)
    values = {"folder": folder, "publish": publish, "returns": returns}
    (folder / "modules").mkdir()
    (folder / "modules" / "bulk.py").write_text(MODULE)
    (folder / "master").write_text(MASTER.format(**values))
    for number in range(minions):
        own = folder / f"minion{number}"
        own.mkdir()
        (own / "minion").write_text(MINION.format(number=number, **values))
    return values


def protect(values):
    """Makes the keys and the policy, and puts it into the environment."""
    folder, taut = values["folder"], os.environ["TAUT"]
    (folder / "minions").mkdir()
    for name, public in ("master", folder / "master.pub"), ("minion", folder / "minions" / "minion.pub"):
        public.write_bytes(subprocess.check_output([taut, "keygen", "--out", folder / f"{name}.key"]))
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(**values))
    os.environ["TAUT_POLICY"] = str(policy)


def run_here(function, folder, program):
    """Runs a program of Salt in a forked process and returns its number."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        sys.argv = [program, "-c", str(folder)]
        if program == "salt-minion":
            sys.argv.append("--disable-keepalive")
        os.dup2(os.open(folder / "log", os.O_WRONLY | os.O_CREAT, 0o600), 2)
        os.dup2(2, 1)
        function()
    finally:
        os._exit(1)


def ready_client(folder, minions):
    """Returns a client of the master once all minions answer. A client reads the master's key, so each attempt has a new one."""
    ready, deadline = 0, time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        client = salt.client.LocalClient(c_path=str(folder / "master"))
        try:
            ready = len(client.cmd("*", "test.ping", timeout=5))
        except (salt.exceptions.SaltClientError, salt.exceptions.AuthenticationError):
            time.sleep(0.5)
        if ready == minions:
            return client
    sys.exit(f"returns: only {ready} minions are ready")


def burst(client, minions):
    """Runs a job on all minions. Returns the number of returns and the seconds up to the last of them."""
    start, last, answered = time.perf_counter(), 0, set()
    for answers in client.cmd_iter("*", "bulk.data", [SIZE], timeout=60):
        for minion, answer in answers.items():
            assert answer["ret"] == "x" * SIZE, (minion, str(answer)[:200])
            answered.add(minion)
            last = time.perf_counter() - start
        if len(answered) == minions:
            break
    return len(answered), last


def measure(client, master, minions, bursts):
    """Runs the bursts and returns the figures."""
    burst(client, minions)
    used, times, lost = processor(tree(master)), [], 0
    for _ in range(bursts):
        count, seconds = burst(client, minions)
        times.append(seconds)
        lost += minions - count
    used = processor(tree(master)) - used
    return {
        "returns lost": lost,
        "burst p50 ms": round(statistics.median(times) * 1e3),
        "burst worst ms": round(max(times) * 1e3),
        "master ms a return": round(used / (bursts * minions) * 1e3, 1),
    }


def main():
    minions, bursts, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "open"
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="salt-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        values = write(folder, minions)
        if mode == "policy":
            protect(values)
        master = run_here(salt.scripts.salt_master, folder, "salt-master")
        started = [master]
        started += [run_here(salt.scripts.salt_minion, folder / f"minion{number}", "salt-minion") for number in range(minions)]
        try:
            result = measure(ready_client(folder, minions), master, minions, bursts)
            loaded = libraries(tree(master)), libraries(started[1:])
            assert loaded[0] == loaded[1], loaded
            result["libraries"] = loaded[0]
            if os.environ.get("TAUT"):
                audit = subprocess.run([os.environ["TAUT"], "audit"], stdout=subprocess.PIPE, text=True, check=False).stdout
                result["audit"] = [line for line in audit.splitlines() if any(f":{port} " in line for port in (values["publish"], values["returns"]))]
            print(json.dumps(result), flush=True)
        finally:
            processes = [process for one in started for process in tree(one)]
            for process in processes:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for one in started:
                os.waitpid(one, 0)


if __name__ == "__main__":
    main()
