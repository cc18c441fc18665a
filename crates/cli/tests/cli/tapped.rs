//! Real programs that are observed: other `taut`s, as they are on the same library.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;

use rustix::process::Signal;
use tautline_observe::tap::{Copied, Direction, Frame, MANY, Part, Request};

use crate::observed::{Told, World};
use crate::support::{Running, run, test};

const AT: &str = "tcp://127.0.0.1:*";

/// A command that is observed.
fn observed(world: &World, args: &[&str]) -> Running {
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
        // It is written four times a second.
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
fn what_is_wrong_with_a_program_is_named() {
    test("what_is_wrong_with_a_program_is_named", || {
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
        assert!(found.contains(&at) && found.contains("Nothing listens there"), "{found}");
    });
}

#[test]
fn messages_of_a_program_are_seen() {
    test("messages_of_a_program_are_seen", || {
        let world = World::new();
        let mut rep = observed(&world, &["rep", AT, "--echo", "-q"]);
        let pid = rep.id().to_string();
        let at = loop {
            let shown = world.run(&["show", "--json", &pid]);
            let object: serde_json::Value = serde_json::from_str(&shown.text()).unwrap_or_default();
            if let Some(name) = object["endpoints"][0]["name"].as_str().filter(|name| !name.is_empty()) {
                break name.to_owned();
            }
        };
        let tap = |args: &[&str]| {
            let mut tap = Running::start(world.command(&[&["tap", &pid][..], args].concat()));
            tap.notice("tapping");
            tap
        };
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
        // One that ends while it is tapped.
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
                Copied { at: 0, socket: 3, peer: MANY, direction: Direction::Out, parts: vec![part] };
            [b"OK\n".to_vec(), Frame::Missed(7).to_bytes(), Frame::Copy(copy).to_bytes()].concat()
        });
        let ended = world.run(&["tap", &format!("{own}/3"), "--every", "2", "-p", "a"]);
        assert_eq!(ended.lines(), ["1970-01-01T00:00:00.000000Z 3 out \\x1b"]);
        assert!(ended.err.contains("7 messages were missed") && ended.err.contains("has ended"), "{ended:?}");
        run_once(&path, |_| b"ERROR too many\n".to_vec());
        world.run(&["tap", &own]).failed(1, &["refuses: ERROR too many"]);
        run_once(&path, |_| [&b"OK\n"[..], &[255; 40]].concat());
        world.run(&["tap", &own]).failed(1, &["the tap: "]);
        let _ = std::fs::remove_file(&path);
        world.run(&["tap", &own]).failed(1, &["No such file"]);
        world.run(&["tap", &format!("{own}/4")]).failed(2, &["has no socket 4"]);
    });
}

/// A program's end of a tap: answers one tool.
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
