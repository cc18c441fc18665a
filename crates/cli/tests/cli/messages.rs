//! Messages between two `taut` processes.

use std::io::{Read, Write};

use crate::support::{TempDir, run, run_with, start, start_with_stdin, test};

#[test]
fn arguments_are_messages() {
    test("arguments_are_messages", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let pull = start(&["pull", &at, "-n", "3"]);
        assert_eq!(run(&["push", &at, "one", "two {n}", "--", "-three"]).code, Some(0));
        assert_eq!(pull.end().lines(), ["one", "two 2", "-three"]);
    });
}

#[test]
fn lines_of_standard_input_are_messages() {
    test("lines_of_standard_input_are_messages", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let pull = start(&["pull", &at, "-n", "3", "--out", "hex"]);
        assert_eq!(run_with(&["push", &at], b"{n}\n\n\xff").code, Some(0));
        assert_eq!(pull.end().lines(), ["7b6e7d", "", "ff"]);
    });
}

#[test]
fn a_message_is_shown_while_the_next_one_is_typed() {
    test("a_message_is_shown_while_the_next_one_is_typed", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let mut pull = start(&["pull", &at, "-n", "2"]);
        let mut push = start_with_stdin(&["push", &at]);
        push.write(b"first\nsec");
        assert_eq!(pull.line(), "first");
        push.write(b"ond\n");
        assert_eq!(pull.line(), "second");
        assert_eq!((push.end().code, pull.end().code), (Some(0), Some(0)));
    });
}

#[test]
fn parts_travel_together() {
    test("parts_travel_together", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let pull = start(&["pull", &at, "-n", "3"]);
        assert_eq!(run(&["push", &at, "--part", "a b", "--part", "", "--part", "c"]).code, Some(0));
        assert_eq!(run(&["push", &at, "-D", "|", "d|e"]).code, Some(0));
        assert_eq!(run_with(&["push", &at, "-D", "\\t"], b"f\tg\n").code, Some(0));
        assert_eq!(pull.end().lines(), ["a b\t\tc", "d\te", "f\tg"]);
    });
}

#[test]
fn every_format_reads_what_it_writes() {
    test("every_format_reads_what_it_writes", || {
        let input = "\"plain\"\n[\"\",{\"hex\":\"00ff0a\"},\"a\\tb\\n\"]\n";
        for format in ["hex", "jsonl", "msgpack"] {
            let folder = TempDir::new();
            let (one, other) = (folder.ipc("a"), folder.ipc("b"));
            let first = start(&["pull", &one, "-n", "2", "--out", format]);
            assert_eq!(run_with(&["push", &one, "--in", "jsonl"], input.as_bytes()).code, Some(0));
            let written = first.end();
            assert_eq!(written.code, Some(0));
            let second = start(&["pull", &other, "-n", "2", "--out", "hex"]);
            assert_eq!(run_with(&["push", &other, "--in", format], &written.out).code, Some(0));
            assert_eq!(second.end().lines(), ["706c61696e", "\t00ff0a\t6109620a"], "{format}");
        }
    });
}

#[test]
fn raw_is_the_bytes_of_a_file() {
    test("raw_is_the_bytes_of_a_file", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_be_bytes).collect();
        let file = folder.path().join("bytes");
        std::fs::write(&file, &bytes).unwrap();
        let pull = start(&["pull", &at, "-n", "1", "--format", "raw"]);
        assert_eq!(run(&["push", &at, "--in", "raw", "--file", file.to_str().unwrap()]).code, Some(0));
        assert!(pull.end().out == bytes);
    });
}

#[test]
fn text_cannot_move_the_cursor() {
    test("text_cannot_move_the_cursor", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let pull = start(&["pull", &at, "-n", "2"]);
        assert_eq!(run(&["push", &at, "-e", "\\x1b[2J\\n\\xff", "Malmö"]).code, Some(0));
        assert_eq!(pull.end().lines(), ["\\x1b[2J\\n\\xff", "Malmö"]);
    });
}

#[test]
fn a_line_of_the_users_own() {
    test("a_line_of_the_users_own", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let pull = start(&["pull", &at, "-n", "1", "--print", "{n}: {topic} is {body} ({size} bytes)"]);
        assert_eq!(run(&["push", &at, "-p", "Lund", "-p", "6"]).code, Some(0));
        assert_eq!(pull.end().lines(), ["1: Lund is 6 (5 bytes)"]);
    });
}

#[test]
fn messages_are_sent_again_until_the_count() {
    test("messages_are_sent_again_until_the_count", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let pull = start(&["pull", &at, "-n", "5"]);
        assert_eq!(run(&["push", &at, "-n", "5", "--rate", "1000", "a{n}", "b{n}"]).code, Some(0));
        assert_eq!(pull.end().lines(), ["a1", "b2", "a3", "b4", "a5"]);
    });
}

