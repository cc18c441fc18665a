//! Refusals by a policy raise an event that names the rule or the limit, and affect no other peer.

// A loom model has no sockets.
#![cfg(all(unix, not(loom)))]

mod common;

use common::policy::{
    Event, Folder, context_with_policy, event, events, monitor, next, refused, socket, text, wait_for_event,
    with_key,
};
use common::{bind, connected, recv, set, test};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use tautline_core::{Context, Flags, Message, Socket, SocketType, public_key};

const SUBSCRIBE: i32 = 6;
const BIND_FAILED: u64 = 0x10;
const ACCEPT_FAILED: u64 = 0x40;
const DISCONNECTED: u64 = 0x200;
const FAILED_NO_DETAIL: u64 = 0x800;
const FAILED_AUTH: u64 = 0x4000;
const EACCES: u64 = 13;
const ENOBUFS: u64 = 105;

fn permission(rest: &str) -> String {
    format!("Permission denied: {rest}")
}

fn no_buffer_space(rest: &str) -> String {
    format!("No buffer space available: {rest}")
}

/// Checks value and reason of the next event with this number.
#[track_caller]
fn tells(from: &mut Socket, number: u64, value: u64, reason: &str) {
    let Event { value: found, reason: told, .. } = next(from, number);
    assert_eq!((found, told.as_str()), (value, reason));
}

/// Checks the reason of the next disconnection. Its value is a descriptor.
#[track_caller]
fn loses(from: &mut Socket, reason: &str) {
    assert_eq!(next(from, DISCONNECTED).reason, reason);
}

#[test]
fn calls_that_are_refused() {
    test("calls_that_are_refused", |context| {
        context.set_policy("strict").unwrap();
        let mut plain = socket(context, SocketType::Dealer);
        let mut told = events(context, &mut plain);
        refused(plain.bind("tcp://127.0.0.1:*"));
        let by = "rule `strict:plaintext` of policy strict";
        tells(&mut told, BIND_FAILED, EACCES, &permission(by));
        refused(plain.connect("tcp://127.0.0.1:9"));
        tells(&mut told, FAILED_NO_DETAIL, EACCES, &permission(by));
        let mut radio = socket(context, SocketType::Dish);
        let mut told = monitor(context, &mut radio);
        refused(radio.bind("udp://127.0.0.1:5555"));
        wait_for_event(&mut told, BIND_FAILED as u16);
        // Versions 1 and 2 report the most similar event of libzmq.
        let mut plain = socket(context, SocketType::Dealer);
        let mut told = monitor(context, &mut plain);
        refused(plain.bind("tcp://127.0.0.1:*"));
        wait_for_event(&mut told, BIND_FAILED as u16);
        refused(plain.connect("tcp://127.0.0.1:9"));
        wait_for_event(&mut told, FAILED_NO_DETAIL as u16);
    });
}

#[test]
fn peers_that_are_refused() {
    test("peers_that_are_refused", |context| {
        let folder = Folder::new("refused-peers");
        let rule = "[[rules]]\nname = \"nobody\"\ncall = \"accept\"\naddress = \"127.0.0.0/8\"\naction = \"refuse\"\n";
        let path = folder.file("policy.toml", rule);
        context.set_policy(&path).unwrap();
        let mut server = socket(context, SocketType::Router);
        let mut told = events(context, &mut server);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let mut peer = connected(context, SocketType::Dealer, &endpoint);
        let by = permission(&format!("rule `nobody` of policy {path}"));
        tells(&mut told, ACCEPT_FAILED, EACCES, &by);
        // A connected peer must disconnect when the policy changes.
        folder.file("policy.toml", "");
        peer.send(b"in", Flags::NONE).unwrap();
        recv(&mut server);
        folder.file("policy.toml", rule);
        loses(&mut told, &by);
        set(&mut peer, 17, 0);
    });
}

#[test]
fn keys_that_are_not_trusted() {
    test("keys_that_are_not_trusted", |context| {
        let folder = Folder::new("refused-keys");
        let (at, to) = folder.wraps();
        let (ours, theirs) = (context_with_policy(&at), context_with_policy(&to));
        let mut server = socket(&ours, SocketType::Pull);
        let mut told = events(&ours, &mut server);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let mut stranger = socket(context, SocketType::Push);
        with_key(&mut stranger, 3);
        stranger.connect(&endpoint).unwrap();
        let stands = format!("its key is not in {}", folder.0.join("clients").display());
        tells(&mut told, FAILED_AUTH, 400, &format!("refused: {stands}"));
        let mut client = socket(&theirs, SocketType::Push);
        client.connect(&endpoint).unwrap();
        client.send(b"in", Flags::NONE).unwrap();
        let mut message = Message::new();
        server.recv_message(&mut message, Flags::NONE).unwrap();
        let user = message.metadata().unwrap().get("User-Id").unwrap();
        assert_eq!(user.to_str(), Ok("one"), "the name of the file with its key");
        drop(message);
        fs::remove_file(folder.0.join("clients/one.pub")).unwrap();
        while next(&mut told, DISCONNECTED).reason != permission(&stands) {}
        drop((server, told, client));
        ours.terminate().unwrap();
        theirs.terminate().unwrap();
    });
}

