//! Messages from one `taut` to another.

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
        // A RADIO does not wait for members.
        let radio = start(&["radio", &at, "--group", "weather", "6 degrees", "--interval", "10ms"]);
        assert_eq!(dish.line(), "weather\t6 degrees");
        drop(radio);
        assert_eq!(dish.end().code, Some(0));
    });
}
