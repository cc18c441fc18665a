//! `tls+tcp`: sockets over TLS, peers without the right certificates, and peers that speak another
//! protocol.

// A loom model has no sockets.
#![cfg(all(feature = "tls", not(loom)))]

mod common;

use common::{bind, recv, set, test};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};
use tautline_testkit::certificates::{self as with, CA, CLIENT, CLIENT_KEY, SERVER, SERVER_KEY};

const LINGER: i32 = 17;
const RECONNECT_IVL: i32 = 18;
const ZAP_DOMAIN: i32 = 55;
const HANDSHAKE_IVL: i32 = 66;
const HEARTBEAT_IVL: i32 = 75;
const HEARTBEAT_TIMEOUT: i32 = 77;
const KEY_PEM: i32 = 103;
const CERT_PEM: i32 = 104;
const TRUST_PEM: i32 = 105;
const HOSTNAME: i32 = 106;
const ANY: &str = "tls+tcp://127.0.0.1:*";

const CONNECT_RETRIED: u16 = 0x4;
const HANDSHAKE_SUCCEEDED: u16 = 0x1000;
const FAILED_NO_DETAIL: u16 = 0x800;
const FAILED_PROTOCOL: u16 = 0x2000;
const ETIMEDOUT: u32 = 110;
const NOT_TLS: u32 = 0x5441_3001;
const UNTRUSTED: u32 = 0x5441_3003;
const EXPIRED: u32 = 0x5441_3004;
const OTHER_NAME: u32 = 0x5441_3005;
const NO_CERTIFICATE: u32 = 0x5441_3007;
const UNASKED: u32 = 0x5441_3008;
/// Base of the values for a TLS alert; the number of the alert is added.
const REFUSED: u32 = 0x5441_3100;

fn socket(context: &Context, socket_type: SocketType) -> Socket {
    let mut socket = context.socket(socket_type).unwrap();
    set(&mut socket, LINGER, 0);
    set(&mut socket, RECONNECT_IVL, 10);
    socket
}

fn own(socket: &mut Socket, certificate: &str, key: &str) {
    socket.set_option(CERT_PEM, certificate.as_bytes()).unwrap();
    socket.set_option(KEY_PEM, key.as_bytes()).unwrap();
}

fn trust(socket: &mut Socket, certificates: &str) {
    socket.set_option(TRUST_PEM, certificates.as_bytes()).unwrap();
}

/// Returns a socket with the usual certificate.
fn server(context: &Context, socket_type: SocketType) -> Socket {
    let mut socket = socket(context, socket_type);
    own(&mut socket, SERVER, SERVER_KEY);
    socket
}

/// Returns a socket that trusts the usual certificate.
fn client(context: &Context, socket_type: SocketType) -> Socket {
    let mut socket = socket(context, socket_type);
    trust(&mut socket, CA);
    socket
}

/// Returns a PAIR that receives the events of a socket.
fn monitor(context: &Context, socket: &mut Socket, name: &str) -> Socket {
    socket.monitor(Some(&format!("inproc://{name}")), 0xFFFF, 1, SocketType::Pair).unwrap();
    common::connected(context, SocketType::Pair, &format!("inproc://{name}"))
}

/// Returns the outcome of the next handshake from the events.
fn outcome(events: &mut Socket) -> (u16, u32) {
    loop {
        let event = recv(events);
        let _ = recv(events);
        let number = u16::from_ne_bytes([event[0], event[1]]);
        let value = u32::from_ne_bytes(event[2..6].try_into().unwrap());
        match number {
            HANDSHAKE_SUCCEEDED | FAILED_NO_DETAIL | FAILED_PROTOCOL | 0x4000 => return (number, value),
            _ => {}
        }
    }
}

fn until(events: &mut Socket, wanted: u16) {
    loop {
        let event = recv(events);
        let _ = recv(events);
        if u16::from_ne_bytes([event[0], event[1]]) == wanted {
            return;
        }
    }
}

fn port(endpoint: &str) -> &str {
    endpoint.rsplit(':').next().unwrap()
}

#[test]
fn server_shows_certificate_of_requested_name() {
    test("server_shows_certificate_of_requested_name", |context| {
        let mut server = socket(context, SocketType::Pull);
        let all = |parts: [&str; 2]| parts.concat();
        own(&mut server, &all([with::SELF_SIGNED, SERVER]), &all([SERVER_KEY, with::SELF_SIGNED_KEY]));
        let endpoint = bind(&mut server, ANY);
        for (trusted, host) in [(CA, "localhost"), (with::SELF_SIGNED, "127.0.0.1")] {
            let mut client = socket(context, SocketType::Push);
            trust(&mut client, trusted);
            client.connect(&format!("tls+tcp://{host}:{}", port(&endpoint))).unwrap();
            client.send(host.as_bytes(), Flags::NONE).unwrap();
            assert_eq!(recv(&mut server), host.as_bytes());
        }
    });
}

