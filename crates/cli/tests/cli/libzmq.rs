//! Tests against libzmq 4.3.5 from pyzmq. `tests/tools/cli/run.sh` provides it and sets
//! `TAUT_PYTHON` to its Python.

use std::process::{Command, Stdio};

use crate::support::{Running, TempDir, private, run, start, test};

/// Starts a Python program with `zmq`. It can create sockets with `bound(type)`, which prints the
/// endpoint.
pub fn python(program: &str) -> Running {
    const HEAD: &str = "
import sys, zmq
context = zmq.Context()
def bound(kind, **options):
    socket = context.socket(kind)
    for name, value in options.items():
        setattr(socket, name, value)
    port = socket.bind_to_random_port('tcp://127.0.0.1')
    print('bound to tcp://127.0.0.1:%d' % port, file=sys.stderr, flush=True)
    return socket
";
    let python =
        std::env::var("TAUT_PYTHON").expect("TAUT_PYTHON names a Python with pyzmq: tests/tools/cli/run.sh");
    let mut command = Command::new(python);
    command.arg("-c").arg(format!("{HEAD}{program}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command)
}

#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn messages_go_both_ways() {
    test("messages_go_both_ways", || {
        let mut peer = python("s = bound(zmq.PULL)\nprint(s.recv_multipart(), flush=True)");
        assert_eq!(run(&["push", &peer.bound(), "-p", "a", "-p", "b"]).code, Some(0));
        assert_eq!(peer.line(), "[b'a', b'b']");
        let mut peer = python("s = bound(zmq.PUSH)\ns.send_multipart([b'a', b'b'])\ncontext.destroy(-1)");
        assert_eq!(run(&["pull", "--connect", &peer.bound(), "-n", "1"]).lines(), ["a\tb"]);
    });
}

#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn questions_and_news() {
    test("questions_and_news", || {
        let mut peer = python("s = bound(zmq.REP)\ns.send(s.recv().upper())\ncontext.destroy(-1)");
        assert_eq!(run(&["req", &peer.bound(), "hello"]).lines(), ["HELLO"]);
        let mut peer = python("s = bound(zmq.REQ)\ns.send(b'who?')\nprint(s.recv(), flush=True)");
        assert_eq!(run(&["rep", "--connect", &peer.bound(), "me", "-n", "1"]).lines(), ["who?"]);
        assert_eq!(peer.line(), "b'me'");
        let mut peer = python("s = bound(zmq.SUB)\ns.subscribe(b'a')\nprint(s.recv(), flush=True)");
        assert_eq!(run(&["pub", "--connect", &peer.bound(), "b 1", "a 2"]).code, Some(0));
        assert_eq!(peer.line(), "b'a 2'");
        let mut peer =
            python("s = bound(zmq.XPUB)\nprint(s.recv(), flush=True)\ns.send(b'a 3')\ncontext.destroy(-1)");
        assert_eq!(run(&["sub", &peer.bound(), "-s", "a", "-n", "1"]).lines(), ["a 3"]);
    });
}

#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn ping_tells_what_libzmq_is() {
    test("ping_tells_what_libzmq_is", || {
        for (kind, round_trip) in [
            ("ROUTER", true),
            ("REP", true),
            ("PUB", true),
            ("SUB", true),
            ("PULL", true),
            ("DEALER", false),
            ("PUSH", false),
        ] {
            let mut peer =
                python(&format!("s = bound(zmq.{kind}, identity=b'me')\ns.poll()\ncontext.term()"));
            let at = peer.bound();
            let ended = run(&["ping", &at]);
            let lines = ended.lines();
            assert_eq!(lines[0], format!("{at} is a {kind}"));
            assert!(lines[1].starts_with("  ZMTP 3.1, mechanism NULL, "), "{ended:?}");
            assert_eq!(ended.text().contains("  round trip "), round_trip, "{ended:?}");
        }
    });
}

#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn curve_and_plain_with_libzmq() {
    test("curve_and_plain_with_libzmq", || {
        let folder = TempDir::new();
        let path = folder.path().join("client");
        let path = path.to_str().unwrap();
        run(&["keygen", "--out", path]);
        let server = "
public, secret = zmq.curve_keypair()
print(public.decode(), flush=True)
s = bound(zmq.REP, curve_server=1, curve_secretkey=secret)
while True: s.send(s.recv().upper())
";
        let mut peer = python(server);
        let (key, at) = (peer.line(), peer.bound());
        let asked = run(&["req", &at, "hello", "--curve-server-key", &key, "--curve-key-file", path]);
        assert_eq!(asked.lines(), ["HELLO"]);
        let pinged = run(&["ping", &at, "--curve-server-key", &key]);
        assert!(pinged.text().contains("is a REP") && pinged.text().contains("  round trip "), "{pinged:?}");
        run(&["ping", &at]).failed(1, &["uses the mechanism CURVE, not NULL"]);
        let other = run(&["keygen"]).lines()[1].split('"').nth(1).unwrap().to_owned();
        let wrong = run(&["ping", &at, "--curve-server-key", &other, "-w", "2"]);
        assert!(wrong.err.contains("--curve-server-key is probably not the public key"), "{wrong:?}");

        let mut rep = start(&[
            "rep",
            "tcp://127.0.0.1:*",
            "--echo",
            "--curve-server",
            "--curve-key-file",
            path,
            "-n",
            "1",
        ]);
        let public = std::fs::read_to_string(path).unwrap().split('"').nth(1).unwrap().to_owned();
        let client = format!(
            "s = context.socket(zmq.REQ)\ns.curve_serverkey = {public:?}.encode()\n\
             s.curve_publickey, s.curve_secretkey = zmq.curve_keypair()\ns.connect({:?})\ns.send(b'hi')\nprint(s.recv())",
            rep.bound()
        );
        assert_eq!(python(&client).end().lines(), ["b'hi'"]);
        assert_eq!(rep.end().code, Some(0));
    });
}