/// Returns a server under these limits, its events and its endpoint.
fn limited(context: &Context, folder: &Folder, kind: SocketType, limits: &str) -> (Socket, Socket, String) {
    let path = folder.file("policy.toml", &format!("[limits]\n{limits}\n"));
    context.set_policy(&path).unwrap();
    let mut server = socket(context, kind);
    let told = events(context, &mut server);
    let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
    (server, told, endpoint)
}

fn limit(folder: &Folder, name: &str) -> String {
    format!("limit `{name}` of policy {}", folder.0.join("policy.toml").display())
}

/// Returns a connected stream that has not sent any bytes.
fn stream(endpoint: &str) -> TcpStream {
    TcpStream::connect(endpoint.strip_prefix("tcp://").unwrap()).unwrap()
}

/// Waits until the other end has closed the stream.
fn is_closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}

/// Returns the greeting of ZMTP 3.1, with NULL.
fn greeting() -> Vec<u8> {
    [&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1][..], b"NULL", &[0; 48]].concat()
}

/// Returns the bytes that a peer sends to be admitted.
fn hello(socket_type: &str) -> Vec<u8> {
    let body =
        [b"\x05READY\x0bSocket-Type\0\0\0", &[socket_type.len() as u8][..], socket_type.as_bytes()].concat();
    [greeting(), vec![4, body.len() as u8], body].concat()
}

#[test]
fn connections_have_a_limit() {
    test("connections_have_a_limit", |context| {
        let folder = Folder::new("connections");
        let (mut server, mut told, endpoint) = limited(context, &folder, SocketType::Pull, "connections = 1");
        let mut first = connected(context, SocketType::Push, &endpoint);
        first.send(b"first", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"first");
        is_closed(stream(&endpoint));
        tells(&mut told, ACCEPT_FAILED, EACCES, &permission(&limit(&folder, "connections")));
        first.send(b"still", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"still");
    });
}

#[test]
fn silent_peers_are_closed_for_new_ones() {
    test("silent_peers_are_closed_for_new_ones", |context| {
        let folder = Folder::new("handshakes");
        let (mut server, mut told, endpoint) = limited(context, &folder, SocketType::Pull, "handshakes = 3");
        let mut first = connected(context, SocketType::Push, &endpoint);
        first.send(b"first", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"first");
        let silent: Vec<_> = (0..50).map(|_| stream(&endpoint)).collect();
        let mut last = connected(context, SocketType::Push, &endpoint);
        last.send(b"last", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"last", "though so many wait to be let in");
        let reason = no_buffer_space(&limit(&folder, "handshakes"));
        for stream in silent.into_iter().take(47) {
            tells(&mut told, FAILED_NO_DETAIL, ENOBUFS, &reason);
            is_closed(stream);
        }
        first.send(b"still", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"still");
    });
}

#[test]
fn a_handshake_has_a_limit_of_bytes() {
    test("a_handshake_has_a_limit_of_bytes", |context| {
        let folder = Folder::new("handshake-bytes");
        let (mut server, mut told, endpoint) =
            limited(context, &folder, SocketType::Pull, "handshake_bytes = 1000");
        let mut attacker = stream(&endpoint);
        // A READY of 60,000 bytes, most of which are never sent.
        let head = [&[6, 0, 0, 0, 0, 0, 0, 0xEA, 0x60][..], b"\x05READY\x04X-Me\0\0\xEA\0"].concat();
        attacker.write_all(&[greeting(), head, vec![7; 2000]].concat()).unwrap();
        is_closed(attacker);
        tells(&mut told, FAILED_NO_DETAIL, ENOBUFS, &no_buffer_space(&limit(&folder, "handshake_bytes")));
        let mut good = connected(context, SocketType::Push, &endpoint);
        good.send(b"good", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"good");
    });
}

#[test]
fn messages_and_subscriptions_have_limits() {
    test("messages_and_subscriptions_have_limits", |context| {
        let folder = Folder::new("message-bytes");
        let (mut server, mut told, endpoint) = limited(
            context,
            &folder,
            SocketType::XPub,
            "message_bytes = 1000\nsubscription_bytes_per_peer = 10000",
        );
        let mut good = connected(context, SocketType::Sub, &endpoint);
        good.set_option(SUBSCRIBE, b"good").unwrap();
        assert_eq!(recv(&mut server), b"\x01good");
        let mut long = stream(&endpoint);
        long.write_all(&[hello("XSUB"), vec![2, 0, 0, 0, 0, 0, 0, 4, 0]].concat()).unwrap();
        is_closed(long);
        let long = "a message of 1024 bytes is above the limit of 1000: ";
        loses(&mut told, &format!("{long}{}", limit(&folder, "message_bytes")));
        let mut many = connected(context, SocketType::Sub, &endpoint);
        for number in 0..1000_u32 {
            many.set_option(SUBSCRIBE, &number.to_le_bytes()).unwrap();
        }
        while recv(&mut server)[0] == 1 {}
        loses(&mut told, &no_buffer_space(&limit(&folder, "subscription_bytes_per_peer")));
        server.send(b"good", Flags::NONE).unwrap();
        assert_eq!(recv(&mut good), b"good");
    });
}

