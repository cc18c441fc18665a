//! Mechanisms and the ZAP handler, end to end through the public API: admission of peers, events at both ends, metadata of
//! messages.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{bind, set, test};
use std::io::{Read, Write};
use std::net::TcpStream;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType, public_key};

const RCVMORE: i32 = 13;
const LAST_ENDPOINT: i32 = 32;
const PLAIN_SERVER: i32 = 44;
const PLAIN_USERNAME: i32 = 45;
const PLAIN_PASSWORD: i32 = 46;
const CURVE_SERVER: i32 = 47;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;
const ZAP_DOMAIN: i32 = 55;
const GSSAPI_SERVER: i32 = 62;
const HANDSHAKE_IVL: i32 = 66;
const ZAP_ENFORCE_DOMAIN: i32 = 93;

const DISCONNECTED: u16 = 0x200;
const FAILED_NO_DETAIL: u16 = 0x800;
const SUCCEEDED: u16 = 0x1000;
const FAILED_PROTOCOL: u16 = 0x2000;
const FAILED_AUTH: u16 = 0x4000;
const HANDSHAKES: u16 = FAILED_NO_DETAIL | SUCCEEDED | FAILED_PROTOCOL | FAILED_AUTH;
const MISMATCH: u32 = 0x1100_0002;
const EFAULT: u32 = 14;
const ETIMEDOUT: u32 = 110;

const SERVER_SECRET: [u8; 32] = [0x51; 32];
const CLIENT_SECRET: [u8; 32] = [0xC1; 32];

fn recv(socket: &mut Socket) -> Message {
    let mut message = Message::new();
    socket.recv_message(&mut message, Flags::NONE).unwrap();
    message
}

/// Receives all parts of a message.
fn recv_all(socket: &mut Socket) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    loop {
        parts.push(recv(socket).as_slice().to_vec());
        let mut more = [0; 4];
        socket.option(RCVMORE, &mut more).unwrap();
        if more == [0; 4] {
            return parts;
        }
    }
}

fn send_all(socket: &mut Socket, parts: &[&[u8]]) {
    for (index, part) in parts.iter().enumerate() {
        let flags = if index + 1 < parts.len() { Flags::MORE } else { Flags::NONE };
        socket.send(part, flags).unwrap();
    }
}

/// Returns a PAIR on which `socket` reports these events.
fn monitor(context: &Context, socket: &mut Socket, name: &str, events: u16) -> Socket {
    let endpoint = format!("inproc://{name}");
    socket.monitor(Some(&endpoint), events.into(), 1, SocketType::Pair).unwrap();
    let mut monitor = context.socket(SocketType::Pair).unwrap();
    monitor.connect(&endpoint).unwrap();
    monitor
}

