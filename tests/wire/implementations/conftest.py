"""Uses the exchanges, our side and the keys of the interoperability tests."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "interop"))


def pytest_addoption(parser):
    parser.addoption("--library", required=True, help="the libzmq.so.5 under test")
    parser.addoption("--peers", required=True, help="the folder of the programs that run.sh builds")
