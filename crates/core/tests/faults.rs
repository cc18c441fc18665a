//! Bad input and faults: peers that break the protocol or vanish, a process out of descriptors, a context that ends under blocked calls.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{recv, set, test};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use tautline_core::poller::{self, Item, POLLIN, PollTarget};
use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};

const LINGER: i32 = 17;
const RECONNECT_IVL: i32 = 18;
const BACKLOG: i32 = 19;
const SNDHWM: i32 = 23;
const RCVHWM: i32 = 24;
const SNDBUF: i32 = 11;
const LAST_ENDPOINT: i32 = 32;
const ROUTER_MANDATORY: i32 = 33;
const REQ_CORRELATE: i32 = 52;
const HANDSHAKE_IVL: i32 = 66;
const CONNECTED: u16 = 0x1;
const ACCEPT_FAILED: u16 = 0x40;
const DISCONNECTED: u16 = 0x200;
const HANDSHAKE_FAILED_PROTOCOL: u16 = 0x2000;

/// Returns a socket that is bound to a free port, and its address.
fn bound(context: &Context, socket_type: SocketType) -> (Socket, String) {
    let mut socket = context.socket(socket_type).unwrap();
    let address = bind(&mut socket);
    (socket, address)
}

fn bind(socket: &mut Socket) -> String {
    common::bind(socket, "tcp://127.0.0.1:*")["tcp://".len()..].to_owned()
}

/// Returns a PAIR on which `socket` reports these events.
fn monitor(context: &Context, socket: &mut Socket, events: u16) -> Socket {
    socket.monitor(Some("inproc://events"), events.into(), 1, SocketType::Pair).unwrap();
    let mut monitor = context.socket(SocketType::Pair).unwrap();
    monitor.connect("inproc://events").unwrap();
    monitor
}

fn next_event(monitor: &mut Socket) -> (u16, u32) {
    let head = recv(monitor);
    recv(monitor);
    (u16::from_ne_bytes(head[..2].try_into().unwrap()), u32::from_ne_bytes(head[2..].try_into().unwrap()))
}

/// Returns the greeting of a ZMTP 3 peer with this mechanism.
fn greeting(mechanism: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0];
    bytes.extend_from_slice(mechanism);
    bytes.resize(64, 0);
    bytes
}

/// Waits until the I/O thread has finished its earlier work. It handles commands in order, so the effect of a new command shows
/// this.
fn await_io_thread(context: &Context) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = context.socket(SocketType::Dealer).unwrap();
    set(&mut socket, LINGER, 0);
    socket.monitor(Some("inproc://connected"), CONNECTED.into(), 1, SocketType::Pair).unwrap();
    let mut connected = context.socket(SocketType::Pair).unwrap();
    connected.connect("inproc://connected").unwrap();
    socket.connect(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
    next_event(&mut connected);
}

/// Returns a PUSH whose peer with another mechanism was refused. The PUSH has not noticed this yet.
fn refused_push(context: &Context, listener: &TcpListener) -> Socket {
    let mut push = context.socket(SocketType::Push).unwrap();
    set(&mut push, LINGER, 0);
    let mut events = monitor(context, &mut push, DISCONNECTED);
    push.connect(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(&greeting(b"CURVE")).unwrap();
    assert_eq!(next_event(&mut events).0, DISCONNECTED);
    await_io_thread(context);
    push
}

/// Returns the READY command of a peer of this socket type.
fn ready(socket_type: &str) -> Vec<u8> {
    let mut body = b"\x05READY\x0bSocket-Type".to_vec();
    body.extend_from_slice(&(socket_type.len() as u32).to_be_bytes());
    body.extend_from_slice(socket_type.as_bytes());
    [vec![4, body.len() as u8], body].concat()
}

/// Reads the other side's greeting and READY.
fn read_handshake(stream: &mut TcpStream) {
    let mut head = [0; 66];
    stream.read_exact(&mut head).unwrap();
    stream.read_exact(&mut vec![0; head[65].into()]).unwrap();
}

/// Returns the stream of a peer of this socket type after its handshake.
fn raw_peer(address: &str, socket_type: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&[greeting(b"NULL"), ready(socket_type)].concat()).unwrap();
    read_handshake(&mut stream);
    stream
}

