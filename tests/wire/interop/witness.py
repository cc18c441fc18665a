"""A client that must be served despite hostile peers, and the limit of the memory that these peers may cost."""

import contextlib
import pathlib

import zmq
from sides import wait_for_event

# Limit for the memory growth of the process. A peer that announces terabytes must not make us allocate them.
BOUND = 64 << 20

# Events that report a closed connection.
ENDED = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH,
    zmq.EVENT_DISCONNECTED,
)


@contextlib.contextmanager
def bounded_memory():
    """Fails if the process grows by more than BOUND in the `with` block."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # resets the peak of earlier cases
    before = peak_memory()
    yield
    assert peak_memory() - before < BOUND, f"grew from {before} to {peak_memory()} bytes"


def peak_memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


@contextlib.contextmanager
def pull_with_witness(ours, pushing, endpoint="tcp://127.0.0.1:*", options=(), client_options=()):
    """Our PULL with a monitor, and a PUSH of another side. The messages of this PUSH must continue to arrive."""
    pull = ours.socket(zmq.PULL)
    for option, value in options:
        pull.set(option, value)
    monitor = pull.monitor()
    endpoint = pull.bind(endpoint)
    push = pushing.socket(zmq.PUSH)
    for option, value in client_options:
        push.set(option, value)
    push.connect(endpoint)

    def witness():
        push.send(b"witness", b"part")
        assert (got := pull.recv()) == [b"witness", b"part"], got

    witness()
    wait_for_event(monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    with bounded_memory():
        yield pull, endpoint, monitor, witness
        witness()
