"""Eighteen broken systems, and six busy ones that are healthy. The tests run `taut doctor` with its default options, as operators do.

The cause is named if the first finding is a warning or trouble, is about one of the places of `cause_at`, and matches `words`. The
pattern is loose, so that findings can be reworded. It requires the facts that an operator needs to repair the system.
"""

from dataclasses import dataclass, field

from systems import Role

# Systems whose cause `taut doctor` does not name first yet, and healthy systems with a false alarm. The text tells what is missing. The
# test of such a system fails if `taut doctor` is right: then remove the line here.
NOT_YET = {}


@dataclass
class Cause:
    """A broken system, with the first finding that `taut doctor` must have."""

    name: str
    about: str
    roles: list
    # Role that prints `working` when the system without the fault does its work.
    witness: str
    # The fault has occurred if a counter has reached a number: (role, type of socket, field, number). `broken`: if the witness prints
    # this word.
    begins: tuple | str
    # Possible places of the cause: a role and a type of socket. Empty for any socket.
    cause_at: list
    words: str
    # Required rule. Empty for any rule.
    rule: str = ""

    # Members that programs.Run reads.
    breaks = ()

    @property
    def folder(self):
        return self.name


@dataclass
class Healthy:
    """A healthy system. It must have neither warnings nor trouble."""

    name: str
    about: str
    roles: list
    witness: str
    # Time of observation in seconds.
    seconds: int = 15
    breaks: tuple = field(default=(), init=False)

    @property
    def folder(self):
        return self.name


