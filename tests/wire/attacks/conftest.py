"""Fixtures of the cases: a victim with a good client, and programs that attack the shared memory of `ipc`."""

import pathlib
import subprocess

import pytest
from harness import Stage, Unsupported

HERE = pathlib.Path(__file__).parent


def pytest_addoption(parser):
    parser.addoption("--library", required=True, help="the folder of the libzmq.so.5 under test")
    parser.addoption("--victim", required=True, help="the program that victim.c is built to")


@pytest.fixture
def stage(request, case, tmp_path):
    try:
        made = Stage(case, request.config.getoption("--library"), request.config.getoption("--victim"), tmp_path)
    except Unsupported as reason:
        pytest.skip(str(reason))
    yield made
    made.kill()


@pytest.fixture(scope="session")
def ipc_programs(request, tmp_path_factory):
    """Builds the programs of ipc/, and returns their folder."""
    folder, library = tmp_path_factory.mktemp("ipc"), request.config.getoption("--library")
    for source in (HERE / "ipc").glob("*.c"):
        command = ["gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-function", "-I", HERE.parents[2] / "include"]
        subprocess.run([*command, source, f"{library}/libzmq.so.5", "-pthread", "-o", folder / source.stem], check=True)
    return folder
