"""Attacks of an ipc peer with descriptors and shared memory leave good clients served. Each program of ipc/ has its own victim."""

import os
import subprocess

import pytest

RUNS = [
    "held_lock socket",
    "held_lock memory",
    "held_lock offer",
    "held_lock socket handshake",
    "held_lock memory handshake",
    "held_lock offer handshake",
    "lingering",
    "lingering handshake",
    "lingering 60",
    "strangers",
    "bells",
    "full_ring",
    "lies ahead",
    "lies far",
    "lies back",
    "lies early",
    "lies never",
    "lies hole",
    "lies storm",
]


@pytest.mark.parametrize("run", RUNS)
def test_ipc(request, ipc_programs, run):
    program, *words = run.split()
    command = [ipc_programs / program, *words]
    if os.environ.get("OLD_KERNEL"):
        command.insert(0, ipc_programs / "without_option")
    environment = dict(os.environ, LD_LIBRARY_PATH=request.config.getoption("--library"))
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if ended.returncode == 77:
        pytest.skip(ended.stdout.strip())
    assert ended.returncode == 0, ended.stdout
