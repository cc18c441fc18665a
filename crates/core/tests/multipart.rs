//! The limit of a multipart message (ZMQ_TAUTLINE_MAXMULTIPARTSIZE), and the treatment of a peer that exceeds it.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{bind, handshake, recv, set, test};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType, public_key};

const SUBSCRIBE: i32 = 6;
const LINGER: i32 = 17;
const RECONNECT_IVL: i32 = 18;
const MAXMSGSIZE: i32 = 22;
const CURVE_SERVER: i32 = 47;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;
const MAX_MULTIPART_SIZE: i32 = 0x5441_0003;
const DISCONNECTED: u16 = 0x200;

/// Limit of a message in bytes. Some messages reach it with parts that arrive one by one, others with parts that arrive at once.
const LIMIT: i64 = 100_000;
/// Number of exchanges after which both ends of an ipc connection use shared memory, if the system has it.
const ENOUGH: u32 = 300;
/// Number of bytes that exceeds the kernel's buffers.
const SYSTEM: usize = 64 << 20;

fn set_long(socket: &mut Socket, option: i32, value: i64) {
    socket.set_option(option, &value.to_ne_bytes()).unwrap();
}

/// Waits until `socket` has lost a peer.
fn await_loss(monitor: &mut Socket) {
    let mut message = Message::new();
    loop {
        monitor.recv_message(&mut message, Flags::NONE).unwrap();
        let event = u16::from_ne_bytes(message.as_slice()[..2].try_into().unwrap());
        monitor.recv_message(&mut message, Flags::NONE).unwrap();
        if event == DISCONNECTED {
            return;
        }
    }
}

fn monitor(context: &Context, socket: &mut Socket) -> Socket {
    socket.monitor(Some("inproc://events"), DISCONNECTED.into(), 1, SocketType::Pair).unwrap();
    let mut monitor = context.socket(SocketType::Pair).unwrap();
    monitor.connect("inproc://events").unwrap();
    monitor
}

/// Sends a message of `parts` parts of `len` bytes.
fn send(socket: &mut Socket, parts: usize, len: usize) {
    for part in 1..=parts {
        let more = if part < parts { Flags::MORE } else { Flags::NONE };
        socket.send(&vec![7; len], more).unwrap();
    }
}

/// Receives a whole message. Returns the number of its parts and the length of the last one.
fn receive(socket: &mut Socket, flags: Flags) -> Result<(usize, usize), Error> {
    let mut message = Message::new();
    let mut parts = 0;
    loop {
        socket.recv_message(&mut message, flags)?;
        parts += 1;
        if !message.more() {
            return Ok((parts, message.as_slice().len()));
        }
    }
}

/// Returns a server that accepts messages of `LIMIT` bytes, and the events of its peers.
fn limited(context: &Context, socket_type: SocketType) -> (Socket, Socket) {
    let mut server = context.socket(socket_type).unwrap();
    set_long(&mut server, MAX_MULTIPART_SIZE, LIMIT);
    let events = monitor(context, &mut server);
    (server, events)
}

/// Sends one message, and a reply if `answers` is true. Returns the number of parts that the pattern puts before the message.
fn exchange(server: &mut Socket, client: &mut Socket, parts: usize, len: usize, answers: bool) -> usize {
    send(client, parts, len);
    let (received, last) = receive(server, Flags::NONE).unwrap();
    assert_eq!(last, len);
    if answers {
        server.send(b"so far", Flags::NONE).unwrap();
        receive(client, Flags::NONE).unwrap();
    }
    received - parts
}

/// Checks that messages up to the limit arrive, and that a longer message disconnects its sender. First makes `exchanges`
/// exchanges with answers.
fn check(server: &mut Socket, events: &mut Socket, client: &mut Socket, exchanges: u32) {
    let answers = exchanges > 0;
    (0..exchanges).for_each(|_| _ = exchange(server, client, 2, 100, answers));
    let in_front = exchange(server, client, 900, 100, answers);
    assert_eq!(exchange(server, client, 3, 33_000, answers), in_front);
    send(client, 1100, 100);
    await_loss(events);
    assert_eq!(receive(server, Flags::DONTWAIT), Err(Error::Again));
}