#[test]
fn peer_that_does_not_read_is_closed() {
    test("peer_that_does_not_read_is_closed", |context| {
        let folder = Folder::new("unread");
        let limits = "unread_bytes_per_peer = 1000000";
        let (mut server, mut told, endpoint) = limited(context, &folder, SocketType::XPub, limits);
        let mut good = connected(context, SocketType::Sub, &endpoint);
        good.set_option(SUBSCRIBE, b"").unwrap();
        assert_eq!(recv(&mut server), b"\x01");
        let mut silent = stream(&endpoint);
        silent.write_all(&[hello("SUB"), b"\x04\x0a\x09SUBSCRIBE".to_vec()].concat()).unwrap();
        while server.recv_message(&mut Message::new(), Flags::DONTWAIT).is_ok() {}
        // The publisher has processed the subscription, or will soon.
        let body = vec![7; 100_000];
        let mut sent = 0;
        let reason = no_buffer_space(&limit(&folder, "unread_bytes_per_peer"));
        let lost = loop {
            server.send(&body, Flags::NONE).unwrap();
            sent += 1;
            assert_eq!(recv(&mut good).len(), body.len());
            if let Some(event) = next_now(&mut told, DISCONNECTED) {
                break event;
            }
        };
        assert_eq!(lost.reason, reason, "after {sent} messages");
        server.send(b"still", Flags::NONE).unwrap();
        assert_eq!(recv(&mut good), b"still");
        drop(silent);
    });
}

/// Returns the next event with this number, if it has arrived.
fn next_now(told: &mut Socket, wanted: u64) -> Option<Event> {
    const EVENTS: i32 = 15;
    let mut is_there = || {
        let mut state = [0; 4];
        told.option(EVENTS, &mut state).unwrap();
        (i32::from_ne_bytes(state) & 1 != 0).then(|| event(told))
    };
    std::iter::from_fn(&mut is_there).find(|event| event.number == wanted)
}

#[test]
fn unread_messages_stop_reading_from_peer() {
    test("unread_messages_stop_reading_from_peer", |context| {
        let folder = Folder::new("unreceived");
        let limits = "unread_bytes_per_peer = 100000";
        let (mut server, _told, endpoint) = limited(context, &folder, SocketType::Pull, limits);
        let mut attacker = stream(&endpoint);
        attacker.write_all(&hello("PUSH")).unwrap();
        let mut good = connected(context, SocketType::Push, &endpoint);
        good.send(b"good", Flags::NONE).unwrap();
        // Sends as much as the kernel accepts. The bytes that the library has read are counted below.
        attacker.set_nonblocking(true).unwrap();
        let message = [&[0, 200][..], &[7; 200]].concat();
        let many = message.repeat(1000);
        let mut written = 0;
        while written < 64 << 20 {
            match attacker.write(&many[written % message.len()..]) {
                Ok(n) => written += n,
                Err(_) if queued(&mut server) >= 100_000 / 202 => break,
                Err(_) => std::thread::yield_now(),
            }
        }
        assert!(queued(&mut server) <= (100_000 + 65_536) / 202 + 1, "{} messages", queued(&mut server));
        let mut seen = false;
        while !seen {
            seen = recv(&mut server) == b"good";
        }
    });
}

/// Returns the number of messages that wait for the program.
fn queued(server: &mut Socket) -> u64 {
    let mut numbers = [0; 14 * 8];
    server.option(0x5441_0001, &mut numbers).unwrap();
    u64::from_ne_bytes(numbers[8 * 8..][..8].try_into().unwrap())
}

/// One file may also hold the keys of several trusted clients. Then the file's name is their user name.
#[test]
fn a_list_of_keys_is_one_user() {
    test("a_list_of_keys_is_one_user", |context| {
        let folder = Folder::new("list");
        let (key, _) = folder.key("server.key", 1);
        let both = format!("{}\n{}\n", text(&public_key(&[2; 32])), text(&public_key(&[3; 32])));
        let clients = folder.file("staff.pub", &both);
        let rules = format!(
            "[wraps.in]\nkey = \"{key}\"\nclients = \"{clients}\"\n\
             [[rules]]\ncall = \"bind\"\naction = \"wrap\"\nwrap = \"in\"\n\
             [[rules]]\ncall = \"accept\"\nuser_id = \"staff\"\naction = \"allow\"\n\
             [[rules]]\ncall = \"accept\"\naction = \"refuse\"\n"
        );
        let ours = context_with_policy(&folder.file("policy.toml", &rules));
        let mut server = socket(&ours, SocketType::Pull);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        for secret in [2, 3] {
            let mut client = socket(context, SocketType::Push);
            with_key(&mut client, secret);
            client.connect(&endpoint).unwrap();
            client.send(&[secret], Flags::NONE).unwrap();
            assert_eq!(recv(&mut server), [secret]);
        }
        drop(server);
        ours.terminate().unwrap();
    });
}
