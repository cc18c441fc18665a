import contextlib

import pytest
from programs import Peer


@pytest.fixture
def start(tmp_path):
    """Starts peer programs (`programs.Peer`) in the folder of the test, and ends them with it."""
    with contextlib.ExitStack() as peers:
        yield lambda *arguments, **more: peers.enter_context(Peer(tmp_path, *arguments, **more))
