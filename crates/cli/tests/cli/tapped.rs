//! Observes real programs: other `taut` processes, which use the same library.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::Signal;
use tautline_observe::tap::{Direction, Frame, MANY, MessageCopy, Part, Request};

use crate::observed::{Told, World};
use crate::support::{Running, run, test};
use crate::terminal::{read_until, terminal_of};
use crate::top::Session;

const AT: &str = "tcp://127.0.0.1:*";

/// Starts an observed command.
pub fn observed(world: &World, args: &[&str]) -> Running {
    let mut command = world.command(args);
    command.env("TAUT_OBSERVE", "1");
    Running::start(command)
}

#[test]
fn a_program_is_seen_while_it_runs() {
    test("a_program_is_seen_while_it_runs", || {
        let world = World::new();
        let mut pull = observed(&world, &["pull", AT]);
        let at = pull.bound();
        assert_eq!(run(&["push", &at, "hello"]).code, Some(0));
        assert_eq!(pull.line(), "hello");
        let pid = pull.id().to_string();
        // The counters file is updated four times a second.
        while !world.run(&["show", &pid]).text().contains(", in 1 (") {}
        let shown = world.run(&["show", &pid]).text();
        assert!(shown.contains(&format!("taut ({pid}), Tautline ")) && shown.contains(": PULL"), "{shown}");
        assert!(shown.contains(&format!("bound to {at}")), "{shown}");
        assert!(world.run(&["ps"]).text().contains(&pid));
        pull.signal(Signal::TERM);
        assert_eq!(pull.end().code, Some(0));
        assert!(!world.run(&["ps"]).text().contains(&pid), "it has taken its file away");
    });
}

#[test]
fn doctor_reports_problems_of_a_program() {
    test("doctor_reports_problems_of_a_program", || {
        let world = World::new();
        let at = tautline_testkit::endpoint::tcp();
        let push = observed(&world, &["push", &at, "x"]);
        let pid = push.id().to_string();
        let found = loop {
            let ended = world.run(&["doctor", &pid, "--for", "0"]);
            if ended.code == Some(4) && ended.text().contains("cannot connect") {
                break ended.text();
            }
        };
        assert!(found.contains(&at) && found.contains("No program listens there"), "{found}");
    });
}

#[test]
fn messages_of_a_program_are_seen() {
    test("messages_of_a_program_are_seen", || {
        let world = World::new();
        let mut rep = observed(&world, &["rep", AT, "--echo"]);
        let (at, pid) = (rep.bound(), rep.id().to_string());
        until_seen(&world, &pid);
        let tap = |args: &[&str]| tap(&world, &pid, args);
        let both = tap(&["-n", "4"]);
        let out = tap(&["-n", "1", "--direction", "out", "--prefix", "two", "--format", "jsonl"]);
        let cut = tap(&["-n", "1", "--bytes", "2", "--direction", "in"]);
        assert_eq!(run(&["req", &at, "-q", "one", "two"]).lines(), ["one", "two"]);
        let ends = |line: &String| line.split_once(' ').unwrap().1.split_once(' ').unwrap().1.to_owned();
        let lines: Vec<String> = both.end().lines().iter().map(ends).collect();
        assert_eq!(lines, ["in  one", "out one", "in  two", "out two"]);
        let line: serde_json::Value = serde_json::from_str(&out.end().lines()[0]).unwrap();
        assert_eq!((&line["parts"][0], &line["direction"]), (&"two".into(), &"out".into()));
        assert!(cut.end().lines()[0].ends_with(" in  on… (of 3 bytes)"));
        assert_eq!(rep.line(), "one");
        // The program ends while it is tapped.
        let left = tap(&["-n", "1"]);
        rep.signal(Signal::TERM);
        left.end().failed(1, &["the program has ended"]);
    });
}