fn next_event(monitor: &mut Socket) -> (u16, u32) {
    let head = recv_all(monitor).remove(0);
    (u16::from_ne_bytes(head[..2].try_into().unwrap()), u32::from_ne_bytes(head[2..].try_into().unwrap()))
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mechanism {
    Null,
    Plain,
    Curve,
}
use Mechanism::{Curve, Null, Plain};

fn secure(mechanism: Mechanism, server: &mut Socket, client: &mut Socket) {
    match mechanism {
        Null => {}
        Plain => {
            set(server, PLAIN_SERVER, 1);
            client.set_option(PLAIN_USERNAME, b"joe").unwrap();
            client.set_option(PLAIN_PASSWORD, b"s3cret").unwrap();
        }
        Curve => {
            set(server, CURVE_SERVER, 1);
            server.set_option(CURVE_SECRETKEY, &SERVER_SECRET).unwrap();
            client.set_option(CURVE_SERVERKEY, &public_key(&SERVER_SECRET)).unwrap();
            client.set_option(CURVE_PUBLICKEY, &public_key(&CLIENT_SECRET)).unwrap();
            client.set_option(CURVE_SECRETKEY, &CLIENT_SECRET).unwrap();
        }
    }
}

/// Returns a PULL server in the domain "home", and a PUSH client that has not connected yet.
fn server_and_client(context: &Context, mechanism: Mechanism) -> (Socket, Socket) {
    let mut server = context.socket(SocketType::Pull).unwrap();
    let mut client = context.socket(SocketType::Push).unwrap();
    server.set_option(ZAP_DOMAIN, b"home").unwrap();
    secure(mechanism, &mut server, &mut client);
    (server, client)
}

fn handler(context: &Context, socket_type: SocketType) -> Socket {
    let mut handler = context.socket(socket_type).unwrap();
    handler.bind("inproc://zeromq.zap.01").unwrap();
    handler
}

/// Returns the frames of a request that a REP handler receives.
fn request(mechanism: Mechanism) -> Vec<Vec<u8>> {
    let (name, credentials): (&[u8], Vec<Vec<u8>>) = match mechanism {
        Null => (b"NULL", vec![]),
        Plain => (b"PLAIN", vec![b"joe".to_vec(), b"s3cret".to_vec()]),
        Curve => (b"CURVE", vec![public_key(&CLIENT_SECRET).to_vec()]),
    };
    let fixed: [&[u8]; 6] = [b"1.0", b"1", b"home", b"127.0.0.1", b"", name];
    fixed.into_iter().map(<[u8]>::to_vec).chain(credentials).collect()
}

const METADATA: &[u8] = b"\x05Hello\0\0\0\x05World";

#[test]
fn a_handler_lets_in_and_names_the_peer() {
    test("allow", |context| {
        let mut handler = handler(context, SocketType::Rep);
        for mechanism in [Null, Plain, Curve] {
            let (mut server, mut client) = server_and_client(context, mechanism);
            client.connect(&bind(&mut server, "tcp://127.0.0.1:*")).unwrap();
            assert_eq!(recv_all(&mut handler), request(mechanism));
            send_all(&mut handler, &[b"1.0", b"1", b"200", b"OK", b"user", METADATA]);
            client.send(b"hello", Flags::NONE).unwrap();
            let message = recv(&mut server);
            assert_eq!(message.as_slice(), b"hello");
            let property = |name| message.property(name).map(|value| value.to_bytes());
            assert_eq!(property("User-Id"), Some(&b"user"[..]), "{mechanism:?}");
            assert_eq!(property("Hello"), Some(&b"World"[..]));
            assert_eq!(property("Socket-Type"), Some(&b"PUSH"[..]));
            assert_eq!(property("Peer-Address"), Some(&b"127.0.0.1"[..]));
        }
    });
}

#[test]
fn a_router_may_be_the_handler_and_ask_in_any_order() {
    test("router", |context| {
        let mut handler = handler(context, SocketType::Router);
        let (mut server, mut client) = server_and_client(context, Curve);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        client.connect(&endpoint).unwrap();
        let first = recv_all(&mut handler);
        let (_, mut other) = server_and_client(context, Curve);
        other.connect(&endpoint).unwrap();
        let second = recv_all(&mut handler);
        assert_ne!(first[0], second[0], "a pipe for each handshake");
        for (envelope, status) in [(&second, b"200"), (&first, b"400")] {
            assert_eq!(envelope[1], b"");
            send_all(&mut handler, &[&envelope[0], b"", b"1.0", b"1", status, b"", b"", b""]);
        }
        other.send(b"from the other", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server).as_slice(), b"from the other");
    });
}

#[test]
fn refusals_are_reported_at_both_ends() {
    test("deny", |context| {
        let mut handler = handler(context, SocketType::Rep);
        for (round, (mechanism, status)) in
            [Null, Plain, Curve].into_iter().flat_map(|m| [(m, b"400"), (m, b"500")]).enumerate()
        {
            let (mut server, mut client) = server_and_client(context, mechanism);
            let mut at_server =
                monitor(context, &mut server, &format!("s{round}"), HANDSHAKES | DISCONNECTED);
            let mut at_client =
                monitor(context, &mut client, &format!("c{round}"), HANDSHAKES | DISCONNECTED);
            client.connect(&bind(&mut server, "tcp://127.0.0.1:*")).unwrap();
            recv_all(&mut handler);
            send_all(&mut handler, &[b"1.0", b"1", status, b"no", b"", b""]);
            let code = u32::from(status[0] - b'0') * 100;
            for monitor in [&mut at_server, &mut at_client] {
                assert_eq!(next_event(monitor), (FAILED_AUTH, code), "{mechanism:?}");
                assert_eq!(next_event(monitor).0, DISCONNECTED);
            }
        }
    });
}

