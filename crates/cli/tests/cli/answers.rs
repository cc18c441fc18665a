//! Requests and replies.

use crate::support::{TempDir, run, run_with, start, start_with_stdin, test};

#[test]
fn answers_go_to_stdout_and_round_trips_to_stderr() {
    test("answers_go_to_stdout_and_round_trips_to_stderr", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let rep = start(&["rep", &at, "--echo", "-n", "3"]);
        let asked = run(&["req", &at, "one", "two"]);
        assert_eq!(asked.lines(), ["one", "two"]);
        assert_eq!(asked.err.matches("round trip").count(), 3, "{}", asked.err);
        assert!(asked.err.contains("2 answers, round trip "), "{}", asked.err);
        let quiet = run(&["req", &at, "-q", "--out", "jsonl", "three"]);
        let line: serde_json::Value = serde_json::from_str(&quiet.lines()[0]).unwrap();
        assert_eq!((line["parts"][0].as_str(), quiet.err.as_str()), (Some("three"), ""));
        assert!(line["round_trip_us"].as_f64().unwrap() > 0.0, "{line}");
        assert_eq!(rep.end().lines(), ["one", "two", "three"]);
    });
}

#[test]
fn answers_come_from_arguments_in_turn() {
    test("answers_come_from_arguments_in_turn", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let rep = start(&["rep", &at, "yes {n}", "no", "-n", "3"]);
        assert_eq!(run_with(&["req", &at, "-q"], b"a\nb\nc\n").lines(), ["yes 1", "no", "yes 3"]);
        assert_eq!(rep.end().lines(), ["a", "b", "c"]);
    });
}

#[test]
fn answers_are_typed() {
    test("answers_are_typed", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let mut rep = start_with_stdin(&["rep", &at]);
        let mut req = start(&["req", &at, "-q", "what is it?"]);
        assert_eq!(rep.line(), "what is it?");
        rep.write(b"a teapot\n");
        assert_eq!(req.line(), "a teapot");
        assert_eq!((req.end().code, rep.end().code), (Some(0), Some(0)));
    });
}

#[test]
fn a_command_answers() {
    test("a_command_answers", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let rep = start(&["rep", &at, "--through", "tr a-z A-Z", "-n", "1"]);
        assert_eq!(run(&["req", &at, "-q", "hello"]).lines(), ["HELLO"]);
        assert_eq!(rep.end().lines(), ["hello"]);
    });
}

#[test]
fn a_command_that_fails_is_told_and_still_answers() {
    test("a_command_that_fails_is_told_and_still_answers", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let rep = start(&["rep", &at, "--through", "echo sorry; exit 7", "-n", "1"]);
        assert_eq!(run(&["req", &at, "-q", "hello"]).lines(), ["sorry"]);
        rep.end().failed(1, &["--through echo sorry; exit 7: the command failed"]);
    });
}

#[test]
fn an_answer_goes_through_a_command() {
    test("an_answer_goes_through_a_command", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let _rep = start(&["rep", &at, "--echo"]);
        assert_eq!(run_with(&["req", &at, "-q", "--through", "rev"], b"abc\ndef\n").lines(), ["cba", "fed"]);
    });
}

#[test]
fn received_messages_pass_through_a_command() {
    test("received_messages_pass_through_a_command", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let pull = start(&["pull", &at, "--through", "echo $TAUT_PART_1 $(wc -c)", "-n", "1"]);
        assert_eq!(run(&["push", &at, "-p", "size", "-p", "12345"]).code, Some(0));
        assert_eq!(pull.end().lines(), ["size\tsize 5"]);
    });
}

#[test]
fn a_router_answers_by_the_id() {
    test("a_router_answers_by_the_id", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let mut router = start_with_stdin(&["router", &at]);
        let mut dealer = start(&["dealer", &at, "--identity", "left", "ready", "-n", "1"]);
        assert_eq!(router.line(), "left\tready");
        router.write(b"left\tgo\n");
        assert_eq!(dealer.line(), "go");
        assert_eq!(dealer.end().code, Some(0));
        router.write(b"right\tgo\n");
        router.end().failed(1, &["no peer has the routing id right"]);
    });
}

#[test]
fn a_router_echoes_to_the_sender() {
    test("a_router_echoes_to_the_sender", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let router = start(&["router", &at, "--echo", "-n", "4"]);
        assert_eq!(run(&["dealer", &at, "a", "b", "-n", "2"]).lines(), ["a", "b"]);
        assert_eq!(run(&["req", &at, "-q", "c", "d"]).lines(), ["c", "d"]);
        assert_eq!(router.end().lines().len(), 4);
    });
}

#[test]
fn questions_go_to_services_that_come_later() {
    test("questions_go_to_services_that_come_later", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let mut req = start(&["req", &at, "anybody?"]);
        let _rep = start(&["rep", &at, "yes"]);
        assert_eq!(req.line(), "yes");
        req.notice("round trip ");
        assert_eq!(req.end().code, Some(0));
    });
}
