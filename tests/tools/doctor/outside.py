"""What can be seen of the programs of a system without their help: connections, queues of the kernel, open files, states of processes."""

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

# Number of pictures and the pause between them. A queue counts if it is there in the last pictures.
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
        # Traffic that passes is not in all of the last pictures.
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
    """What the broken system shows that the healthy one does not."""
    seen = []
    if broken["connections"] < healthy["connections"]:
        seen.append(f"{broken['connections']} connections, not {healthy['connections']}")
    elif broken["connections"] > healthy["connections"]:
        seen.append(f"{broken['connections']} connections")
    if broken["come and go"] > healthy["come and go"] + healthy["connections"]:
        seen.append("connections come and go")
    for queue, of in (("receive", "{} bytes that `{}` does not take"), ("send", "{} bytes of `{}` that are not sent")):
        for role, amount in broken[queue].items():
            if amount > 10 * healthy[queue].get(role, 0):
                seen.append(of.format(amount, role))
    for role, limit in broken["limits"].items():
        if broken["files"][role] >= limit:
            seen.append(f"`{role}` has {broken['files'][role]} files open, of {limit}")
    seen.extend(f"`{role}` is in the state T" for role in broken["stopped"])
    return "; ".join(seen)