#[test]
fn a_tap_that_misses_refuses_or_talks_nonsense_is_told() {
    test("a_tap_that_misses_refuses_or_talks_nonsense_is_told", || {
        let world = World::new();
        let path = world.folder.path().join("tap");
        let mut told = Told::new("news");
        told.socket(3, "PUB");
        told.process.tap = path.to_str().unwrap().to_owned();
        told.write(&mut world.file(None));
        let own = std::process::id().to_string();
        run_once(&path, |request| {
            assert_eq!((request.socket, request.every, &request.prefix[..]), (Some(3), 2, &b"a"[..]));
            let part = Part { length: 1, bytes: b"\x1b".to_vec() };
            let copy =
                MessageCopy { at: 0, socket: 3, peer: MANY, direction: Direction::Out, parts: vec![part] };
            let missed = Frame::Missed { count: 9, too_large: 2 };
            [b"OK\n".to_vec(), missed.to_bytes(), Frame::Copy(copy).to_bytes()].concat()
        });
        let ended = world.run(&["tap", &format!("{own}/3"), "--every", "2", "-p", "a"]);
        assert_eq!(ended.lines(), ["1970-01-01T00:00:00.000000Z 3 out \\x1b"]);
        for text in [
            "2 messages were missed, because they are larger than 4 MiB: --bytes N shows",
            "7 messages were missed, because taut reads more slowly than the program",
            "has ended",
        ] {
            assert!(ended.err.contains(text), "{text} in {ended:?}");
        }
        run_once(&path, |_| b"ERROR too many\n".to_vec());
        world.run(&["tap", &own]).failed(1, &["refuses the tap: ERROR too many"]);
        run_once(&path, |_| [&b"OK\n"[..], &[255; 40]].concat());
        world.run(&["tap", &own]).failed(1, &["cannot read from the tap: "]);
        let _ = std::fs::remove_file(&path);
        world.run(&["tap", &own]).failed(1, &["No such file"]);
        world.run(&["tap", &format!("{own}/4")]).failed(2, &["has no socket 4"]);
    });
}

/// Waits until the counters file of a process contains a socket. Returns it as JSON.
pub fn until_seen(world: &World, pid: &str) -> serde_json::Value {
    loop {
        let shown = world.run(&["show", "--json", pid]);
        let object: serde_json::Value = serde_json::from_str(&shown.text()).unwrap_or_default();
        if !object["sockets"][0].is_null() {
            return object;
        }
    }
}

/// Returns a tap that has begun.
pub fn tap(world: &World, target: &str, args: &[&str]) -> Running {
    let mut tap = Running::start(world.command(&[&["tap", target][..], args].concat()));
    tap.notice("tapping");
    tap
}

/// Returns the rest of a text line after its time and socket.
fn behind_socket(line: &str) -> &str {
    line.splitn(3, ' ').nth(2).unwrap()
}

#[test]
fn messages_are_chosen_by_what_they_are() {
    test("messages_are_chosen_by_what_they_are", || {
        let world = World::new();
        let mut rep = observed(&world, &["rep", AT, "--echo"]);
        let (at, pid) = (rep.bound(), rep.id().to_string());
        let socket = until_seen(&world, &pid)["sockets"][0]["id"].to_string();
        let one = format!("{pid}/{socket}");
        let by_expression =
            tap(&world, &pid, &["--filter", "part ~ '^t(wo|en)$' and direction = in", "-n", "1"]);
        let by_size = tap(&world, &one, &["--least", "4", "--most", "5", "-n", "2"]);
        let some = tap(&world, &one, &["--every", "3", "-n", "2"]);
        let as_json = tap(&world, &one, &["--jsonl", "-n", "1", "-d", "out"]);
        let as_hex = tap(&world, &one, &["--hex", "-n", "1"]);
        let changed = tap(&world, &one, &["--through", "tr a-z A-Z", "-n", "1", "-f", "raw"]);
        let ended = run(&["req", &at, "-q", "one", "two", "three"]);
        assert_eq!(ended.lines(), ["one", "two", "three"]);
        let lines = |tap: Running| tap.end().lines();
        let texts = |tap| lines(tap).iter().map(|line| behind_socket(line).to_owned()).collect::<Vec<_>>();
        assert_eq!(texts(by_expression), ["in  two"]);
        assert_eq!(texts(by_size), ["in  three", "out three"]);
        assert_eq!(texts(some), ["in  one", "out two"]);
        let line: serde_json::Value = serde_json::from_str(&lines(as_json)[0]).unwrap();
        assert_eq!((&line["socket"].to_string(), &line["direction"]), (&socket, &"out".into()));
        assert!(line["peer"].is_u64() && line["time"].as_str().unwrap().ends_with('Z'), "{line}");
        assert_eq!(texts(as_hex), ["in  6f6e65"]);
        assert_eq!(changed.end().text(), "ONE");
        // Filter by peer: each connection of a client is a separate peer.
        let peer = line["peer"].to_string();
        let [of_peer, of_other] = [&peer[..], "12345"].map(|peer| {
            tap(&world, &one, &["--peer", peer, "-n", "1", "--filter", "four", "--format", "raw"])
        });
        assert_eq!(run(&["req", &at, "-q", "four"]).lines(), ["four"]);
        assert_eq!(of_peer.end().text(), "four");
        rep.signal(Signal::TERM);
        of_other.end().failed(1, &["the program has ended"]);
        let wrong = world.run(&["tap", &one, "--filter", "size > x"]);
        wrong.failed(2, &["\"x\" is not a number"]);
    });
}