/// C programs use version 2 of the monitor, so its format must not change.
#[test]
fn only_detailed_monitor_shows_refused_credentials() {
    test("detail", |context| {
        let mut handler = handler(context, SocketType::Rep);
        for (round, mechanism) in [Null, Plain, Curve].into_iter().enumerate() {
            for in_detail in [false, true] {
                let (mut server, mut client) = server_and_client(context, mechanism);
                let name = format!("inproc://{in_detail}{round}");
                if in_detail {
                    server.monitor_in_detail(&name).unwrap();
                } else {
                    server.monitor(Some(&name), HANDSHAKES.into(), 2, SocketType::Pair).unwrap();
                }
                let mut monitor = context.socket(SocketType::Pair).unwrap();
                monitor.connect(&name).unwrap();
                client.connect(&bind(&mut server, "tcp://127.0.0.1:*")).unwrap();
                recv_all(&mut handler);
                send_all(&mut handler, &[b"1.0", b"1", b"400", b"no", b"", b""]);
                let event = loop {
                    let event = recv_all(&mut monitor);
                    if event[0] == u64::from(FAILED_AUTH).to_ne_bytes() {
                        break event;
                    }
                };
                assert_eq!(event[1..3], [1_u64.to_ne_bytes().to_vec(), 400_u64.to_ne_bytes().to_vec()]);
                let (name, shown): (&[u8], &[u8]) = match mechanism {
                    Null => (b"NULL", b""),
                    Plain => (b"PLAIN", b"joe"),
                    Curve => (b"CURVE", &public_key(&CLIENT_SECRET)),
                };
                let expected: &[&[u8]] =
                    if in_detail { &[b"", b"", b"", b"refused", name, shown, b"no"] } else { &[] };
                assert_eq!(event[5..], *expected, "{mechanism:?}");
            }
        }
    });
}

#[test]
fn temporary_zap_failure_is_not_reported() {
    test("temporary", |context| {
        let mut handler = handler(context, SocketType::Rep);
        let (mut server, mut client) = server_and_client(context, Plain);
        let mut at_server = monitor(context, &mut server, "server", HANDSHAKES | DISCONNECTED);
        let mut at_client = monitor(context, &mut client, "client", HANDSHAKES | DISCONNECTED | 0x400);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        client.connect(&endpoint).unwrap();
        recv_all(&mut handler);
        send_all(&mut handler, &[b"1.0", b"1", b"300", b"later", b"", b""]);
        assert_eq!(next_event(&mut at_server), (FAILED_AUTH, 300));
        // The connection stays until the client gives up. The client is not notified before.
        client.close();
        assert_eq!(next_event(&mut at_server).0, DISCONNECTED);
        assert_eq!(next_event(&mut at_client).0, 0x400, "MONITOR_STOPPED");
    });
}

#[test]
fn replies_are_checked() {
    let good: [&[u8]; 6] = [b"1.0", b"1", b"200", b"OK", b"user", b""];
    let with = move |index: usize, frame: &'static [u8]| {
        let mut frames = good.to_vec();
        frames[index] = frame;
        frames
    };
    let bad = [
        (with(0, b"2.0"), 0x2000_0003),
        (with(1, b"2"), 0x2000_0002),
        (with(2, b"201"), 0x2000_0004),
        (with(5, b"\x05Hello"), 0x2000_0005),
        (good[..5].to_vec(), 0x2000_0001),
        ([&good[..], &[b""]].concat(), 0x2000_0001),
        (vec![&b""[..]], 0x2000_0001),
        (std::iter::repeat_n(&b"frame"[..], 1000).collect(), 0x2000_0001),
    ];
    test("replies", move |context| {
        let mut handler = handler(context, SocketType::Rep);
        for (round, (frames, code)) in bad.into_iter().enumerate() {
            let (mut server, mut client) = server_and_client(context, Curve);
            let mut events = monitor(context, &mut server, &format!("s{round}"), HANDSHAKES);
            client.connect(&bind(&mut server, "tcp://127.0.0.1:*")).unwrap();
            recv_all(&mut handler);
            send_all(&mut handler, &frames);
            assert_eq!(next_event(&mut events), (FAILED_PROTOCOL, code));
            client.disconnect(&String::from_utf8(last_endpoint(&mut server)).unwrap()).unwrap();
            // The client may or may not have reconnected by now.
            drop((server, client));
            while handler.recv(&mut [0; 64], Flags::DONTWAIT).is_ok() {}
            drop(handler);
            handler = self::handler(context, SocketType::Rep);
        }
    });
}