CAUSES = [
    Cause(
        "lru",
        "one of two workers behind a broker takes a request and never answers",
        [
            Role("broker.py", [], []),
            Role("w1", ["w1"], ["w1"], program="worker.py"),
            Role("w2", ["w2"], ["w2", "--printer-jam"], program="worker.py"),
            Role("client.py", [], []),
            Role("other client", [], [], program="client.py"),
        ],
        witness="client.py",
        begins=("w2", "DEALER", "messages_in", 1),
        cause_at=[("w2", "DEALER")],
        words=r"not (read|received?|taken|answered|replied)|no (answer|reply)|never (answer|repl)|stuck|hardly any",
    ),
    Cause(
        "typo",
        "a SUB subscribes to `market.trade.`, and the topics are `market.trades.N`",
        [
            Role("market.py", [], []),
            Role("ticker.js", ["market.trades."], ["market.trade."]),
        ],
        witness="ticker.js",
        begins=("ticker.js", "SUB", "peers", 1),
        cause_at=[("ticker.js", "SUB"), ("market.py", "PUB")],
        words=r"(?i)market\.trade\..*(publish|match|market\.trades)|publish.*market\.trade\.|\b(no|none|nothing|never)\b[^.]{0,60}\bmatch",
    ),
    Cause(
        "pulls",
        "one of three PULLs stops receiving",
        [
            Role("source.py", [], []),
            Role("r1", ["0"], ["0"], program="resizer"),
            Role("r2", ["0"], ["0"], program="resizer"),
            Role("r3", ["0"], ["20"], program="resizer"),
        ],
        witness="r1",
        begins=("r3", "PULL", "queued_in", 20),
        cause_at=[("r3", "PULL")],
        words=r"not (read|receiv|take)|stopped (reading|receiving)|hardly any|stuck",
    ),
    Cause(
        "poison",
        "a message kills each worker, and a supervisor restarts it",
        [
            Role("jobs.py", ["60/2", "60/3"], ["60/0"]),
            Role("supervisor.py", ["PROGRAM divide"], ["PROGRAM divide"], observed=False),
        ],
        witness="jobs.py",
        begins=("jobs.py", "ROUTER", "accepted", 6),
        cause_at=[("divide", ""), ("jobs.py", "ROUTER")],
        words=r"restart|crash(es|ed)? (again|repeatedly|\d+ times)|\d+ (times|crashes|processes|programs|workers)\b.*(crash|ended|died|killed)"
        r"|(crash|ended|died|killed).*\b\d+ (times|crashes|processes|programs|workers)",
    ),
    Cause(
        "heartbeat",
        "a server stands still for 1.5 s again and again, and its clients have heartbeats of 0.75 s",
        [
            Role("state.py", [], []),
            Role("c1", [], [], program="client.py"),
            Role("c2", [], [], program="client.py"),
            Role("snapshots.py", None, ["PID state.py"], observed=False),
        ],
        witness="c1",
        begins=("c1", "DEALER", "reconnects", 2),
        cause_at=[("c1", "DEALER"), ("c2", "DEALER"), ("state.py", "ROUTER")],
        words=r"(?i)heartbeat",
    ),
    Cause(
        "immediate",
        "a PUSH with ZMQ_IMMEDIATE has a wrong port, and its program ignores EAGAIN",
        [
            Role("store.py", [], []),
            Role("sensor", ["5627"], ["5626"]),
        ],
        witness="store.py",
        begins=("sensor", "PUSH", "failed_connects", 5),
        cause_at=[("sensor", "PUSH")],
        words=r"(cannot connect to|nobody|nothing|no (program|socket|process)).*127\.0\.0\.1:5626",
    ),
    Cause(
        "own_keys",
        "a CURVE client has its own public and secret key the wrong way round",
        [
            Role("ledger.py", ["SECRET"], ["SECRET"]),
            Role("clerk.py", ["PUBLIC", "OTHER-PUBLIC", "OTHER-SECRET"], ["PUBLIC", "OTHER-SECRET", "OTHER-PUBLIC"]),
        ],
        witness="clerk.py",
        begins=("clerk.py", "REQ", "failed_handshakes", 3),
        cause_at=[("clerk.py", "REQ")],
        words=r"(?i)public.{0,90}(belong|match|fit|pair|swap|not the).{0,90}secret|secret.{0,90}(belong|match|fit|pair|swap|not the).{0,90}public|swapped",
    ),
    Cause(
        "rep_port",
        "a SUB connects to two PUBs; one has moved, and a REP has its port",
        [
            Role("q1", ["XETRA", "5630"], ["XETRA", "5630"], program="quotes.py"),
            Role("q2", ["NYSE", "5631"], ["NYSE", "5632"], program="quotes.py"),
            Role("orders.py", ["5633"], ["5631"]),
            Role("trader.py", ["5633"], ["5631"]),
            Role("board.py", [], []),
        ],
        witness="board.py",
        begins=("board.py", "SUB", "failed_handshakes", 1),
        cause_at=[("board.py", "SUB")],
        words=r"5631\b.*\bREP\b|\bREP\b.*5631\b",
    ),
    Cause(
        "delimiter",
        "a DEALER sends to a REP without an empty delimiter",
        [
            Role("clock.py", [], []),
            Role("ask", ["--delimiter"], []),
        ],
        witness="ask",
        begins=("ask", "DEALER", "messages_out", 40),
        cause_at=[("ask", "DEALER"), ("clock.py", "REP")],
        words=r"(?i)delimiter|empty (first )?(frame|part)|envelope",
    ),
    Cause(
        "proxy_sides",
        "a proxy has its XSUB at the port of the subscribers, and its XPUB at the port of the publishers",
        [
            Role("exchange", ["5636", "5637"], ["5637", "5636"]),
            Role("n1", [], [], program="news.py"),
            Role("n2", [], [], program="news.py"),
            Role("reader.py", [], []),
        ],
        witness="reader.py",
        begins=("n1", "PUB", "failed_handshakes", 1),
        cause_at=[("exchange", "")],
        # Or the words name the two sides of the proxy and the two kinds of peers.
        words=r"(?i)swap|backwards?\b|wrong way|revers|other way|interchang|exchanged"
        r"|(?=.*\bXSUB\b)(?=.*\bXPUB\b)(?=.*(\bPUBs?\b|publisher))(?=.*(\bSUBs?\b|subscriber))",
    ),
    Cause(
        "other_mount",
        "a REP is bound to an ipc path in a mount namespace of its own (PrivateTmp)",
        [
            Role("orders.py", ["PLACE/run/orders"], ["PLACE/run/orders"], hides="PLACE/run"),
            Role("shop.py", ["PLACE/run/orders"], ["PLACE/run/orders"]),
        ],
        witness="shop.py",
        begins=("shop.py", "REQ", "failed_connects", 5),
        cause_at=[("orders.py", "REP"), ("shop.py", "REQ")],
        words=r"(?i)mount|PrivateTmp|namespace",
    ),
    Cause(
        "linger_0",
        "each event has its own PUSH, which is closed at once with ZMQ_LINGER 0",
        [
            Role("journal.py", [], []),
            Role("events", ["-1"], ["0"]),
        ],
        witness="journal.py",
        begins=("journal.py", "PULL", "accepted", 40),
        cause_at=[("events", "")],
        words=r"(?i)(clos|linger).*(discard|unsent|lost|drop|threw|thrown)|(discard|unsent|lost|drop).*(clos|linger)",
    ),
    Cause(
        "same_id",
        "three DEALERs have the same routing id",
        [
            Role("shop.py", [], []),
            Role("t1", ["till-1"], ["till"], program="till.py"),
            Role("t2", ["till-2"], ["till"], program="till.py"),
            Role("t3", ["till-3"], ["till"], program="till.py"),
        ],
        witness="shop.py",
        begins=("shop.py", "ROUTER", "accepted", 3),
        cause_at=[("shop.py", "ROUTER"), ("t1", "DEALER"), ("t2", "DEALER"), ("t3", "DEALER")],
        words=r"(\b[23]\b|[Tt]wo|[Tt]hree|several|same|share|already|duplicate|another).*\btill\b"
        r"|\btill\b.*(\b([23]|two|three|several) (peers|sockets|programs|DEALERs)|same|share|already|duplicate|another|twice)",
    ),
    Cause(
        "swallow",
        "a program goes on after ZMQ_RCVTIMEO of a REQ, and ignores EFSM",
        [
            Role("prices.py", [], ["--slow"]),
            Role("cart.py", [], []),
        ],
        witness="cart.py",
        begins=("cart.py", "REQ", "out_of_turn", 5),
        cause_at=[("cart.py", "REQ")],
        words=r"EFSM|out of (turn|step)|sends again before",
    ),
    Cause(
        "no_hwm",
        "a queue without a high-water mark only grows, because the receiver is slower",
        [
            Role("disk.py", ["0"], ["5"]),
            Role("sensors.py", [], []),
        ],
        witness="disk.py",
        begins=("sensors.py", "PUSH", "queued_out", 5000),
        cause_at=[("sensors.py", "PUSH"), ("disk.py", "PULL")],
        words=r"(?i)(queue|wait|memory).*(grow|increas|longer and longer|without (a )?limit|no limit|unlimited|no high-water mark|no HWM)"
        r"|(grow|increas).*(queue|memory)",
    ),
    Cause(
        "fork",
        "a forked process uses a socket of its parent: each call fails with EINTR",
        [
            Role("answers.py", [], []),
            Role("desk", ["--own"], []),
        ],
        witness="desk",
        begins="broken",
        cause_at=[("desk", "")],
        words=r"(?i)\bfork|child",
    ),
    Cause(
        "wrong_name",
        "a host name resolves to another host",
        [
            Role("stock.py", [], []),
            Role("shop.py", ["stock.test"], ["old-stock.test"]),
        ],
        witness="shop.py",
        begins=("shop.py", "REQ", "failed_connects", 5),
        cause_at=[("shop.py", "REQ")],
        words=r"old-stock\.test.*127\.0\.0\.9|127\.0\.0\.9.*old-stock\.test",
    ),
    Cause(
        "conflate",
        "a SUB with ZMQ_CONFLATE gets messages of two parts, and only their last parts arrive",
        [
            Role("gauge.py", [], []),
            Role("dial.py", [], ["--latest"]),
        ],
        witness="dial.py",
        begins="broken",
        cause_at=[("dial.py", "SUB"), ("gauge.py", "PUB")],
        words=r"(?i)conflate.*(multipart|multi-part|parts?\b)|(multipart|multi-part|parts?\b).*conflate",
    ),
]