#[test]
fn rates_are_shown_in_place_of_messages() {
    test("rates_are_shown_in_place_of_messages", || {
        let world = World::new();
        let mut rep = observed(&world, &["rep", AT, "--echo"]);
        let (at, pid) = (rep.bound(), rep.id().to_string());
        until_seen(&world, &pid);
        let rates = tap(&world, &pid, &["--rates", "-n", "6"]);
        assert_eq!(run(&["req", &at, "-q", "one", "two", "three"]).lines(), ["one", "two", "three"]);
        let lines = rates.end().lines();
        let [.., received, sent] = &lines[..] else { panic!("{lines:?}") };
        for (line, way) in [(received, "in"), (sent, "out")] {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!((words[1], words[2], &words[words.len() - 2..]), ("REP", way, &["3", "11B"][..]));
            assert!(line.contains('█') && line.contains("/s"), "{line}");
        }
    });
}

#[test]
fn rates_stay_in_their_place_on_a_terminal() {
    test("rates_stay_in_their_place_on_a_terminal", || {
        let world = World::new();
        let mut rep = observed(&world, &["rep", AT, "--echo"]);
        let (at, pid) = (rep.bound(), rep.id().to_string());
        until_seen(&world, &pid);
        let (program, mut window) = terminal_of(8, 80);
        let mut command = world.command(&["tap", &pid, "--rates"]);
        command.stdout(Stdio::from(program));
        let mut rates = Running::start(command);
        rates.notice("tapping");
        let mut screen = vt100::Parser::new(8, 80, 0);
        for count in ["3", "6"] {
            assert_eq!(run(&["req", &at, "-q", "one", "two", "three"]).lines(), ["one", "two", "three"]);
            read_until(&mut window, &mut screen, |screen| {
                let rows: Vec<String> = screen.rows(0, 80).collect();
                let counts = rows.iter().filter_map(|row| row.split_whitespace().rev().nth(1));
                counts.eq([count, count]) && rows[0].contains(" in ") && rows[1].contains(" out ")
            });
        }
    });
}

#[test]
fn a_tap_that_is_too_slow_is_told_how_much_it_has_missed() {
    test("a_tap_that_is_too_slow_is_told_how_much_it_has_missed", || {
        const COUNT: u64 = 300;
        let world = World::new();
        let mut pull = observed(&world, &["pull", AT, "--print", "{n}"]);
        let (at, pid) = (pull.bound(), pull.id().to_string());
        until_seen(&world, &pid);
        // The output of the tap is not read.
        let (output, printed) = std::io::pipe().unwrap();
        let mut command = world.command(&["tap", &pid, "--format", "hex"]);
        command.stdout(printed);
        let mut slow = Running::start(command);
        slow.notice("tapping");
        assert_eq!(run(&["push", &at, "{size:100000}", "-n", &COUNT.to_string()]).code, Some(0));
        while pull.line() != COUNT.to_string() {}
        // The tap did not slow the program. Received and missed messages add up to all messages.
        let (sender, seen) = std::sync::mpsc::channel();
        let lines = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                assert!(line.unwrap().len() > 200_000);
                let _ = lines.send((1, 0));
            }
        });
        thread::spawn(move || {
            loop {
                let notice = slow.notice("messages were missed");
                let count = notice.split_whitespace().nth(1).unwrap().parse().unwrap();
                if sender.send((0, count)).is_err() {
                    return;
                }
            }
        });
        let (mut copied, mut missed) = (0, 0_u64);
        while copied + missed < COUNT {
            let (one, more) = seen.recv().unwrap();
            (copied, missed) = (copied + one, missed + more);
        }
        assert!(copied + missed == COUNT && copied > 0 && missed > 0, "{copied} copied, {missed} missed");
    });
}