#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn plain_with_libzmq_at_either_end() {
    test("plain_with_libzmq_at_either_end", || {
        let folder = TempDir::new();
        let file = |name: &str, text: &str| private(&folder, name, text);
        let (users, right, wrong) =
            (file("users", "joe:swordfish"), file("right", "swordfish"), file("wrong", "x"));
        let mut peer = python(
            "from zmq.auth.thread import ThreadAuthenticator
judge = ThreadAuthenticator(context)
judge.start()
judge.configure_plain(domain='*', passwords={'joe': 'swordfish'})
s = bound(zmq.REP, plain_server=1)
while True: s.send(s.recv().upper())
",
        );
        let at = peer.bound();
        let asking = ["req", &at, "hello", "-q", "--plain", "joe", "--plain-password-file"];
        assert_eq!(run(&[&asking[..], &[&right]].concat()).lines(), ["HELLO"]);
        let pinged = run(&["ping", &at, "--plain", "joe", "--plain-password-file", &right]);
        assert!(
            pinged.text().contains("mechanism PLAIN") && pinged.text().contains("  round trip "),
            "{pinged:?}"
        );
        run(&["ping", &at, "--plain", "joe", "--plain-password-file", &wrong])
            .failed(1, &["refused the connection (400)"]);
        run(&[&asking[..], &[&wrong, "-w", "1"]].concat()).failed(3, &["no reply arrived"]);

        let mut rep =
            start(&["rep", "tcp://127.0.0.1:*", "--echo", "--out", "jsonl", "--plain-users", &users]);
        let at = rep.bound();
        let client = |password: &str| {
            python(&format!(
                "s = context.socket(zmq.REQ)\ns.linger = 0\ns.plain_username, s.plain_password = b'joe', {password:?}.encode()\n\
                 s.connect({at:?})\ns.send(b'hi')\nprint(s.recv() if s.poll(1000) else 'nothing')"
            ))
        };
        assert_eq!(client("swordfish").end().lines(), ["b'hi'"]);
        assert!(rep.line().contains("\"user\":\"joe\""));
        assert_eq!(client("x").end().lines(), ["nothing"]);
    });
}

#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn bench_with_libzmq_at_the_other_end() {
    test("bench_with_libzmq_at_the_other_end", || {
        let mut peer =
            python("s = bound(zmq.PULL)\nfor n in range(1000): s.recv()\nprint('all', flush=True)");
        assert!(
            run(&["bench", &peer.bound(), "--end", "send", "-n", "1000"]).lines()[1].contains("messages/s")
        );
        assert_eq!(peer.line(), "all");
        let mut peer =
            python("s = bound(zmq.PUSH)\nfor n in range(1000): s.send(b'x' * 64)\ncontext.destroy(-1)");
        let at = peer.bound();
        assert!(
            run(&["bench", &at, "--end", "receive", "--connect", "-n", "1000"]).lines()[1]
                .contains("messages/s")
        );
        let mut peer = python("s = bound(zmq.REP)\nwhile True: s.send(s.recv())");
        assert!(
            run(&["bench", &peer.bound(), "--end", "ask", "-r", "100"]).lines()[1]
                .contains("(100 round trips)")
        );
    });
}

/// Tautline's library. `run` finds it without an option; `tests/tools/cli/run.sh` has built it.
#[test]
#[ignore = "needs libzmq: tests/tools/cli/run.sh"]
fn pyzmq_runs_on_tautline() {
    test("pyzmq_runs_on_tautline", || {
        let python = std::env::var("TAUT_PYTHON").unwrap();
        let program = "import ctypes, sys, zmq
context = zmq.Context()
s = context.socket(zmq.REP)
s.bind('tcp://127.0.0.1:*')
print(zmq.has('tautline'), s.last_endpoint.decode(), flush=True)
s.send(s.recv())
s.close(); context.term()
";
        let mut command = crate::support::taut(&["run", &python, "-c", program]);
        command.env("TAUT_LIBRARY", std::env::var("TAUT_LIBRARY").unwrap());
        let mut running = Running::start(command);
        let line = running.line();
        let (has, at) = line.split_once(' ').unwrap();
        assert_eq!(has, "True");
        running.notice("runs on Tautline");
        assert_eq!(run(&["req", at, "-q", "hello"]).lines(), ["hello"]);
        assert_eq!(running.end().code, Some(0));
    });
}