fn last_endpoint(socket: &mut Socket) -> Vec<u8> {
    let mut buffer = [0; 256];
    let n = socket.option(LAST_ENDPOINT, &mut buffer).unwrap();
    buffer[..n - 1].to_vec()
}

#[test]
fn without_a_handler_the_options_decide() {
    test("nobody", |context| {
        for (round, (mechanism, enforce, domain)) in [Null, Plain, Curve]
            .into_iter()
            .flat_map(|m| [(m, 0, true), (m, 1, true), (m, 1, false)])
            .enumerate()
        {
            let (mut server, mut client) = server_and_client(context, mechanism);
            if !domain {
                server = context.socket(SocketType::Pull).unwrap();
                secure(mechanism, &mut server, &mut client);
            }
            set(&mut server, ZAP_ENFORCE_DOMAIN, enforce);
            let mut events = monitor(context, &mut server, &format!("s{round}"), HANDSHAKES);
            client.connect(&bind(&mut server, "tcp://127.0.0.1:*")).unwrap();
            // Passwords need a handler. Keys and unauthenticated peers need a handler only if ZMQ_ZAP_ENFORCE_DOMAIN and a domain
            // are set.
            let open = mechanism != Plain && (enforce == 0 || !domain);
            let expected = if open { (SUCCEEDED, 0) } else { (FAILED_NO_DETAIL, EFAULT) };
            assert_eq!(next_event(&mut events), expected, "{mechanism:?} {enforce} {domain}");
        }
    });
}

#[test]
fn a_handler_that_cannot_answer_lets_no_peer_in() {
    test("unfit", |context| {
        let _unfit = handler(context, SocketType::Pull);
        for (round, mechanism) in [Null, Plain, Curve].into_iter().enumerate() {
            let (mut server, mut client) = server_and_client(context, mechanism);
            let mut events = monitor(context, &mut server, &format!("s{round}"), HANDSHAKES);
            client.connect(&bind(&mut server, "tcp://127.0.0.1:*")).unwrap();
            assert_eq!(next_event(&mut events), (FAILED_NO_DETAIL, EFAULT));
        }
    });
}

#[test]
fn a_handler_that_leaves_lets_no_peer_in() {
    test("leaves", |context| {
        for (round, mechanism) in [Null, Plain, Curve].into_iter().enumerate() {
            let mut handler = handler(context, SocketType::Rep);
            let (mut server, mut client) = server_and_client(context, mechanism);
            set(&mut server, HANDSHAKE_IVL, 50);
            let mut events = monitor(context, &mut server, &format!("s{round}"), HANDSHAKES);
            client.connect(&bind(&mut server, "tcp://127.0.0.1:*")).unwrap();
            recv(&mut handler);
            handler.close();
            assert_eq!(next_event(&mut events), (FAILED_NO_DETAIL, ETIMEDOUT));
        }
    });
}

#[test]
fn a_context_ends_with_questions_open() {
    test("open questions", |context| {
        let mut handler = handler(context, SocketType::Rep);
        let (mut server, mut client) = server_and_client(context, Curve);
        client.connect(&bind(&mut server, "tcp://127.0.0.1:*")).unwrap();
        recv(&mut handler);
        drop((server, client, handler));
    });
}