#[test]
fn a_program_that_dies_while_it_is_tapped_is_told() {
    test("a_program_that_dies_while_it_is_tapped_is_told", || {
        let world = World::new();
        let mut pull = observed(&world, &["pull", AT]);
        let (_, pid) = (pull.bound(), pull.id().to_string());
        until_seen(&world, &pid);
        let tapped = tap(&world, &pid, &[]);
        pull.signal(Signal::KILL);
        tapped.end().failed(1, &["has died", &format!("taut show {pid}")]);
        assert!(pull.end().code.is_none());
        world.run(&["tap", &pid]).failed(1, &["cannot be tapped", "it ended"]);
        assert!(world.run(&["show", &pid]).text().contains("crashed or was killed"));
        let own = std::process::id().to_string();
        world.run(&["tap", &own]).failed(2, &["is not observed", "TAUT_OBSERVE=1"]);
        world.run(&["tap", "x"]).failed(2, &["is neither a process nor a socket"]);
    });
}

#[test]
fn messages_a_program_sent_are_recorded_and_replayed() {
    test("messages_a_program_sent_are_recorded_and_replayed", || {
        let world = World::new();
        let mut rep = observed(&world, &["rep", AT, "--echo"]);
        let (at, pid) = (rep.bound(), rep.id().to_string());
        until_seen(&world, &pid);
        let file = world.folder.path().join("record.jsonl");
        let file = file.to_str().unwrap();
        let args = ["record", "--tap", &pid, "--direction", "in", file, "-n", "2"];
        let mut record = Running::start(world.command(&args));
        record.notice("tapping");
        assert_eq!(run(&["req", &at, "-q", "one\ttwo", "\\xff", "-D", "\\t", "-e"]).code, Some(0));
        assert_eq!(record.end().code, Some(0));
        let mut pull = Running::start(world.command(&["pull", AT, "-n", "2"]));
        let to = pull.bound();
        assert_eq!(
            run(&["replay", file, "--type", "push", "--connect", &to, "--speed", "max"]).code,
            Some(0)
        );
        assert_eq!(pull.end().lines(), ["one\ttwo", "\\xff"]);
        world.run(&args).failed(1, &["File exists", "choose another name"]);
        world.run(&["record", "--tap", "1", "other"]).failed(2, &["not observed"]);
    });
}

#[test]
fn messages_a_program_received_are_sent_to_it_again() {
    test("messages_a_program_received_are_sent_to_it_again", || {
        let world = World::new();
        let mut pull = observed(&world, &["pull", AT]);
        let (at, pid) = (pull.bound(), pull.id().to_string());
        until_seen(&world, &pid);
        let file = world.folder.path().join("record.jsonl");
        let file = file.to_str().unwrap();
        let mut record = Running::start(world.command(&["record", "--tap", &pid, file, "-n", "2"]));
        record.notice("tapping");
        assert_eq!(run(&["push", &at, "one", "two"]).code, Some(0));
        assert_eq!([pull.line(), pull.line()], ["one", "two"]);
        assert_eq!(record.end().code, Some(0));
        assert_eq!(run(&["replay", file, "--speed", "max"]).code, Some(0));
        assert_eq!([pull.line(), pull.line()], ["one", "two"]);
    });
}

