//! `ping`: identifies the peer of an endpoint.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::support::{TempDir, private, run, start, test};

/// Starts a server that does not speak ZeroMQ. It sends these bytes and closes when its client
/// does.
fn server(says: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if says == b"close" {
                continue;
            }
            let _ = stream.write_all(says);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    at
}

#[test]
fn a_peer_that_sends_nothing_unasked_is_measured() {
    test("a_peer_that_sends_nothing_unasked_is_measured", || {
        for (command, kind) in [
            (&["rep", "--echo"][..], "REP"),
            (&["router", "--echo"], "ROUTER"),
            (&["pub", "x"], "XPUB"),
            (&["pub", "--wait", "0", "x", "-i", "1h"], "PUB"),
            (&["sub"], "SUB"),
            (&["xsub"], "XSUB"),
            (&["pull"], "PULL"),
            (&["server", "--echo"], "SERVER"),
            (&["gather"], "GATHER"),
            (&["dish", "--subscribe", "g"], "DISH"),
        ] {
            let mut peer = start(&[command, &["--bind", "tcp://127.0.0.1:*"]].concat());
            let at = peer.bound();
            let ended = run(&["ping", &at]);
            let article = if kind.starts_with('X') { "an" } else { "a" };
            let lines = ended.lines();
            assert_eq!(lines[0], format!("{at} is {article} {kind}"));
            assert_eq!(lines[1], "  ZMTP 3.1, mechanism NULL, no identity");
            assert!(lines[3].starts_with("  round trip "), "{kind} {ended:?}");
        }
    });
}

#[test]
fn a_peer_that_hands_out_messages_keeps_them() {
    test("a_peer_that_hands_out_messages_keeps_them", || {
        for (command, kind, receiver) in [
            (&["push", "kept"][..], "PUSH", "pull"),
            (&["dealer", "kept"], "DEALER", "dealer"),
            (&["pair", "kept"], "PAIR", "pair"),
            (&["req", "-p", "kept"], "REQ", "rep"),
            (&["scatter", "kept"], "SCATTER", "gather"),
        ] {
            let mut peer = start(&[command, &["--bind", "tcp://127.0.0.1:*"]].concat());
            let at = peer.bound();
            for _ in 0..3 {
                let ended = run(&["ping", &at]);
                assert_eq!(ended.lines()[0], format!("{at} is a {kind}"));
                assert!(
                    ended.text().contains(&format!("a {kind} socket would send messages to ping")),
                    "{ended:?}"
                );
            }
            let receiving = if receiver == "rep" { &["rep", "--echo"][..] } else { &[receiver] };
            let mut receiver = start(&[receiving, &["--connect", &at]].concat());
            assert_eq!(receiver.line(), "kept", "{kind}");
        }
    });
}

#[test]
fn ping_over_ipc_and_as_json() {
    test("ping_over_ipc_and_as_json", || {
        let folder = TempDir::new();
        let at = folder.ipc("a");
        let mut router = start(&[
            "router",
            "--bind",
            &at,
            "--bind",
            "tcp://127.0.0.1:*",
            "--identity",
            "boss\t1",
            "--echo",
        ]);
        router.bound();
        let ended = run(&["ping", &at, "--json", "-n", "3", "-i", "1ms"]);
        let found: serde_json::Value = serde_json::from_str(&ended.lines()[0]).unwrap();
        assert_eq!(
            (found["socket_type"].as_str(), found["identity"].as_str()),
            (Some("ROUTER"), Some("boss\\t1"))
        );
        assert_eq!(
            (found["zmtp"].as_str(), found["round_trips_us"].as_array().unwrap().len()),
            (Some("3.1"), 3)
        );
    });
}

#[test]
fn ping_reports_servers_that_are_not_zeromq() {
    test("ping_reports_servers_that_are_not_zeromq", || {
        let free = tautline_testkit::endpoint::tcp();
        run(&["ping", &free]).failed(1, &["nothing listens there (connection refused)"]);
        let folder = TempDir::new();
        run(&["ping", &folder.ipc("missing")]).failed(1, &["there is no such socket file"]);
        run(&["ping", &server(b"HTTP/1.1 400 Bad Request\r\n\r\n")])
            .failed(1, &["does not speak ZMTP", "an HTTP server"]);
        run(&["ping", &server(b"SSH-2.0-OpenSSH_9.2\r\n")])
            .failed(1, &["\"SSH-2.0-OpenSSH_9.2\"", "an SSH server"]);
        run(&["ping", &server(b"\x15\x03\x01\x00\x02\x02\x46")])
            .failed(1, &["does not speak ZMTP", "a TLS server"]);
        run(&["ping", &server(b"close")]).failed(1, &["closed at once without sending any data"]);
        run(&["ping", &server(b""), "-w", "100ms"])
            .failed(3, &["received no data for 100ms", "is it ZeroMQ?"]);
        run(&["ping", &server(b"\xff\0\0\0\0\0\0\0\x01\x7f"), "-w", "100ms"])
            .failed(3, &["ZMTP, but sent nothing during the handshake"]);
    });
}

