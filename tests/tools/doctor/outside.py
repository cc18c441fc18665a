"""Observes the programs of a system from outside: connections, kernel queues, open files and process states."""

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

# Number of samples, the pause between them in seconds, and the number of last samples that must all show a queue.
PICTURES, PAUSE, LAST = 16, 0.5, 4


def look(run):
    run.make_broken()
    if not run.broken:
        run.works()
    pictures = []
    for _ in range(PICTURES):
        pictures.append(picture(run))
        time.sleep(PAUSE)
        run.signal()
    ends = set().union(*(one["connections"] for one in pictures))
    seen = {"connections": max(len(one["connections"]) for one in pictures)}
    seen["come and go"] = len(ends) - seen["connections"]
    for queue in ("receive", "send"):
        # Passing traffic is missing in at least one of the last samples.
        least = {role: min(one[queue].get(role, 0) for one in pictures[-LAST:]) for role in run.processes}
        seen[queue] = {role: amount for role, amount in least.items() if amount > 0}
    seen["files"] = {role: max(one["files"].get(role, 0) for one in pictures) for role in run.processes}
    seen["limits"] = {role.name: role.files for role in run.system.roles if role.files and run.broken}
    seen["stopped"] = sorted(set().union(*(one["stopped"] for one in pictures)))
    return seen


def picture(run):
    now = {"connections": set(), "receive": {}, "send": {}, "files": {}, "stopped": set()}
    roles = {process.pid: role for role, process in run.processes.items()}
    shown = subprocess.run([*run.enter, "ss", "-tanpH"], capture_output=True, text=True, check=True).stdout
    for line in shown.splitlines():
        state, receive, send, local, remote, *users = line.split()
        pids = [int(pid) for pid in re.findall(r"pid=(\d+)", " ".join(users))]
        role = next((roles[pid] for pid in pids if pid in roles), None)
        if state == "ESTAB":
            now["connections"].add(tuple(sorted((local, remote))))
            if role:
                now["receive"][role] = now["receive"].get(role, 0) + int(receive)
                now["send"][role] = now["send"].get(role, 0) + int(send)
    for pid, role in roles.items():
        with contextlib.suppress(FileNotFoundError):
            now["files"][role] = len(os.listdir(f"/proc/{pid}/fd"))
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
                now["stopped"].add(role)
    return now


def differences(healthy, broken):
    """Returns the differences of the broken system from the healthy one, as text."""
    seen = []
    if broken["connections"] < healthy["connections"]:
        seen.append(f"{broken['connections']} connections, not {healthy['connections']}")
    elif broken["connections"] > healthy["connections"]:
        seen.append(f"{broken['connections']} connections")
    if broken["come and go"] > healthy["come and go"] + healthy["connections"]:
        seen.append("connections come and go")
    for queue, of in (("receive", "{} bytes that `{}` has not read"), ("send", "{} unsent bytes of `{}`")):
        for role, amount in broken[queue].items():
            if amount > 10 * healthy[queue].get(role, 0):
                seen.append(of.format(amount, role))
    for role, limit in broken["limits"].items():
        if broken["files"][role] >= limit:
            seen.append(f"`{role}` has {broken['files'][role]} files open, of {limit}")
    seen.extend(f"`{role}` is in the state T" for role in broken["stopped"])
    return "; ".join(seen)