/// Reads until the other side has ended the stream.
fn read_to_end(mut stream: TcpStream) {
    let mut buffer = [0; 1024];
    while matches!(stream.read(&mut buffer), Ok(1..)) {}
}

/// Checks that a message of a correct peer arrives.
fn check_alive(context: &Context, pull: &mut Socket, address: &str) {
    let mut push = context.socket(SocketType::Push).unwrap();
    push.connect(&format!("tcp://{address}")).unwrap();
    push.send(b"alive", Flags::NONE).unwrap();
    assert_eq!(recv(pull), b"alive");
}

/// The I/O thread reads only a limited number of subscriptions ahead. It resumes after the owner has processed them.
#[test]
fn a_flood_of_subscriptions_gets_through() {
    let topic = |number: u32| format!("{number:0200}");
    for (socket_type, peer, name) in
        [(SocketType::Pub, "SUB", &b"\x09SUBSCRIBE"[..]), (SocketType::Radio, "DISH", b"\x04JOIN")]
    {
        test("subscriptions", move |context| {
            let (mut socket, address) = bound(context, socket_type);
            let mut stream = raw_peer(&address, peer);
            let flood = std::thread::spawn(move || {
                for number in 0..40_000_u32 {
                    let body = [name, topic(number).as_bytes()].concat();
                    stream.write_all(&[&[4, body.len() as u8][..], &body].concat()).unwrap();
                }
                stream
            });
            while !flood.is_finished() {
                let _ = socket.send(b"x", Flags::DONTWAIT);
            }
            let mut stream = flood.join().unwrap();
            // The last subscription counts as well.
            let last = topic(39_999).into_bytes();
            stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            let mut message = Message::from_slice(&last);
            if socket_type == SocketType::Radio {
                assert!(message.set_group(&last));
            }
            let mut heard = [0; 16];
            loop {
                let mut copy = message.share();
                socket.send_message(&mut copy, Flags::DONTWAIT).unwrap();
                if stream.read(&mut heard).is_ok_and(|read| read > 0) {
                    break;
                }
            }
        });
    }
}

/// A send-only socket reads and discards unwanted messages, and finds the end of the stream after them.
#[test]
fn sending_socket_notices_lost_talkative_peer() {
    for (socket_type, peer) in
        [(SocketType::Pub, "SUB"), (SocketType::Radio, "DISH"), (SocketType::Push, "PULL")]
    {
        // The queue is full at the high-water mark, or at a multiple of it; the other numbers lie in between.
        for unwanted in [1000, 1999, 2000, 2500] {
            test("talkative", move |context| {
                let (mut socket, address) = bound(context, socket_type);
                let mut monitor = monitor(context, &mut socket, DISCONNECTED);
                let mut stream = raw_peer(&address, peer);
                stream.write_all(b"\x04\x0a\x09SUBSCRIBE").unwrap();
                stream.write_all(&b"\x00\x02hi".repeat(unwanted)).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                let mut head = Message::new();
                while monitor.recv_message(&mut head, Flags::DONTWAIT).is_err() {
                    let _ = socket.send(b"x", Flags::DONTWAIT);
                    std::thread::yield_now();
                }
                assert_eq!(head.as_slice()[..2], DISCONNECTED.to_ne_bytes());
                // The socket also processes the subscription of a second peer.
                if peer == "SUB" {
                    let mut stream = raw_peer(&address, peer);
                    stream.write_all(b"\x04\x0a\x09SUBSCRIBE").unwrap();
                    stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
                    while !stream.read(&mut [0; 16]).is_ok_and(|read| read > 0) {
                        socket.send(b"x", Flags::NONE).unwrap();
                    }
                }
            });
        }
    }
}