HEALTHY = [
    Healthy(
        "busy_proxy",
        "ROUTER/DEALER proxy, two REPs and three REQs at full speed",
        [
            Role("broker", [], []),
            *(Role(f"w{number}", [], [], program="worker.py") for number in (1, 2)),
            *(Role(f"c{number}", [], [], program="client.py") for number in (1, 2, 3)),
        ],
        witness="c1",
    ),
    Healthy(
        "busy_pipeline",
        "PUSH that is always ahead of its two workers, with a high-water mark of 50",
        [
            Role("source.py", [], []),
            *(Role(f"w{number}", [], [], program="worker.py") for number in (1, 2)),
        ],
        witness="w1",
    ),
    Healthy(
        "slow_rep",
        "REP that takes 20 s for each request",
        [
            Role("film.py", [], []),
            Role("studio.py", [], []),
        ],
        witness="studio.py",
        seconds=45,
    ),
    Healthy(
        "displays",
        "SUBs with ZMQ_CONFLATE, idle DEALERs, and a PUB without listeners",
        [
            Role("plant.py", [], []),
            *(Role(f"d{number}", [], [], program="display.py") for number in (1, 2)),
        ],
        witness="d1",
    ),
    Healthy(
        "short_clients",
        "REQs of Node.js that come and go",
        [
            Role("search.py", [], []),
            Role("visitors.js", [], []),
        ],
        witness="visitors.js",
    ),
    Healthy(
        "batch_pull",
        "PULL that empties its queue every 10 s",
        [
            Role("billing.py", [], []),
            Role("meters.py", [], []),
        ],
        witness="billing.py",
        seconds=25,
    ),
]