#[test]
fn messages_go_through_tls() {
    test("messages_go_through_tls", |context| {
        let mut server = server(context, SocketType::Pair);
        let endpoint = bind(&mut server, ANY);
        assert!(endpoint.starts_with("tls+tcp://127.0.0.1:"), "{endpoint}");
        let (between, seen) = relay(port(&endpoint), 65536);
        let mut client = client(context, SocketType::Pair);
        for socket in [&mut server, &mut client] {
            set(socket, HEARTBEAT_IVL, 1);
            set(socket, HEARTBEAT_TIMEOUT, 600_000);
        }
        client.connect(&format!("tls+tcp://localhost:{between}")).unwrap();
        for size in [0, 1, 255, 256, 16_384, 70_000, 1 << 20] {
            let body = vec![b'x'; size];
            client.send(&body, Flags::NONE).unwrap();
            assert!(recv(&mut server) == body);
            server.send(b"and the more", Flags::MORE).unwrap();
            server.send(&body, Flags::NONE).unwrap();
            assert_eq!(recv(&mut client), b"and the more");
            assert!(recv(&mut client) == body);
        }
        for number in 0..5000_u32 {
            client.send(&number.to_ne_bytes(), Flags::NONE).unwrap();
        }
        for number in 0..5000_u32 {
            assert_eq!(recv(&mut server), number.to_ne_bytes());
        }
        let seen = seen.lock().unwrap();
        assert_eq!(&seen[..3], b"\x16\x03\x01", "it begins with a record of TLS");
        for plain in [&b"xxxxxxxx"[..], b"and the more", b"Socket-Type", b"NULL"] {
            assert!(!seen.windows(plain.len()).any(|bytes| bytes == plain));
        }
    });
}

#[test]
fn a_byte_at_a_time_is_enough() {
    test("a_byte_at_a_time_is_enough", |context| {
        let mut server = server(context, SocketType::Pair);
        let endpoint = bind(&mut server, ANY);
        let (between, _) = relay(port(&endpoint), 1);
        let mut client = client(context, SocketType::Pair);
        client.connect(&format!("tls+tcp://127.0.0.1:{between}")).unwrap();
        client.send(b"slowly", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"slowly");
        server.send(b"but well", Flags::NONE).unwrap();
        assert_eq!(recv(&mut client), b"but well");
    });
}