/// An idle REQ does not read, and its program need not poll it. It still notices the end of its peer behind unread bytes.
#[test]
fn idle_req_notices_lost_talkative_peer() {
    for unwanted in [0, 9, 10, 11, 1000] {
        test("unsolicited", move |context| {
            let mut req = context.socket(SocketType::Req).unwrap();
            set(&mut req, RCVHWM, 10);
            let address = bind(&mut req);
            let mut monitor = monitor(context, &mut req, DISCONNECTED);
            for end in [&b""[..], b"\0\x05half"] {
                let mut stream = raw_peer(&address, "REP");
                stream.write_all(&b"\x01\0\0\x05never".repeat(unwanted)).unwrap();
                stream.write_all(end).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                assert_eq!(next_event(&mut monitor).0, DISCONNECTED);
                read_to_end(stream);
            }
            // The REQ does not take the unread bytes for a reply.
            let mut stream = raw_peer(&address, "REP");
            req.send(b"now", Flags::NONE).unwrap();
            stream.read_exact(&mut [0; 7]).unwrap();
            stream.write_all(b"\x01\0\0\x05reply").unwrap();
            assert_eq!(recv(&mut req), b"reply");
        });
    }
}

/// A REQ receives the awaited reply after its peer has disconnected, even behind more other replies than the high-water mark.
#[test]
fn waiting_req_gets_reply_of_closed_peer() {
    test("gone", |context| {
        let mut req = context.socket(SocketType::Req).unwrap();
        set(&mut req, RCVHWM, 10);
        set(&mut req, REQ_CORRELATE, 1);
        let address = bind(&mut req);
        let mut monitor = monitor(context, &mut req, DISCONNECTED);
        let mut stream = raw_peer(&address, "REP");
        req.send(b"now", Flags::NONE).unwrap();
        let mut request = [0; 13];
        stream.read_exact(&mut request).unwrap();
        let id = &request[2..6];
        for _ in 0..1000 {
            stream.write_all(b"\x01\0\0\x05never").unwrap();
        }
        stream.write_all(&[b"\x01\x04", id, b"\x01\0\0\x05reply"].concat()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(next_event(&mut monitor).0, DISCONNECTED);
        assert_eq!(recv(&mut req), b"reply");
    });
}

#[test]
fn peer_that_sends_req_an_invalid_reply_is_closed() {
    test("no reply", |context| {
        let (mut req, address) = bound(context, SocketType::Req);
        let mut monitor = monitor(context, &mut req, DISCONNECTED);
        for wrong in [&b"\0\0"[..], b"\0\x01x", b"\x01\x03abc", b"\x01\x04abcd\0\0", b"\x01\0\0\x01x\0\0"] {
            let mut stream = raw_peer(&address, "REP");
            stream.write_all(wrong).unwrap();
            read_to_end(stream);
            assert_eq!(next_event(&mut monitor).0, DISCONNECTED);
        }
    });
}

#[test]
fn garbage_ends_the_stream_and_nothing_else() {
    test("garbage", |context| {
        let (mut pull, address) = bound(context, SocketType::Pull);
        let mut wrong_command = greeting(b"NULL");
        wrong_command.extend_from_slice(&[4, 3, 200, b'x', b'y']);
        for garbage in [
            greeting(b"BOGUS"),
            wrong_command,
            [greeting(b"NULL"), vec![0, 5, 1, 2, 3, 4, 5]].concat(),
            [greeting(b"NULL"), ready("NONSENSE")].concat(),
            // This peer sends reserved flags after the handshake.
            [greeting(b"NULL"), ready("PUSH"), vec![0xf8; 100]].concat(),
        ] {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(&garbage).unwrap();
            read_to_end(stream);
            check_alive(context, &mut pull, &address);
        }
    });
}

#[test]
fn a_frame_longer_than_anything_ends_the_stream() {
    test("length", |context| {
        let (mut pull, address) = bound(context, SocketType::Pull);
        let mut stream = raw_peer(&address, "PUSH");
        stream.write_all(&[2, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]).unwrap();
        read_to_end(stream);
        check_alive(context, &mut pull, &address);
    });
}

#[test]
fn a_huge_frame_takes_no_memory_before_it_comes() {
    test("huge", |context| {
        let (mut pull, address) = bound(context, SocketType::Pull);
        let mut stream = raw_peer(&address, "PUSH");
        stream.write_all(&[2, 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]).unwrap();
        check_alive(context, &mut pull, &address);
        drop(stream);
    });
}

#[test]
fn half_a_greeting_is_no_peer() {
    test("half", |context| {
        let (mut pull, address) = bound(context, SocketType::Pull);
        for n in [0, 1, 9, 10, 11, 12, 63, 64, 70] {
            let mut stream = TcpStream::connect(&address).unwrap();
            let bytes = [greeting(b"NULL"), ready("PUSH")].concat();
            stream.write_all(&bytes[..n]).unwrap();
        }
        check_alive(context, &mut pull, &address);
    });
}

/// During a flood of connections, new peers wait a little, but all of them are accepted.
#[test]
fn strangers_without_end_do_not_keep_others_out() {
    test("flood", |context| {
        let mut pull = context.socket(SocketType::Pull).unwrap();
        // All connections fit into the backlog, so no peer has to retry.
        set(&mut pull, BACKLOG, 4096);
        let address = bind(&mut pull);
        for _ in 0..3 {
            for _ in 0..1500 {
                drop(TcpStream::connect(&address).unwrap());
            }
            check_alive(context, &mut pull, &address);
        }
    });
}

#[test]
fn a_peer_of_the_wrong_type_is_refused_and_reported() {
    test("type", |context| {
        let (mut pull, address) = bound(context, SocketType::Pull);
        let mut monitor = monitor(context, &mut pull, HANDSHAKE_FAILED_PROTOCOL);
        let mut wrong = context.socket(SocketType::Sub).unwrap();
        wrong.connect(&format!("tcp://{address}")).unwrap();
        assert_eq!(next_event(&mut monitor), (HANDSHAKE_FAILED_PROTOCOL, 0x1000_0018));
        check_alive(context, &mut pull, &address);
    });
}

/// Each PING requires an answer, which is queued because the peer does not read. Until its handshake ends or times out, we do not
/// read further bytes from such a peer, so its bytes fill only the kernel's buffers.
#[test]
fn blocked_handshake_output_stops_reading() {
    test("a peer that does not take our answers is not read during its handshake", |context| {
        let mut pull = context.socket(SocketType::Pull).unwrap();
        set(&mut pull, SNDBUF, 4096);
        set(&mut pull, HANDSHAKE_IVL, 1000);
        pull.bind("ws://127.0.0.1:*").unwrap();
        let mut buffer = [0; 256];
        let n = pull.option(LAST_ENDPOINT, &mut buffer).unwrap();
        let endpoint = String::from_utf8(buffer[..n - 1].to_vec()).unwrap();
        let mut peer = TcpStream::connect(endpoint["ws://".len()..].trim_end_matches('/')).unwrap();
        let request = "GET / HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Protocol: ZWS2.0/NULL\r\n\r\n";
        peer.write_all(request.as_bytes()).unwrap();
        // A PING of WebSocket, masked with zeroes.
        let ping = [&[0x89, 0x80 | 125][..], &[0; 4 + 125]].concat();
        let pings = ping.repeat(500);
        let mut sent = 0;
        while let Ok(n) = peer.write(&pings[sent % ping.len()..]) {
            sent += n;
        }
        assert!(sent < 32 << 20, "{sent} bytes");
    });
}

#[test]
fn half_a_message_is_not_delivered() {
    test("half_message", |context| {
        let (mut pull, address) = bound(context, SocketType::Pull);
        for end in [&[1, 3, b'o', b'n', b'e'][..], &[0, 200, 1, 2], &[2, 0, 0], &[0]] {
            let mut stream = raw_peer(&address, "PUSH");
            stream.write_all(&[0, 5, b'w', b'h', b'o', b'l', b'e']).unwrap();
            stream.write_all(end).unwrap();
            drop(stream);
            assert_eq!(recv(&mut pull), b"whole");
            check_alive(context, &mut pull, &address);
        }
    });
}

/// A command in the same read after a message is neither a message nor the start of one.
#[test]
fn a_ping_behind_a_message_is_no_message() {
    test("ping_behind", |context| {
        let (mut router, address) = bound(context, SocketType::Router);
        let mut stream = raw_peer(&address, "DEALER");
        let mut first = Vec::new();
        for body in [b"one", b"two"] {
            let message = [&[0, 3], &body[..], b"\x04\x07\x04PING\0\0", b"\x01\x04half"].concat();
            stream.write_all(&message).unwrap();
            let routing_id = recv(&mut router);
            assert_eq!(recv(&mut router), body);
            // The answer shows that the PING was read.
            let mut pong = [0; 7];
            stream.read_exact(&mut pong).unwrap();
            assert_eq!(pong, *b"\x04\x05\x04PONG");
            assert_eq!(router.recv(&mut [], Flags::DONTWAIT), Err(Error::Again));
            stream.write_all(b"\x00\x00").unwrap();
            for expected in [&routing_id[..], b"half", b""] {
                assert_eq!(recv(&mut router), expected);
            }
            first.push(routing_id);
        }
        assert_eq!(first[0], first[1]);
    });
}

#[test]
fn reconnecting_keeps_messages_whole_and_in_order() {
    test("reconnect", |context| {
        let body = |n: u32| n.to_be_bytes().repeat(5000 + n as usize % 1000);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut push = context.socket(SocketType::Push).unwrap();
        set(&mut push, RECONNECT_IVL, 1);
        set(&mut push, LINGER, 0);
        push.connect(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
        // Sends until the context ends. The end also wakes a send that waits at a full queue.
        let sender = std::thread::spawn(move || (0..).find(|&n| push.send(&body(n), Flags::NONE).is_err()));
        let mut last = None;
        // Each visit ends in the middle of a message.
        for visit in 1..=10 {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&[greeting(b"NULL"), ready("PULL")].concat()).unwrap();
            read_handshake(&mut stream);
            let mut stream = BufReader::new(stream);
            for _ in 0..visit * 10 {
                let mut header = [0; 9];
                stream.read_exact(&mut header).unwrap();
                assert_eq!(header[0], 2);
                let mut whole = vec![0; u64::from_be_bytes(header[1..].try_into().unwrap()) as usize];
                stream.read_exact(&mut whole).unwrap();
                let n = u32::from_be_bytes(whole[..4].try_into().unwrap());
                assert!(whole == body(n), "message {n} is not whole");
                // Bytes in the kernel at the end of the stream are lost, as always with TCP.
                assert!(last.is_none_or(|last| last < n), "{n} after {last:?}");
                last = Some(n);
            }
            stream.read_exact(&mut [0; 5000]).unwrap();
        }
        context.shutdown().unwrap();
        sender.join().unwrap();
    });
}

#[test]
fn terminating_wakes_every_blocked_call() {
    test("terminate", |context| {
        let mut threads = Vec::new();
        for _ in 0..2 {
            let mut receiver = bound(context, SocketType::Pull).0;
            threads.push(std::thread::spawn(move || receiver.recv(&mut [0; 8], Flags::NONE).map(|_| ())));
            let mut polled = bound(context, SocketType::Pull).0;
            threads.push(std::thread::spawn(move || {
                let item = Item { watched: PollTarget::Socket(&mut polled), events: POLLIN, revents: 0 };
                poller::poll(&mut [item], None).map(|_| ())
            }));
            // The endpoint has no peer.
            let mut sender = context.socket(SocketType::Push).unwrap();
            threads.push(std::thread::spawn(move || sender.send(b"x", Flags::NONE)));
            // The queue of this sender is full.
            let (_reader, address) = bound(context, SocketType::Pull);
            let mut full = context.socket(SocketType::Push).unwrap();
            set(&mut full, SNDHWM, 5);
            set(&mut full, LINGER, 0);
            full.connect(&format!("tcp://{address}")).unwrap();
            threads.push(std::thread::spawn(move || {
                let _reader = _reader;
                loop {
                    full.send(&[0; 100_000], Flags::NONE)?;
                }
            }));
        }
        context.terminate().unwrap();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Err(Error::Terminated));
        }
    });
}

