//! Wrong command lines and faulty input files.

use std::fs::File;

use crate::support::{Running, TempDir, run, run_with, start, taut, test};

#[test]
fn a_wrong_command_line_says_what_would_be_right() {
    test("a_wrong_command_line_says_what_would_be_right", || {
        for (args, texts) in [
            (&["push"][..], &["the endpoint is missing", "for example tcp://127.0.0.1:5555"][..]),
            (&["push", "hello"], &["\"hello\" is not a valid endpoint"]),
            (&["push", "tcp://localhost"], &["tcp://localhost: the endpoint has no port"]),
            (&["push", "tcp://localhost:99999"], &["the port of the endpoint"]),
            (&["push", "--connect", "tcp://*:5555", "x"], &["cannot be connected to"]),
            (&["push", "inproc://x"], &["inproc works only inside one process"]),
            (&["push", ":5555", "-i", "soon"], &["--interval", "250ms"]),
            (&["push", ":5555", "-n", "0"], &["--count"]),
            (&["push", ":5555", "--rate", "0"], &["--rate"]),
            (&["pull", ":5555", "--format", "xml"], &["--format", "jsonl"]),
            (&["pull", ":5555", "--cuont", "1"], &["--cuont", "--count"]),
            (&["pulll", ":5555"], &["pulll", "pull"]),
            (&["dish", ":5555"], &["--subscribe GROUP"]),
            (&["sub", "@prices"], &["there is no context prices in /nonexistent/taut/config.toml"]),
            (&["push", ":5555", "-e", "\\q"], &["unknown escape"]),
            (&["sub", ":5555", "--watch"], &["--watch needs a terminal"]),
            (&["req", ":5555", "--plain", "joe", "x"], &["--plain needs a password", "TAUT_PLAIN_PASSWORD"]),
            (&["rep", ":5555", "--curve-server"], &["--curve-key-file"]),
            (&["rep", ":5555", "--echo", "x"], &["--echo sends back each received message"]),
            (&["pull", ":5555", "--subscribe", "a"], &["PULL sockets do not subscribe"]),
            (&["req", ":5555", "--echo"], &["REQ sockets do not reply"]),
            (&["ping", "ws://localhost:1"], &["ping works only with tcp, tls+tcp and ipc"]),
            (&["push", "udp://127.0.0.1:5555", "x"], &["do not support this transport"]),
        ] {
            let ended = run(args);
            ended.failed(2, texts);
            assert!(ended.out.is_empty(), "{args:?}");
        }
    });
}

#[test]
fn an_address_in_use_is_named() {
    test("an_address_in_use_is_named", || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("tcp://{}", listener.local_addr().unwrap());
        run(&["pull", &at]).failed(1, &[&at, "the address is in use", "choose another port"]);
        run(&["pull", "--bind", "tcp://192.0.2.1:5555"])
            .failed(1, &["tcp://192.0.2.1:5555", "does not belong to this machine"]);
    });
}

#[test]
fn broken_lines_are_named_and_those_before_are_sent() {
    test("broken_lines_are_named_and_those_before_are_sent", || {
        for (format, input, text) in [
            ("jsonl", &b"\"good\"\n{\"parts\":[\n"[..], "standard input, line 2: "),
            ("jsonl", b"\"good\"\n42\n", "standard input, line 2: not a message"),
            ("jsonl", b"\"good\"\n{\"parts\":[{\"hex\":\"0\"}]}\n", "standard input, line 2: not a message"),
            ("hex", b"676f6f64\n6\n", "standard input, line 2: not pairs of hexadecimal digits"),
            (
                "msgpack",
                b"\x91\xa4good\xc1",
                "standard input, value 2: not an array of binary or text strings",
            ),
            ("msgpack", b"\x91\xa4good\x91\xa4goo", "standard input, value 2: truncated MessagePack"),
        ] {
            let folder = TempDir::new();
            let at = folder.ipc("a");
            let mut pull = start(&["pull", &at]);
            // The first message proves the connection, so the failed message does not arrive later.
            let mut push = crate::support::start_with_stdin(&["push", &at, "--in", format]);
            let good = input.len()
                - input.iter().rev().skip(1).position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let good = if format == "msgpack" { 6 } else { good };
            push.write(&input[..good]);
            assert_eq!(pull.line(), "good", "{format}");
            push.write(&input[good..]);
            push.end().failed(1, &[text]);
        }
    });
}