#[test]
fn every_pattern_keeps_the_limit() {
    use SocketType::{Dealer, Pair, Pull, Push, Rep, Req, Router, Sub, XPub, XSub};
    for (server_type, client_type) in [
        (Pull, Push),
        (Pair, Pair),
        (Router, Dealer),
        (Dealer, Dealer),
        (Rep, Req),
        (XPub, XSub),
        (Sub, XPub),
    ] {
        test(&format!("{server_type:?} {client_type:?}"), move |context| {
            let (mut server, mut events) = limited(context, server_type);
            let mut client = context.socket(client_type).unwrap();
            set(&mut client, LINGER, 0);
            set(&mut client, RECONNECT_IVL, -1);
            client.connect(&bind(&mut server, "tcp://127.0.0.1:*")).unwrap();
            if server_type == Sub {
                server.set_option(SUBSCRIBE, b"").unwrap();
                // The owner of the SUB sends the subscription in its calls.
                while receive(&mut client, Flags::DONTWAIT).is_err() {
                    assert_eq!(receive(&mut server, Flags::DONTWAIT), Err(Error::Again));
                }
            }
            check(&mut server, &mut events, &mut client, u32::from(server_type == Rep));
        });
    }
}

#[test]
fn every_transport_keeps_the_limit() {
    for endpoint in ["tcp://127.0.0.1:*", "ipc://*", "ws://127.0.0.1:*", "curve"] {
        test(endpoint, move |context| {
            let (mut server, mut events) = limited(context, SocketType::Pair);
            let mut client = context.socket(SocketType::Pair).unwrap();
            set(&mut client, LINGER, 0);
            set(&mut client, RECONNECT_IVL, -1);
            let mut endpoint = endpoint;
            if endpoint == "curve" {
                endpoint = "tcp://127.0.0.1:*";
                set(&mut server, CURVE_SERVER, 1);
                server.set_option(CURVE_SECRETKEY, &[3; 32]).unwrap();
                client.set_option(CURVE_SERVERKEY, &public_key(&[3; 32])).unwrap();
                client.set_option(CURVE_PUBLICKEY, &public_key(&[5; 32])).unwrap();
                client.set_option(CURVE_SECRETKEY, &[5; 32]).unwrap();
            }
            client.connect(&bind(&mut server, endpoint)).unwrap();
            check(&mut server, &mut events, &mut client, ENOUGH);
        });
    }
}

/// The endpoint is unbound between two parts of a message, while bytes of the peer are unread. The peer receives no part of the
/// message.
#[test]
fn unbinding_within_a_message_drops_the_whole_message() {
    use SocketType::{Dealer, Pair, Rep, Router, XSub};
    for (socket_type, client) in
        [(Dealer, "DEALER"), (Pair, "PAIR"), (Router, "DEALER"), (Rep, "DEALER"), (XSub, "XPUB")]
    {
        for before in 1..4 {
            test(&format!("{socket_type:?}, unbound after {before} parts"), move |context| {
                let mut server = context.socket(socket_type).unwrap();
                let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
                let mut client_stream = TcpStream::connect(&endpoint["tcp://".len()..]).unwrap();
                let requests = b"\x01\0\0\x07request\x01\0\0\x06unread";
                client_stream.write_all(&[&handshake(client)[..], requests].concat()).unwrap();
                let mut part = Message::new();
                server.recv_message(&mut part, Flags::NONE).unwrap();
                let first = part.as_slice().to_vec();
                while part.more() {
                    server.recv_message(&mut part, Flags::NONE).unwrap();
                }
                let named = if socket_type == Router { &first[..] } else { b"part" };
                let parts: [&[u8]; 5] = [named, b"part", b"part", b"part", b"part"];
                for (index, part) in parts.iter().enumerate() {
                    if index == before {
                        server.unbind(&endpoint).unwrap();
                    }
                    let more = if index + 1 < parts.len() { Flags::MORE } else { Flags::NONE };
                    server.send(part, more).unwrap();
                }
                let mut bytes = Vec::new();
                client_stream.read_to_end(&mut bytes).unwrap();
                assert!(!bytes.windows(4).any(|window| window == b"part"), "{bytes:?}");
            });
        }
    }
}