/// Settings of client and server, and the events that report their fault.
struct Case {
    server: [&'static str; 2],
    clients: &'static str,
    trust: &'static str,
    name: &'static str,
    client: [&'static str; 2],
    /// Values of the events at the server and at the client; 0 after a successful handshake.
    events: [u32; 2],
}

const GOOD: Case =
    Case { server: [SERVER, SERVER_KEY], clients: "", trust: CA, name: "", client: ["", ""], events: [0, 0] };

#[test]
fn both_ends_report_the_handshake_error() {
    test("both_ends_report_the_handshake_error", |context| {
        let alice = [CLIENT, CLIENT_KEY];
        let mallory = [with::OTHER_CLIENT, with::OTHER_CLIENT_KEY];
        let cases = [
            Case { ..GOOD },
            Case { name: "example.org", ..GOOD },
            Case { trust: with::OTHER_CA, events: [REFUSED + 48, UNTRUSTED], ..GOOD },
            Case { name: "example.com", events: [REFUSED + 42, OTHER_NAME], ..GOOD },
            Case { server: [with::EXPIRED, with::EXPIRED_KEY], events: [REFUSED + 45, EXPIRED], ..GOOD },
            Case { clients: CA, client: alice, ..GOOD },
            Case { clients: CA, events: [NO_CERTIFICATE, REFUSED + 116], ..GOOD },
            Case { clients: CA, client: mallory, events: [UNTRUSTED, REFUSED + 48], ..GOOD },
        ];
        for (at, case) in cases.iter().enumerate() {
            let mut pull = socket(context, SocketType::Pull);
            own(&mut pull, case.server[0], case.server[1]);
            trust(&mut pull, case.clients);
            let mut at_server = monitor(context, &mut pull, &format!("server-{at}"));
            let endpoint = bind(&mut pull, ANY);
            let mut push = socket(context, SocketType::Push);
            trust(&mut push, case.trust);
            push.set_option(HOSTNAME, case.name.as_bytes()).unwrap();
            if !case.client[0].is_empty() {
                own(&mut push, case.client[0], case.client[1]);
            }
            let mut at_client = monitor(context, &mut push, &format!("client-{at}"));
            push.connect(&endpoint).unwrap();
            for (events, code) in [(&mut at_server, case.events[0]), (&mut at_client, case.events[1])] {
                let wanted = if code == 0 { (HANDSHAKE_SUCCEEDED, 0) } else { (FAILED_PROTOCOL, code) };
                let found = outcome(events);
                assert!(found == wanted, "case {at}: {found:x?} and not {wanted:x?}");
            }
            if case.events[1] != 0 {
                until(&mut at_client, CONNECT_RETRIED);
            }
            // Other peers stay connected.
            let mut good = client(context, SocketType::Push);
            own(&mut good, CLIENT, CLIENT_KEY);
            if case.server[0] == SERVER {
                good.connect(&endpoint).unwrap();
                good.send(b"goes on", Flags::NONE).unwrap();
                assert_eq!(recv(&mut pull), b"goes on");
            }
        }
    });
}

#[test]
fn the_other_end_may_not_speak_tls() {
    test("the_other_end_may_not_speak_tls", |context| {
        let mut sealed = server(context, SocketType::Pull);
        let mut events = monitor(context, &mut sealed, "sealed");
        let endpoint = bind(&mut sealed, ANY);
        let mut plain = socket(context, SocketType::Push);
        let mut at_client = monitor(context, &mut plain, "plain");
        plain.connect(&format!("tcp://127.0.0.1:{}", port(&endpoint))).unwrap();
        assert_eq!(outcome(&mut events), (FAILED_PROTOCOL, NOT_TLS));
        assert_ne!(outcome(&mut at_client).0, HANDSHAKE_SUCCEEDED);
        until(&mut at_client, CONNECT_RETRIED);
        drop(plain);
        let mut http = TcpStream::connect(("127.0.0.1", port(&endpoint).parse().unwrap())).unwrap();
        http.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = http.read_to_end(&mut answer);
        assert_eq!(answer.first(), Some(&0x15), "an alert");

        let mut open = socket(context, SocketType::Pull);
        let mut events = monitor(context, &mut open, "open");
        let plain = bind(&mut open, "tcp://127.0.0.1:*");
        let mut push = client(context, SocketType::Push);
        let mut at_client = monitor(context, &mut push, "push");
        push.connect(&format!("tls+tcp://127.0.0.1:{}", port(&plain))).unwrap();
        assert_eq!(outcome(&mut events), (FAILED_PROTOCOL, UNASKED));
        assert_ne!(outcome(&mut at_client).0, HANDSHAKE_SUCCEEDED);
        until(&mut at_client, CONNECT_RETRIED);
        let mut other = socket(context, SocketType::Push);
        other.connect(&plain).unwrap();
        other.send(b"goes on", Flags::NONE).unwrap();
        assert_eq!(recv(&mut open), b"goes on");
    });
}

#[test]
fn a_handshake_that_stops_is_ended() {
    test("a_handshake_that_stops_is_ended", |context| {
        let mut pull = server(context, SocketType::Pull);
        set(&mut pull, HANDSHAKE_IVL, 50);
        let mut events = monitor(context, &mut pull, "pull");
        let endpoint = bind(&mut pull, ANY);
        // The peer sends no bytes, or half a record.
        for said in [&b""[..], b"\x16\x03\x01\x02\x00half"] {
            let mut peer = TcpStream::connect(("127.0.0.1", port(&endpoint).parse().unwrap())).unwrap();
            peer.write_all(said).unwrap();
            assert_eq!(outcome(&mut events), (FAILED_NO_DETAIL, ETIMEDOUT));
            assert_eq!(peer.read(&mut [0; 64]).unwrap_or(0), 0);
        }
        // The socket is the client, and its server stays silent.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut push = client(context, SocketType::Push);
        set(&mut push, HANDSHAKE_IVL, 50);
        let mut events = monitor(context, &mut push, "push");
        push.connect(&format!("tls+tcp://{}", silent.local_addr().unwrap())).unwrap();
        assert_eq!(outcome(&mut events), (FAILED_NO_DETAIL, ETIMEDOUT));
        until(&mut events, CONNECT_RETRIED);
    });
}

#[test]
fn messages_bear_the_name_in_the_certificate() {
    test("messages_bear_the_name_in_the_certificate", |context| {
        let mut pull = server(context, SocketType::Pull);
        trust(&mut pull, &format!("{CA}{}", with::OTHER_CA));
        let endpoint = bind(&mut pull, ANY);
        for (certificate, key, user) in [
            (CLIENT, CLIENT_KEY, "alice"),
            (with::OTHER_CLIENT, with::OTHER_CLIENT_KEY, "spiffe://example.org/mallory"),
        ] {
            let mut push = client(context, SocketType::Push);
            own(&mut push, certificate, key);
            push.connect(&endpoint).unwrap();
            push.send(b"from me", Flags::NONE).unwrap();
            let mut message = Message::new();
            pull.recv_message(&mut message, Flags::NONE).unwrap();
            assert_eq!(message.property("User-Id").map(|name| name.to_str().unwrap()), Some(user));
        }
    });
}

#[test]
fn a_handler_has_the_last_word_on_the_user() {
    test("a_handler_has_the_last_word_on_the_user", |context| {
        let mut handler = context.socket(SocketType::Rep).unwrap();
        handler.bind("inproc://zeromq.zap.01").unwrap();
        let mut pull = server(context, SocketType::Pull);
        trust(&mut pull, CA);
        pull.set_option(ZAP_DOMAIN, b"global").unwrap();
        let endpoint = bind(&mut pull, ANY);
        let mut push = client(context, SocketType::Push);
        own(&mut push, CLIENT, CLIENT_KEY);
        push.connect(&endpoint).unwrap();
        push.send(b"from me", Flags::NONE).unwrap();
        // The frames are version, ID, domain, address, routing ID and mechanism. The certificate is not included.
        let request: Vec<_> = (0..6).map(|_| recv(&mut handler)).collect();
        assert_eq!(request[5], b"NULL");
        for part in [&b"1.0"[..], &request[1], b"200", b"OK", b"by the handler"] {
            handler.send(part, Flags::MORE).unwrap();
        }
        handler.send(b"", Flags::NONE).unwrap();
        let mut message = Message::new();
        pull.recv_message(&mut message, Flags::NONE).unwrap();
        assert_eq!(message.property("User-Id").unwrap().to_str(), Ok("by the handler"));
    });
}

#[test]
fn a_lost_connection_is_made_again() {
    test("a_lost_connection_is_made_again", |context| {
        let mut pull = server(context, SocketType::Pull);
        let endpoint = bind(&mut pull, ANY);
        let mut push = client(context, SocketType::Push);
        push.connect(&endpoint).unwrap();
        push.send(b"before", Flags::NONE).unwrap();
        assert_eq!(recv(&mut pull), b"before");
        pull.unbind(&endpoint).unwrap();
        drop(pull);
        let mut pull = socket(context, SocketType::Pull);
        own(&mut pull, with::RENEWED, with::RENEWED_KEY);
        pull.bind(&endpoint).unwrap();
        // Messages sent into an ending connection are lost, as over tcp.
        let mut after = Message::new();
        while pull.recv_message(&mut after, Flags::DONTWAIT).is_err() {
            let _ = push.send(b"after", Flags::DONTWAIT);
            thread::yield_now();
        }
        assert_eq!(after.as_slice(), b"after");
    });
}

#[test]
fn impossible_settings_are_refused_at_once() {
    test("impossible_settings_are_refused_at_once", |context| {
        let mut nothing = socket(context, SocketType::Pull);
        assert_eq!(nothing.bind(ANY), Err(Error::Invalid));
        own(&mut nothing, SERVER, CLIENT_KEY);
        assert_eq!(nothing.bind(ANY), Err(Error::Invalid));
        let mut push = socket(context, SocketType::Push);
        trust(&mut push, "nonsense");
        assert_eq!(push.connect("tls+tcp://127.0.0.1:9"), Err(Error::Invalid));
        trust(&mut push, CA);
        push.set_option(HOSTNAME, b"no name").unwrap();
        assert_eq!(push.connect("tls+tcp://127.0.0.1:9"), Err(Error::Invalid));
        let mut raw = server(context, SocketType::Stream);
        assert_eq!(raw.bind(ANY), Err(Error::IncompatibleProtocol));
        trust(&mut raw, CA);
        assert_eq!(raw.connect("tls+tcp://127.0.0.1:9"), Err(Error::IncompatibleProtocol));
        assert_eq!(raw.connect("tls+tcp://127.0.0.1"), Err(Error::Invalid));
    });
}

/// Relays bytes to a port, this many at a time, and keeps a copy of them. Returns the port on which it
/// listens.
fn relay(to: &str, piece: usize) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().port();
    let (seen, to): (Arc<Mutex<Vec<u8>>>, u16) = (Arc::default(), to.parse().unwrap());
    let copies = seen.clone();
    thread::spawn(move || {
        let (near, _) = listener.accept().unwrap();
        let far = TcpStream::connect(("127.0.0.1", to)).unwrap();
        for (mut from, mut into) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
            into.set_nodelay(true).unwrap();
            let copies = copies.clone();
            thread::spawn(move || {
                let mut buffer = [0; 65536];
                while let Ok(n @ 1..) = from.read(&mut buffer) {
                    copies.lock().unwrap().extend_from_slice(&buffer[..n]);
                    if buffer[..n].chunks(piece).any(|bytes| into.write_all(bytes).is_err()) {
                        break;
                    }
                }
                let _ = into.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    (at, seen)
}