#[test]
fn curve_client_reconnects_and_stays_encrypted() {
    test("reconnect", |context| {
        let (mut server, mut client) = server_and_client(context, Curve);
        let endpoint = tautline_testkit::endpoint::tcp();
        server.bind(&endpoint).unwrap();
        let mut events = monitor(context, &mut client, "client", SUCCEEDED);
        client.connect(&endpoint).unwrap();
        for round in 0..3u8 {
            // Messages sent before the end of the former session is noticed may be lost.
            assert_eq!(next_event(&mut events), (SUCCEEDED, 0));
            client.send(&[round; 100_000], Flags::NONE).unwrap();
            assert_eq!(recv(&mut server).as_slice(), [round; 100_000]);
            server.close();
            (server, _) = server_and_client(context, Curve);
            // The previous server has freed the address at once.
            server.bind(&endpoint).unwrap();
        }
    });
}

/// We close a refused peer that keeps sending. Otherwise we would read from it for as long as it sends.
#[test]
fn refused_peer_that_keeps_sending_is_closed() {
    test("talkative", |context| {
        let mut handler = handler(context, SocketType::Rep);
        let (mut server, _) = server_and_client(context, Plain);
        // Without this option, the time limit of the handshake would end the connection.
        set(&mut server, HANDSHAKE_IVL, 0);
        let mut events = monitor(context, &mut server, "server", HANDSHAKES | DISCONNECTED);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        for status in [b"300", b"400"] {
            let mut stream = TcpStream::connect(&endpoint["tcp://".len()..]).unwrap();
            let mut greeting = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01PLAIN".to_vec();
            greeting.resize(64, 0);
            stream.write_all(&[&greeting[..], b"\x04\x0d\x05HELLO\x03joe\x02no"].concat()).unwrap();
            recv_all(&mut handler);
            send_all(&mut handler, &[b"1.0", b"1", status, b"no", b"", b""]);
            assert_eq!(next_event(&mut events).0, FAILED_AUTH);
            while stream.write_all(&[0; 4096]).is_ok() {}
            assert_eq!(next_event(&mut events).0, DISCONNECTED);
        }
    });
}

#[test]
fn strangers_do_not_get_past_the_greeting() {
    test("strangers", |context| {
        let (mut server, mut client) = server_and_client(context, Curve);
        let mut events = monitor(context, &mut server, "server", HANDSHAKES);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let mut null = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL".to_vec();
        null.resize(64, 0);
        let older = b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x08\0\0\0\x06sneaky".to_vec();
        let oldest = b"\x01\0\x08\0sneaky\0".to_vec();
        for bytes in [oldest, older, null] {
            let mut stream = TcpStream::connect(&endpoint["tcp://".len()..]).unwrap();
            stream.write_all(&bytes).unwrap();
            assert_eq!(next_event(&mut events), (FAILED_PROTOCOL, MISMATCH));
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            assert!(rest.len() <= 64, "a greeting at most");
        }
        client.connect(&endpoint).unwrap();
        client.send(b"friend", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server).as_slice(), b"friend");
    });
}

#[test]
fn gssapi_is_refused_before_it_starts() {
    test("gssapi", |context| {
        let mut socket = context.socket(SocketType::Pair).unwrap();
        set(&mut socket, GSSAPI_SERVER, 1);
        assert_eq!(socket.bind("tcp://127.0.0.1:*"), Err(Error::NotSupported));
        assert_eq!(socket.connect("tcp://127.0.0.1:1"), Err(Error::NotSupported));
    });
}

#[test]
fn datagrams_do_not_fall_back_to_no_security() {
    test("datagrams", |context| {
        let mut dish = context.socket(SocketType::Dish).unwrap();
        let mut radio = context.socket(SocketType::Radio).unwrap();
        secure(Curve, &mut dish, &mut radio);
        assert_eq!(dish.bind("udp://127.0.0.1:5555"), Err(Error::NotSupported));
        assert_eq!(radio.connect("udp://127.0.0.1:5555"), Err(Error::NotSupported));
    });
}
