"""The ten systems: their programs, their faults, and the expected findings.

A system is a list of roles in their start order. A role has arguments for the healthy system and for the broken system. `None` means
that the role is not started. C programs are compiled. SECRET, PUBLIC, OTHER-SECRET and OTHER-PUBLIC stand for keys that each run
generates, PLACE for the folder of the run, `PID ROLE` for a process number, and `PROGRAM NAME` for the path of a compiled program.
"""

import signal
from dataclasses import dataclass


@dataclass
class Role:
    """One program of a system."""

    name: str
    healthy: list | None
    broken: list | None
    # Limit of open files in the broken system. 0 is no limit.
    files: int = 0
    # File of the program. Empty if the role has its name.
    program: str = ""
    # False for a program without ZeroMQ.
    observed: bool = True
    # Folder that a private mount namespace replaces with an empty one, in the broken system.
    hides: str = ""

    @property
    def file(self):
        return self.program or self.name


@dataclass
class System:
    """A system and its fault."""

    name: str
    about: str
    roles: list
    # Role that prints `working` when the system does its work.
    witness: str
    # Expected first finding: its rule, its role, and a pattern for its words.
    rule: str
    where: str
    words: str
    # Role and signal that break the system once it works.
    breaks: tuple = ()
    # Second expected finding: a role, a rule and a pattern for its words.
    also: tuple = ()
    # Conclusion from the view from outside, for the page.
    outside: str = ""
    # True if this conclusion is the cause.
    enough: bool = False
    # Folder of the programs. Empty for the folder with the system's name.
    programs: str = ""

    @property
    def folder(self):
        return self.programs or self.name


SYSTEMS = [
    System(
        "wrong_port",
        "a wrong port",
        [
            Role("dispatch.py", ["5600"], ["5600"]),
            Role("work.py", ["5600"], ["5611"]),
        ],
        witness="work.py",
        rule="wrong-endpoint",
        where="work.py",
        words=r"PULL cannot connect to tcp://127\.0\.0\.1:5611, because no socket listens there; PUSH of dispatch\.py .* listens at tcp://127\.0\.0\.1:5600 .*\d+ failed attempts in \d+ s",
        outside="the programs are not connected; the address and the reason stay unknown",
    ),
    System(
        "wrong_key",
        "a wrong CURVE key",
        [
            Role("vault", ["SECRET"], ["SECRET"]),
            Role("ask", ["PUBLIC"], ["OTHER-PUBLIC"]),
        ],
        witness="ask",
        rule="handshake-failed",
        where="vault",
        words=r"REP cannot complete handshakes with peers that connect to tcp://127\.0\.0\.1:5601: a CURVE key is wrong.*\d+ handshakes? failed.* ZMQ_CURVE_SERVERKEY",
        also=("ask", "handshake-failed", r"REQ cannot complete the handshake with the peer at tcp://127\.0\.0\.1:5601.* ZMQ_CURVE_SERVERKEY"),
        outside="the programs are not connected, as with a wrong port",
    ),
    System(
        "small_hwm",
        "a high-water mark that is too small",
        [
            Role("camera.py", ["3000"], ["5"]),
            Role("screen.py", [], []),
        ],
        witness="screen.py",
        rule="hwm-too-small",
        where="camera.py",
        words=r"PUB drops messages for tcp://127\.0\.0\.1:\d+, which keeps up.*the queue holds 5 messages.* ZMQ_SNDHWM",
        outside="nothing",
    ),
    System(
        "stuck_subscriber",
        "a stuck subscriber",
        [
            Role("prices.py", [], []),
            Role("chart.js", ["--window"], []),
        ],
        witness="chart.js",
        rule="not-received",
        where="chart.js",
        words=r"does not receive from SUB at tcp://127\.0\.0\.1:5603 .*\d+ messages wait, and the program took hardly any for \d+ s",
        outside="`chart.js` does not read",
        enough=True,
    ),
    System(
        "no_subscription",
        "a subscription is missing",
        [
            Role("weather.py", [], []),
            Role("station", ["weather.lund", "weather.rome"], []),
        ],
        witness="station",
        rule="no-subscription",
        where="station",
        words=r"SUB at tcp://127\.0\.0\.1:5604 has no subscription.* ZMQ_SUBSCRIBE",
        outside="nothing",
    ),
    System(
        "out_of_step",
        "REQ and REP are out of step",
        [
            Role("stock.py", [], []),
            Role("shop.py", ["apple"], ["pear"]),
        ],
        witness="shop.py",
        rule="out-of-step",
        where="stock.py",
        words=r"REP at tcp://127\.0\.0\.1:5605 has not replied to .*\d+ calls? w(as|ere) refused",
        outside="nothing",
    ),
    System(
        "wrong_id",
        "a ROUTER sends to a wrong id",
        [
            Role("boss.py", ["digger"], ["diger"]),
            Role("worker.js", ["digger"], ["digger"]),
        ],
        witness="boss.py",
        rule="unroutable",
        where="boss.py",
        words=r"ROUTER .*`diger`.*`digger`",
        outside="nothing",
    ),
    System(
        "stopped_proxy",
        "a proxy whose loop has ended",
        [
            Role("broker", [], []),
            Role("square.py", [], []),
            Role("client.py", [], []),
        ],
        witness="client.py",
        rule="not-received",
        where="broker",
        words=r"has not read ROUTER at tcp://127\.0\.0\.1:5607 since a message arrived from .*1 message waits for \d+ s.*\(a zmq_proxy may have returned",
        breaks=("broker", signal.SIGHUP),
        outside="nothing",
    ),
    System(
        "frozen_proxy",
        "a proxy that is stopped",
        [
            Role("broker", [], []),
            Role("square.py", [], []),
            Role("client.py", [], []),
        ],
        witness="client.py",
        rule="stands-still",
        where="broker",
        words=r"stopped by a signal",
        breaks=("broker", signal.SIGSTOP),
        programs="stopped_proxy",
        outside="`broker` is stopped",
        enough=True,
    ),
    System(
        "linger",
        "ZMQ_LINGER at the exit",
        [
            Role("collect.py", [], None),
            Role("report", ["1000000"], ["5"]),
        ],
        witness="collect.py",
        rule="linger",
        where="report",
        words=r"closed PUSH still has messages for tcp://127\.0\.0\.1:5609.*5 messages, waiting for \d+ s; ZMQ_LINGER lets them wait for ever",
        outside="`report` is not connected; its wait for the exit stays unknown",
    ),
    System(
        "few_files",
        "the limit of open files",
        [
            Role("gate", [], [], files=24),
            Role("crowd.py", [], []),
        ],
        witness="crowd.py",
        rule="too-many-files",
        where="gate",
        words=r"ROUTER at tcp://127\.0\.0\.1:5610 cannot accept peers: Too many open files.*ulimit -n",
        outside="`gate` cannot open another file",
        enough=True,
    ),
]
