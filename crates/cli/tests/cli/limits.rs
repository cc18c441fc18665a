//! Ends of commands: counts, times, signals, closed output. Only the tests of time limits wait for
//! a time to pass.

use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{Running, TempDir, run, run_with, start, taut, test};

#[test]
fn nothing_comes() {
    test("nothing_comes", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        run(&["pull", &at, "-w", "50ms"])
            .failed(3, &["no message arrived for 50ms", "no peer has connected"]);
        run(&["sub", "--connect", &at, "-w", "50ms"]).failed(3, &["no message arrived for 50ms"]);
        run(&["req", &at, "hello", "-w", "50ms"]).failed(3, &["no reply arrived for 50ms"]);
        run(&["push", &at, "hello", "-w", "50ms"]).failed(3, &["1 not delivered within 50ms"]);
        run(&["pub", &at, "hello", "-w", "50ms"])
            .failed(3, &["no subscriber connected for 50ms", "no peer has connected"]);
        run(&["pull", &at, "-n", "2", "-w", "50ms"]).failed(3, &["(0 of 2 done)"]);
    });
}

#[test]
fn messages_before_the_timeout_are_printed() {
    test("messages_before_the_timeout_are_printed", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        // The sender waits for the receiver, which therefore finds it at once.
        let mut push = start(&["push", &at, "one", "-v"]);
        push.notice("reconnecting");
        let ended = run(&["pull", &at, "-n", "2", "-w", "5"]);
        ended.failed(3, &["(1 of 2 done)"]);
        assert_eq!(ended.text(), "one\n");
        assert_eq!(push.end().code, Some(0));
    });
}

#[test]
fn a_time_to_listen_is_no_failure() {
    test("a_time_to_listen_is_no_failure", || {
        let folder = TempDir::new();
        let ended = run(&["pull", &folder.ipc("a"), "--for", "50ms"]);
        assert_eq!((ended.code, ended.out.len(), ended.err.as_str()), (Some(0), 0, ""));
        let repeated = run(&["push", "--bind", &folder.ipc("b"), "x", "-i", "1ms", "--for", "50ms"]);
        assert_eq!(repeated.code, Some(0), "{repeated:?}");
    });
}

#[test]
fn work_that_is_unfinished_at_the_end_of_for_fails() {
    test("work_that_is_unfinished_at_the_end_of_for_fails", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let started = |args: &[&str], text: &str| {
            let ended = run_with(&[args, &["--for", "50ms"]].concat(), b"one\n");
            ended.failed(3, &[text]);
            assert!(ended.err.contains("50ms"), "{ended:?}");
        };
        started(&["push", "--bind", &at, "x"], "no message could be sent for");
        started(&["push", "--bind", &at], "no message could be sent for");
        started(&["push", &at, "x"], "not delivered within");
        started(&["push", &at, "x", "-d", "1h"], "not all messages were sent within");
        started(&["req", &at, "x"], "no reply arrived for");
        started(&["pub", &at, "x"], "no subscriber connected for");
        started(&["dealer", &at, "x"], "not delivered within");
    });
}

#[test]
fn command_that_outlasts_for_is_ended() {
    test("command_that_outlasts_for_is_ended", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let pull = start(&["pull", &at, "--through", "sleep 1d", "--for", "2"]);
        let push = start(&["push", &at, "x", "-i", "1ms"]);
        pull.end().failed(1, &["the command failed"]);
        drop(push);
    });
}

#[test]
fn a_signal_ends_what_has_no_end() {
    test("a_signal_ends_what_has_no_end", || {
        for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
            let folder = TempDir::new();
            let at = folder.ipc("a");
            let mut pull = start(&["pull", &at]);
            let push = start(&["push", &at, "x", "-i", "5ms"]);
            assert_eq!(pull.line(), "x");
            pull.signal(signal);
            let ended = pull.end();
            assert_eq!(ended.code, Some(0), "endless, {signal:?} {ended:?}");
            drop(push);

            let other = folder.ipc("b");
            let mut pull = start(&["pull", &other, "-n", "1000000"]);
            let _push = start(&["push", &other, "x", "-i", "5ms"]);
            assert_eq!(pull.line(), "x");
            pull.signal(signal);
            assert_eq!(pull.end().code, Some(code), "to be done, {signal:?}");
        }
    });
}

#[test]
fn a_signal_ends_the_wait_for_delivery() {
    test("a_signal_ends_the_wait_for_delivery", || {
        let folder = TempDir::new();
        let mut push = start(&["push", &folder.ipc("a"), "x", "-v"]);
        push.notice("reconnecting");
        push.signal(Signal::TERM);
        assert_eq!(push.end().code, Some(143));
    });
}

#[test]
fn closed_output_is_a_quiet_end() {
    test("closed_output_is_a_quiet_end", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let mut pull = start(&["pull", &at]);
        let _push = start(&["push", &at, "x", "-i", "5ms"]);
        assert_eq!(pull.line(), "x");
        pull.close_output();
        let ended = pull.end();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    });
}

#[test]
fn closed_output_ends_what_receives_nothing() {
    test("closed_output_ends_what_receives_nothing", || {
        let folder = TempDir::new();
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = taut(&["pull", &folder.ipc("a")]);
        command.stdout(Stdio::from(writer));
        let pull = Running::start(command);
        drop(reader);
        assert_eq!(pull.end().code, Some(0));
    });
}

#[test]
fn closed_output_ends_other_commands() {
    test("closed_output_ends_other_commands", || {
        for args in [&["man"][..], &["completions", "bash"], &["keygen"]] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut command = taut(args);
            command.stdout(Stdio::from(writer));
            let ended = Running::start(command).end();
            assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{args:?}");
        }
    });
}