#[test]
fn a_publisher_waits_for_its_subscribers() {
    test("a_publisher_waits_for_its_subscribers", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let one = start(&["sub", &at, "-n", "2", "-s", "weather"]);
        let all = start(&["sub", &at, "-n", "3"]);
        let news = ["weather.lund 6", "sports 1:0", "weather.rome 17"];
        let publisher = run(&["pub", &at, "--wait", "2", news[0], news[1], news[2]]);
        assert_eq!(publisher.code, Some(0), "{publisher:?}");
        assert_eq!(one.end().lines(), [news[0], news[2]]);
        assert_eq!(all.end().lines(), news);
    });
}

#[test]
fn many_endpoints_bound_and_connected() {
    test("many_endpoints_bound_and_connected", || {
        let folder = TempDir::new();
        let (one, other) = (folder.ipc("a"), folder.ipc("b"));
        let other_path = other.trim_start_matches("ipc://");
        let pull = start(&["pull", &one, &format!("@{other_path}"), "-n", "2"]);
        assert_eq!(run(&["push", "--connect", &one, "first"]).code, Some(0));
        assert_eq!(run(&["send", &other, "second"]).code, Some(0));
        let mut lines = pull.end().lines();
        lines.sort();
        assert_eq!(lines, ["first", "second"]);
        let back = start(&["recv", "--connect", &one, "-n", "1"]);
        assert_eq!(run(&["push", "--bind", &one, "third"]).code, Some(0));
        assert_eq!(back.end().lines(), ["third"]);
    });
}

#[test]
fn every_type_talks_to_its_peer() {
    test("every_type_talks_to_its_peer", || {
        for (sends, receives, expected) in [
            (&["push", "x"][..], &["pull"][..], "x"),
            (&["pub", "x"], &["sub"], "x"),
            (&["pub", "x"], &["xsub"], "x"),
            (&["xpub", "x", "-i", "10ms"], &["sub"], "x"),
            (&["pair", "x"], &["pair"], "x"),
            (&["dealer", "-p", "", "-p", "x"], &["rep", "--echo"], "x"),
            (&["dealer", "x"], &["dealer"], "x"),
            (&["dealer", "x", "--identity", "me"], &["router"], "me\tx"),
            (&["router", "x", "--to", "you", "-w", "200"], &["dealer", "--identity", "you"], "x"),
            (&["client", "x"], &["server", "--print", "{body}"], "x"),
            (&["channel", "x"], &["channel"], "x"),
            (&["scatter", "x"], &["gather"], "x"),
        ] {
            let folder = TempDir::new();
            let at = folder.ipc("a");
            let mut receiver = start(&[receives, &["--bind", &at]].concat());
            let sender = start(&[sends, &["--connect", &at]].concat());
            assert_eq!(receiver.line(), expected, "{sends:?} to {receives:?}");
            drop(sender);
        }
    });
}

#[test]
fn groups_have_members() {
    test("groups_have_members", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let mut dish = start(&["dish", &at, "--subscribe", "weather", "-n", "1"]);
        // A RADIO does not wait for members, so send repeatedly.
        let radio = start(&["radio", &at, "--group", "weather", "6 degrees", "--interval", "10ms"]);
        assert_eq!(dish.line(), "weather\t6 degrees");
        drop(radio);
        assert_eq!(dish.end().code, Some(0));
    });
}

#[test]
fn raw_tcp_goes_to_the_connection() {
    test("raw_tcp_goes_to_the_connection", || {
        let mut stream = start(&["stream", "--bind", "tcp://127.0.0.1:*", "--echo", "--out", "jsonl"]);
        let at = stream.bound();
        let mut plain = std::net::TcpStream::connect(at.trim_start_matches("tcp://")).unwrap();
        plain.write_all(b"hello").unwrap();
        let mut back = [0; 5];
        plain.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"hello");
        drop(plain);
        let parts = |line: String| serde_json::from_str::<serde_json::Value>(&line).unwrap()["parts"].clone();
        let [came, said, left] = [(); 3].map(|()| parts(stream.line()));
        assert_eq!([&came[1], &said[1], &left[1]], ["", "hello", ""], "it comes, says something, and goes");
        assert!(came[0] == said[0] && said[0] == left[0], "{came} {said} {left}");
    });
}

#[test]
fn a_server_of_lines_is_asked_by_hand() {
    test("a_server_of_lines_is_asked_by_hand", || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("tcp://{}", listener.local_addr().unwrap());
        let mut stream = start(&["stream", &at, "GET /\\r\\n", "--print", "{body}"]);
        let (mut plain, _) = listener.accept().unwrap();
        let mut question = [0; 7];
        plain.read_exact(&mut question).unwrap();
        assert_eq!(&question, b"GET /\r\n");
        plain.write_all(b"200 OK").unwrap();
        assert_eq!([stream.line(), stream.line()], ["", "200 OK"]);
        drop(plain);
        assert_eq!(stream.line(), "");
    });
}