/// Sends an endless message in parts of 100 bytes, until the other side has closed the stream.
fn flood(mut stream: impl Read + Write) {
    stream.write_all(&handshake("PUSH")).unwrap();
    let mut head = [0; 66];
    stream.read_exact(&mut head).unwrap();
    stream.read_exact(&mut vec![0; head[65].into()]).unwrap();
    let parts = [&[1, 100][..], &[7; 100]].concat().repeat(100);
    let mut sent = 0;
    while let Ok(n) = stream.write(&parts[sent % parts.len()..]) {
        sent += n;
        assert!(sent < LIMIT as usize + SYSTEM, "{sent} bytes of one message are taken");
    }
}

#[test]
fn a_message_without_an_end_ends_the_connection() {
    test("without an end", |context| {
        let (mut pull, mut events) = limited(context, SocketType::Pull);
        let tcp = bind(&mut pull, "tcp://127.0.0.1:*");
        let ipc = bind(&mut pull, "ipc://*");
        // The I/O thread must end these connections, because the owner of the socket makes no call in this time.
        flood(TcpStream::connect(&tcp["tcp://".len()..]).unwrap());
        await_loss(&mut events);
        flood(UnixStream::connect(&ipc["ipc://".len()..]).unwrap());
        await_loss(&mut events);
        assert_eq!(receive(&mut pull, Flags::DONTWAIT), Err(Error::Again));
    });
}

/// A limit of parts (ZMQ_MAXMSGSIZE) also limits whole messages, to at least 64 MiB.
#[test]
fn a_limit_of_parts_is_one_of_messages() {
    test("parts", |context| {
        let mut pull = context.socket(SocketType::Pull).unwrap();
        set_long(&mut pull, MAXMSGSIZE, 1000);
        let mut events = monitor(context, &mut pull);
        let endpoint = bind(&mut pull, "tcp://127.0.0.1:*");
        let mut push = context.socket(SocketType::Push).unwrap();
        set(&mut push, LINGER, 0);
        set(&mut push, RECONNECT_IVL, -1);
        push.connect(&endpoint).unwrap();
        send(&mut push, 60_000, 1000);
        assert_eq!(receive(&mut pull, Flags::NONE), Ok((60_000, 1000)));
        send(&mut push, 70_000, 1000);
        await_loss(&mut events);
        assert_eq!(receive(&mut pull, Flags::DONTWAIT), Err(Error::Again));
    });
}

#[test]
fn the_limit_is_read_back() {
    test("read back", |context| {
        let mut socket = context.socket(SocketType::Router).unwrap();
        let read = |socket: &mut Socket| {
            let mut value = [0; 8];
            socket.option(MAX_MULTIPART_SIZE, &mut value).unwrap();
            i64::from_ne_bytes(value)
        };
        assert_eq!(read(&mut socket), -1);
        set_long(&mut socket, MAX_MULTIPART_SIZE, LIMIT);
        assert_eq!(read(&mut socket), LIMIT);
        set_long(&mut socket, MAX_MULTIPART_SIZE, -5);
        assert_eq!(read(&mut socket), -1);
        assert_eq!(socket.set_option(MAX_MULTIPART_SIZE, &[0; 4]), Err(Error::Invalid));
    });
}

/// The peer ends each session that brings the message. It is dropped then, as libzmq does at the first loss.
#[test]
fn refused_message_does_not_stop_those_behind_it() {
    for endpoint in ["ipc://*", "tcp://127.0.0.1:*"] {
        test("refused", move |context| {
            let mut pull = context.socket(SocketType::Pull).unwrap();
            set_long(&mut pull, MAXMSGSIZE, LIMIT);
            let endpoint = bind(&mut pull, endpoint);
            let mut push = context.socket(SocketType::Push).unwrap();
            set(&mut push, RECONNECT_IVL, 1);
            push.connect(&endpoint).unwrap();
            for parts in [1, 3] {
                send(&mut push, parts, SYSTEM);
                push.send(b"next", Flags::NONE).unwrap();
                assert_eq!(recv(&mut pull), b"next");
            }
        });
    }
}