#[test]
fn a_burst_beyond_the_high_water_mark_is_refused_once() {
    test("burst", |context| {
        let (mut router, address) = bound(context, SocketType::Router);
        set(&mut router, ROUTER_MANDATORY, 1);
        set(&mut router, SNDHWM, 1);
        let mut dealer = context.socket(SocketType::Dealer).unwrap();
        dealer.connect(&format!("tcp://{address}")).unwrap();
        dealer.send(b"hello", Flags::NONE).unwrap();
        let id = recv(&mut router);
        recv(&mut router);
        let dontwait_more = Flags(Flags::DONTWAIT.0 | Flags::MORE.0);
        // The router accepts messages up to its high-water mark. The kernel alone would accept all of them.
        while router.send(&id, dontwait_more) == Ok(()) {
            router.send(b"x", Flags::DONTWAIT).unwrap();
        }
        // A blocking send succeeds.
        router.send(&id, Flags::MORE).unwrap();
        router.send(b"end", Flags::NONE).unwrap();
        while recv(&mut dealer) != b"end" {}
    });
}

/// The child process of the next test, with a small limit of descriptors.
#[test]
fn out_of_descriptors_child() {
    if std::env::var_os("TAUTLINE_FAULT_CHILD").is_none() {
        return;
    }
    let context = Context::new();
    let (mut pull, address) = bound(&context, SocketType::Pull);
    let mut monitor = monitor(&context, &mut pull, ACCEPT_FAILED);
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    println!("\naddress {address}");
    assert_eq!(next_event(&mut monitor), (ACCEPT_FAILED, 24));
    drop(taken);
    assert_eq!(recv(&mut pull), b"at last");
    println!("\nreceived");
}