#[test]
fn peers_answer_each_other() {
    test("peers_answer_each_other", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let mut echo = start(&["peer", "--bind", &at, "--echo", "--print", "{body}"]);
        let asked = run(&["peer", &at, "one", "two", "-n", "2", "--print", "{body}"]);
        assert_eq!(asked.lines(), ["one", "two"]);
        assert_eq!([echo.line(), echo.line()], ["one", "two"]);
        run(&["peer", "--bind", "tcp://127.0.0.1:*", "x"])
            .failed(1, &["has two parts: the peer and the body"]);
        run(&["peer", &at, "77\tx"]).failed(1, &["no peer 77"]);
    });
}

#[test]
fn datagrams_have_an_address() {
    test("datagrams_have_an_address", || {
        let mut echo = start(&["dgram", "udp://127.0.0.1:*", "--echo"]);
        let to = echo.bound().trim_start_matches("udp://").to_owned();
        let mut dgram = start(&["dgram", "udp://127.0.0.1:*", "--to", &to, "hello", "-i", "100ms"]);
        let from = dgram.bound().trim_start_matches("udp://").to_owned();
        assert_eq!(echo.line(), format!("{from}\thello"));
        assert_eq!(dgram.line(), format!("{to}\thello"));
    });
}

#[test]
fn groups_have_members_over_udp() {
    test("groups_have_members_over_udp", || {
        let mut dish = start(&["dish", "udp://127.0.0.1:*", "--subscribe", "weather"]);
        let at = dish.bound();
        let radio = start(&["radio", &at, "--group", "weather", "6 degrees", "-i", "10ms"]);
        assert_eq!(dish.line(), "weather\t6 degrees");
        drop(radio);
    });
}

#[test]
fn recording_is_replayed() {
    test("recording_is_replayed", || {
        let folder = TempDir::new();
        let (at, again) = (folder.ipc("a"), folder.ipc("b"));
        let file = folder.path().join("news.jsonl");
        let file = file.to_str().unwrap();
        let recorder = start(&["record", file, &at, "--subscribe", "a", "-n", "3"]);
        let published = run(&["pub", &at, "--topic", "a", "{n}", "--rate", "50", "-n", "3"]);
        assert_eq!(published.code, Some(0), "{published:?}");
        assert_eq!(recorder.end().code, Some(0));
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.lines().count() == 3 && text.contains("\"parts\":[\"a\",\"3\"]"), "{text}");
        for speed in ["1", "2.5", "max"] {
            let sub = start(&["sub", &again, "-n", "3"]);
            let replayed = run(&["replay", file, &again, "--speed", speed]);
            assert_eq!(replayed.code, Some(0), "{replayed:?}");
            assert_eq!(sub.end().lines(), ["a\t1", "a\t2", "a\t3"], "{speed}");
        }
        // Subscribe at the endpoint to which the recorder was connected.
        let sub = start(&["sub", &at, "-n", "3"]);
        assert_eq!(run(&["replay", file, "--speed", "max"]).code, Some(0));
        assert_eq!(sub.end().lines(), ["a\t1", "a\t2", "a\t3"]);
        run(&["record", file, &at]).failed(1, &[file, "choose another name"]);
        run(&["replay", file, &again, "--speed", "0"]).failed(2, &["a speed is max, or a number"]);
    });
}

#[test]
fn a_recording_is_played_at_its_pace() {
    test("a_recording_is_played_at_its_pace", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let file = folder.path().join("slow.jsonl");
        // Messages ten minutes apart, one with an earlier time, and one without a time.
        let lines = "{\"time\":\"2026-01-01T00:00:00Z\",\"parts\":[\"first\"]}\n\
                     {\"time\":\"2026-01-01T00:10:00.5Z\",\"parts\":[{\"hex\":\"00ff\"}]}\n\
                     {\"time\":\"2025-01-01T00:00:00Z\",\"parts\":[\"back\"]}\n\
                     [\"timeless\"]\n";
        std::fs::write(&file, lines).unwrap();
        let mut pull = start(&["pull", &at]);
        let begun = std::time::Instant::now();
        let replay = start(&["replay", file.to_str().unwrap(), &at, "--type", "push", "--speed", "1000"]);
        let all = [pull.line(), pull.line(), pull.line(), pull.line()];
        assert_eq!(all, ["first", "\\x00\\xff", "back", "timeless"]);
        assert!(begun.elapsed() >= std::time::Duration::from_millis(600));
        assert_eq!(replay.end().code, Some(0));
        // A signal ends a replay while its next message is far in the future.
        let slow = start(&["replay", file.to_str().unwrap(), &at, "--type", "push"]);
        assert_eq!(pull.line(), "first");
        slow.signal(rustix::process::Signal::TERM);
        assert_eq!(slow.end().code, Some(0));
        run(&["replay", file.to_str().unwrap()]).failed(2, &["contains no endpoint", "name an endpoint"]);
        std::fs::write(&file, "{\"parts\":[\"good\"]}\n{\"parts\":\n").unwrap();
        run(&["replay", file.to_str().unwrap(), &at, "--type", "push"]).failed(1, &["slow.jsonl, line 2: "]);
    });
}