#[test]
fn a_missing_file_is_named() {
    test("a_missing_file_is_named", || {
        let folder = TempDir::new();
        let missing = folder.path().join("missing");
        let missing = missing.to_str().unwrap();
        let at = folder.ipc("a");
        for args in [
            &["push", &at, "--file", missing][..],
            &[
                "req",
                &at,
                "x",
                "--curve-server-key",
                "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
                "--curve-key-file",
                missing,
            ],
            &["rep", &at, "--echo", "--plain-users", missing],
            &["req", &at, "x", "--plain", "joe", "--plain-password-file", missing],
        ] {
            run(args).failed(1, &[missing, "No such file"]);
        }
    });
}

#[test]
fn a_saved_context_stands_for_its_endpoints() {
    test("a_saved_context_stands_for_its_endpoints", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let config = folder.path().join("taut/config.toml");
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        let text = format!("[contexts.prices]\nendpoint = \"{at}\"\nsubscribe = [\"EUR\"]\n");
        std::fs::write(&config, text).unwrap();
        let with = |args: &[&str]| {
            let mut command = taut(args);
            command.env("XDG_CONFIG_HOME", folder.path());
            Running::start(command)
        };
        let sub = with(&["sub", "@prices", "-n", "1"]);
        assert_eq!(with(&["pub", "@prices", "USD 1.0", "EUR 1.1"]).end().code, Some(0));
        assert_eq!(sub.end().lines(), ["EUR 1.1"]);
        assert_eq!(with(&["contexts"]).end().lines(), [format!("@prices  {at}")]);
        assert!(with(&["contexts", "prices"]).end().text().contains("subscribe = [\"EUR\"]"));
        assert_eq!(with(&["contexts", "--path"]).end().lines(), [config.to_str().unwrap()]);
        with(&["sub", "@price"]).end().failed(2, &["there is no context price", "it has prices"]);

        let saved = with(&["contexts", "news", "--save", ":5570", "--save", "tcp://example.org:5571"]).end();
        assert_eq!((saved.code, saved.err.as_str()), (Some(0), ""));
        let listed = with(&["contexts"]).end().lines();
        assert_eq!(listed[0], "@news    tcp://127.0.0.1:5570 tcp://example.org:5571");
        with(&["contexts", "news", "--save", ":1"]).end().failed(1, &["there is a context news"]);
        with(&["contexts", "a b", "--save", ":1"]).end().failed(2, &["is not a valid name"]);
        with(&["contexts", "c", "--save", "x"]).end().failed(2, &["\"x\" is not a valid endpoint"]);

        std::fs::write(&config, "[contexts.prices]\nendpont = \"x\"\n").unwrap();
        with(&["sub", "@prices"]).end().failed(2, &["config.toml", "endpont", "line 2"]);
    });
}

#[test]
fn nothing_is_sent_for_an_empty_input() {
    test("nothing_is_sent_for_an_empty_input", || {
        let folder = TempDir::new();
        assert_eq!(run_with(&["push", &folder.ipc("a")], b"").code, Some(0));
    });
}

#[test]
fn oversized_placeholder_is_refused() {
    test("oversized_placeholder_is_refused", || {
        for (message, text) in [
            ("{size:99999999999999}", "{size:99999999999999}: N must be a number, and a message has at most"),
            ("{size:many}", "{size:many}: N must be a number"),
            (
                "{size:700000000} {size:700000000}",
                "at most 1073741824 bytes of {size:N} (1 GiB), not 1400000000",
            ),
        ] {
            run(&["push", ":1", message]).failed(2, &[text]);
        }
        run(&["push", ":1", "-p", "{size:700000000}", "-p", "{size:700000000}"])
            .failed(2, &["not 1400000000"]);
        run(&["push", ":1", "--to", "{size:x}"]).failed(2, &["{size:x}"]);
    });
}

#[test]
fn help_without_room_for_it_fails() {
    test("help_without_room_for_it_fails", || {
        for args in [&["--help"][..], &["--version"], &["sub", "--help"], &["policy", "-h"]] {
            let mut command = taut(args);
            command.stdout(File::options().write(true).open("/dev/full").unwrap());
            Running::start(command)
                .end()
                .failed(1, &["cannot write to standard output: No space left on device"]);
        }
        assert!(run(&["--version"]).lines()[0].starts_with("taut "));
    });
}

#[test]
fn unknown_home_folder_is_told() {
    test("unknown_home_folder_is_told", || {
        for args in
            [&["contexts"][..], &["contexts", "--path"], &["contexts", "x", "--save", ":1"], &["sub", "@x"]]
        {
            let mut command = taut(args);
            command.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
            Running::start(command)
                .end()
                .failed(1, &["saved contexts, keys and policies is unknown", "set HOME"]);
        }
    });
}
