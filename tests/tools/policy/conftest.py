import contextlib

import pytest
from programs import Peer


@pytest.fixture
def start(tmp_path):
    """Returns a function that starts peer programs (`programs.Peer`) in the test's folder. They end with the test."""
    with contextlib.ExitStack() as peers:
        yield lambda *arguments, **more: peers.enter_context(Peer(tmp_path, *arguments, **more))