#[test]
fn all_that_looks_sees_a_running_program() {
    test("all_that_looks_sees_a_running_program", || {
        let world = World::new();
        let mut pull = observed(&world, &["pull", AT]);
        let (at, pid) = (pull.bound(), pull.id().to_string());
        let push = tautline_testkit::endpoint::tcp();
        let lost = observed(&world, &["push", &push, "x"]);
        assert_eq!(run(&["push", &at, "one", "two"]).code, Some(0));
        assert_eq!([pull.line(), pull.line()], ["one", "two"]);
        let sample = format!("tautline_socket_messages_received_total{{pid=\"{pid}\",program=\"taut\",");
        let received =
            |text: &str| text.lines().any(|line| line.starts_with(&sample) && line.ends_with(" 2"));
        while !received(&world.run(&["metrics"]).text()) {}
        let mut top = Session::new(&world, &["--interval", "100ms", "--filter", "refused"]);
        top.wait(|screen| screen.contains("PUSH") && screen.contains("Connection refused"));
        let own = lost.id().to_string();
        top.wait(|screen| screen.contains(&own) && !screen.contains(&pid));
        let ps = world.run(&["ps"]).text();
        assert!(ps.contains(&pid) && ps.contains(&own), "{ps}");
    });
}

#[test]
fn a_page_is_told_the_messages_of_a_socket() {
    test("a_page_is_told_the_messages_of_a_socket", || {
        let world = World::new();
        let mut rep = observed(&world, &["rep", AT, "--echo"]);
        let (at, pid) = (rep.bound(), rep.id().to_string());
        let socket = until_seen(&world, &pid)["sockets"][0]["id"].to_string();
        let mut web = Running::start(world.command(&["web"]));
        let address = web.line();
        let (host, path) = address.trim_start_matches("http://").split_once('/').unwrap();
        let ask = |question: &str| {
            let mut client = TcpStream::connect(host).unwrap();
            client.write_all(format!("GET /{question} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
            BufReader::new(client).lines().map(Result::unwrap)
        };
        // A request cannot raise the limit on the shown bytes of a part.
        let mut events = ask(&format!("{path}tap?of={pid}&socket={socket}&direction=out&bytes=100000"));
        assert_eq!(events.next().unwrap(), "HTTP/1.1 200 OK");
        assert!(events.any(|line| line == "Content-Type: text/event-stream"));
        assert!(events.any(|line| line == "event: begin"));
        assert_eq!(run(&["req", &at, "-q", "{size:1000}"]).code, Some(0));
        assert!(events.any(|line| line == "event: message"));
        let data = events.next().unwrap();
        let data: serde_json::Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!((&data["direction"], &data["lengths"][0]), (&"out".into(), &1000.into()));
        assert_eq!(data["parts"][0].as_str().unwrap().len(), 400);
        rep.signal(Signal::TERM);
        assert!(events.any(|line| line == "event: end"));
        assert_eq!(events.next().unwrap(), "data: the program has ended");
        assert_eq!(rep.end().code, Some(0));
        for (question, why) in [
            (format!("{path}tap?of={pid}&socket={socket}"), "is not observed"),
            (format!("{path}tap?of={pid}"), "tap?of=PID"),
            (format!("{path}tap?of=x&socket=1"), "tap?of=PID"),
            (format!("{path}tap?of={pid}&colour=red"), "unknown name: colour=red"),
        ] {
            assert!(
                ask(&question).any(|line| line.starts_with("data: ") && line.contains(why)),
                "{question}"
            );
        }
        assert_eq!(ask(&format!("tap?of={pid}&socket={socket}")).next().unwrap(), "HTTP/1.1 404 Not Found");
        web.signal(Signal::TERM);
        web.end();
    });
}

/// Replies to requests, of which it reads four bytes, until one begins with `end`.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <zmq.h>
int main(void) {
    void *context = zmq_ctx_new(), *rep = zmq_socket(context, ZMQ_REP);
    char at[256], question[4] = "";
    size_t length = sizeof at;
    if (zmq_bind(rep, "tcp://127.0.0.1:*") || zmq_getsockopt(rep, ZMQ_LAST_ENDPOINT, at, &length)) return 1;
    puts(at);
    fflush(stdout);
    while (memcmp(question, "end", 3)) {
        if (zmq_recv(rep, question, sizeof question, 0) < 0) return 2;
        if (zmq_send(rep, "an", 2, ZMQ_SNDMORE) < 0 || zmq_send(rep, "answer", 6, 0) < 0) return 3;
    }
    zmq_close(rep);
    zmq_ctx_term(context);
    return 0;
}
"#;

/// Taps a program that replies, prints its endpoint, and ends after `end`.
fn look_at_program(world: &World, pid: &str, mut program: Running) {
    let at = program.line();
    until_seen(world, pid);
    let tapped = tap(world, pid, &[]);
    let found = world.run(&["doctor", pid, "--for", "0"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    assert_eq!(run(&["req", &at, "-q", "question", "end"]).lines(), ["an\tanswer", "an\tanswer"]);
    assert_eq!(program.end().code, Some(0));
    let ended = tapped.end();
    assert!(ended.err.contains("the program has ended"), "{ended:?}");
    let lines: Vec<String> = ended.lines().iter().map(|line| behind_socket(line).to_owned()).collect();
    assert!(lines[0].starts_with("in  ques"), "{lines:?}");
    assert_eq!(
        (&lines[1][..], &lines[2][..], &lines[3][..]),
        ("out an\tanswer", "in  end", "out an\tanswer")
    );
}

#[test]
#[ignore = "needs the library: tests/tools/cli/run.sh"]
fn a_program_in_c_is_seen() {
    test("a_program_in_c_is_seen", || {
        let world = World::new();
        let folder = world.folder.path();
        let library =
            std::env::var("TAUT_LIBRARY").expect("TAUT_LIBRARY names the library: tests/tools/cli/run.sh");
        std::os::unix::fs::symlink(library, folder.join("libzmq.so.5")).unwrap();
        std::fs::write(folder.join("program.c"), PROGRAM).unwrap();
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
        let mut compiler = Command::new("cc");
        compiler.current_dir(folder).args([
            "program.c",
            "-o",
            "program",
            "-I",
            include,
            "-L.",
            "-l:libzmq.so.5",
        ]);
        assert!(compiler.status().unwrap().success());
        let mut command = Command::new(folder.join("program"));
        command.env("LD_LIBRARY_PATH", folder).env("TAUT_OBSERVE", "1").env("XDG_RUNTIME_DIR", folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = Running::start(command);
        look_at_program(&world, &program.id().to_string(), program);
    });
}

#[test]
#[ignore = "needs the library and pyzmq: tests/tools/cli/run.sh"]
fn a_program_in_python_is_seen() {
    test("a_program_in_python_is_seen", || {
        let world = World::new();
        let program = "import zmq
context = zmq.Context()
s = context.socket(zmq.REP)
s.bind('tcp://127.0.0.1:*')
print(s.last_endpoint.decode(), flush=True)
question = b''
while question != b'end':
    question = s.recv()
    s.send_multipart([b'an', b'answer'])
s.close(); context.term()
";
        let python =
            std::env::var("TAUT_PYTHON").expect("TAUT_PYTHON names a Python: tests/tools/cli/run.sh");
        let mut command = world.command(&["run", "--observe", &python, "-c", program]);
        command.env("TAUT_LIBRARY", std::env::var("TAUT_LIBRARY").unwrap());
        let mut program = Running::start(command);
        let notice = program.notice(" runs on Tautline");
        let pid = notice.split_once('(').and_then(|(_, behind)| behind.split_once(')')).unwrap().0;
        look_at_program(&world, pid, program);
    });
}

/// Simulates the control socket of a program: answers one tool.
fn run_once(path: &std::path::Path, answer: impl Fn(Request) -> Vec<u8> + Send + 'static) {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream);
        let mut text = String::new();
        while !text.ends_with("\n\n") {
            assert!(lines.read_line(&mut text).unwrap() > 0);
        }
        let mut stream = lines.into_inner();
        stream.write_all(&answer(Request::from_text(text.trim_end()).unwrap())).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.read(&mut [0]);
    });
}
