"""Fixtures with the two sides of a case. They close at its end."""

import pytest
from sides import Ours, Theirs


def pytest_addoption(parser):
    parser.addoption("--library", required=True, help="the libzmq.so.5 under test")
    parser.addoption("--reference", required=True, help="libzmq with WebSocket, which the one in the pyzmq wheel lacks")


@pytest.fixture
def ours(request):
    with Ours(request.config.getoption("--library")) as side:
        yield side


@pytest.fixture
def theirs():
    with Theirs() as side:
        yield side


@pytest.fixture
def other(request):
    """The other side of a case. The parameter is `--library` for the same library, or `--reference`."""
    with Ours(request.config.getoption(request.param)) as side:
        yield side