#[test]
fn a_process_out_of_descriptors_accepts_again_when_it_has_some() {
    test("descriptors", |context| {
        let mut child = Command::new("sh")
            .args(["-c", "ulimit -n 64; exec \"$0\" --exact out_of_descriptors_child --nocapture"])
            .arg(std::env::current_exe().unwrap())
            .env("TAUTLINE_FAULT_CHILD", "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.strip_prefix("address ")?.to_owned())).unwrap();
        let mut push = context.socket(SocketType::Push).unwrap();
        push.connect(&format!("tcp://{address}")).unwrap();
        push.send(b"at last", Flags::NONE).unwrap();
        assert!(lines.any(|line| line == "received"));
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn the_first_message_after_a_refusal_is_taken() {
    test("the first message after a refusal is taken", |context| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut push = refused_push(context, &listener);
        push.send(b"first part", Flags::MORE).unwrap();
        push.send(b"last part", Flags::NONE).unwrap();
        // Later messages are lost as well, until the socket notices.
        while push.send(b"another", Flags::DONTWAIT) != Err(Error::Again) {}
    });
}

#[test]
fn reconnecting_to_refusing_peer_loses_no_message() {
    test("a message is not lost to a peer that refused when it is connected anew", |context| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut push = refused_push(context, &listener);
        push.connect(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
        push.send(b"x", Flags::NONE).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        peer.write_all(&[greeting(b"NULL"), ready("PULL")].concat()).unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"\0\x01x") {
            let mut byte = [0];
            peer.read_exact(&mut byte).unwrap();
            heard.push(byte[0]);
        }
    });
}

/// A peer reads only after it has written all its data. A closed socket with as much unsent data must read while it writes.
#[test]
fn two_that_linger_do_not_wait_for_each_other() {
    test("two_that_linger_do_not_wait_for_each_other", |context| {
        let (mut dealer, address) = bound(context, SocketType::Dealer);
        set(&mut dealer, SNDHWM, 0);
        set(&mut dealer, RCVHWM, 1);
        set(&mut dealer, LINGER, -1);
        let dealer_address = bind(&mut dealer);
        let mut peer = raw_peer(&dealer_address, "DEALER");
        // This exceeds the buffers of both kernels for a peer that does not read.
        let part = vec![0; 1 << 20];
        for _ in 0..64 {
            dealer.send(&part, Flags::NONE).unwrap();
        }
        let frame = [&[2][..], &(1_u64 << 20).to_be_bytes(), &part].concat();
        let talking = std::thread::spawn(move || {
            for _ in 0..64 {
                peer.write_all(&frame).unwrap();
            }
            let mut heard = 0;
            let mut buffer = vec![0; 1 << 16];
            while let Ok(n @ 1..) = peer.read(&mut buffer) {
                heard += n;
            }
            heard
        });
        drop((dealer, address));
        assert_eq!(talking.join().unwrap(), 64 * (9 + (1 << 20)));
    });
}