#[test]
fn a_server_that_waits_for_a_line_is_told() {
    test("a_server_that_waits_for_a_line_is_told", || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("tcp://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut seen = Vec::new();
            while !seen.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                seen.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        run(&["ping", &at, "-w", "1"]).failed(1, &["does not speak ZMTP", "an HTTP server"]);
    });
}

#[test]
fn a_login_by_name_is_tried() {
    test("a_login_by_name_is_tried", || {
        let folder = TempDir::new();
        let file = |name: &str, text: &str| private(&folder, name, text);
        let (users, right, wrong) =
            (file("users", "joe:swordfish"), file("right", "swordfish"), file("wrong", "x"));
        let mut peer = start(&["pull", "tcp://127.0.0.1:*", "--plain-users", &users]);
        let at = peer.bound();
        run(&["ping", &at]).failed(1, &["uses the mechanism PLAIN, not NULL", "--plain USER"]);
        let ended = run(&["ping", &at, "--plain", "joe", "--plain-password-file", &right]);
        assert!(
            ended.lines()[0].ends_with(" is a PULL") && ended.text().contains("  round trip "),
            "{ended:?}"
        );
        let refused = run(&["ping", &at, "--plain", "joe", "--plain-password-file", &wrong]);
        refused.failed(
            1,
            &["the server refused the connection (400)", "are the user name and the password correct?"],
        );
        // A PUSH would send us messages, so `ping` reports only the login.
        let mut peer = start(&["push", "--bind", "tcp://127.0.0.1:*", "x", "--plain-users", &users]);
        let ended = run(&["ping", &peer.bound(), "--plain", "joe", "--plain-password-file", &right]);
        ended.failed(1, &["the peer accepted the login, but its socket type would send messages"]);
    });
}

#[test]
fn an_older_peer_is_told() {
    test("an_older_peer_is_told", || {
        // ZMTP 2.0: signature, revision, PULL, and an empty identity.
        let ended = run(&["ping", &server(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x07\0\0")]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.text().contains(" is a PULL\n") && ended.text().contains("ZMTP 2.0"), "{ended:?}");
        assert!(ended.text().contains("no round trip: ZMTP before 3.1 has no PING"), "{ended:?}");
    });
}

#[test]
fn mechanisms_and_keys_are_told_apart() {
    test("mechanisms_and_keys_are_told_apart", || {
        let folder = TempDir::new();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let key = |name: &str| run(&["keygen", "--out", &path(name)]).lines().remove(0);
        let (public, other, client) = (key("server"), key("other"), key("client"));
        std::fs::write(path("list"), &client).unwrap();
        for command in [&["rep", "--echo"][..], &["sub"], &["pull"], &["pub", "x"]] {
            let (server, list) = (path("server"), path("list"));
            let mut peer = start(
                &[
                    command,
                    &[
                        "--bind",
                        "tcp://127.0.0.1:*",
                        "--curve-server",
                        "--curve-key-file",
                        &server,
                        "--curve-allow",
                        &list,
                    ],
                ]
                .concat(),
            );
            let at = peer.bound();
            run(&["ping", &at]).failed(1, &["uses the mechanism CURVE, not NULL", "--curve-server-key KEY"]);
            let ended =
                run(&["ping", &at, "--curve-server-key", &public, "--curve-key-file", &path("client")]);
            assert!(ended.lines()[1].contains("mechanism CURVE"), "{command:?} {ended:?}");
            assert!(ended.text().contains("  round trip "), "{ended:?}");
            run(&["ping", &at, "--curve-server-key", &public])
                .failed(1, &["refused the connection (400)", "--curve-key-file"]);
            run(&["ping", &at, "--curve-server-key", &other, "-w", "2"])
                .failed(1, &["--curve-server-key is probably not the public key"]);
        }
    });
}
