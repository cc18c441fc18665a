//! Memory that is kept for an owner that is away.

use super::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use tautline_testkit::with_watchdog;

const DISCONNECT_MSG: i32 = 111;
const ROUTER_NOTIFY: i32 = 97;
const STREAM_NOTIFY: i32 = 73;
const RECONNECT_IVL: i32 = 18;
const STATISTICS: i32 = 0x5441_0001;
const DISCONNECTED: u64 = 0x200;
const TIMES: usize = 50;
/// Limit against hangs.
const LIMIT: Duration = Duration::from_secs(60);

fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    [&[flags, body.len() as u8], body].concat()
}

/// The greeting and the READY command of a peer of this type.
fn introduction(socket_type: &str) -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    bytes.extend_from_slice(b"NULL");
    bytes.resize(64, 0);
    let length = (socket_type.len() as u32).to_be_bytes();
    bytes.extend(frame(4, &[b"\x05READY\x0bSocket-Type", &length[..], socket_type.as_bytes()].concat()));
    bytes
}

/// A bound socket that is not called, and the port of its endpoint.
struct Idle {
    socket: Socket,
    address: String,
    events: Socket,
}

impl Idle {
    fn new(context: &Context, socket_type: SocketType) -> Idle {
        let mut socket = context.socket(socket_type).unwrap();
        socket.monitor(Some("inproc://events"), DISCONNECTED, 1, SocketType::Pair).unwrap();
        let mut events = context.socket(SocketType::Pair).unwrap();
        events.connect("inproc://events").unwrap();
        socket.bind("tcp://127.0.0.1:*").unwrap();
        let address = socket.last_endpoint["tcp://".len()..].to_owned();
        Idle { socket, address, events }
    }

    /// Connects a peer that sends these bytes and leaves. Returns when the I/O thread has seen it
    /// leave.
    fn pass(&mut self, says: &[u8]) {
        let mut peer = TcpStream::connect(&*self.address).unwrap();
        peer.write_all(says).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        let _ = peer.read_to_end(&mut Vec::new());
        for more in [true, false] {
            let mut part = Message::new();
            self.events.recv_message(&mut part, Flags::NONE).unwrap();
            assert_eq!(part.more(), more);
        }
        // The event comes first. The I/O thread has finished with the peer when it runs the next
        // task.
        let (sender, done) = mpsc::channel();
        let driver = self.socket.site.as_ref().unwrap().driver.clone();
        driver.post(Box::new(move |_| sender.send(()).unwrap()));
        done.recv().unwrap();
    }

    fn received(&mut self) -> Vec<Vec<u8>> {
        let mut parts = Vec::new();
        let mut part = Message::new();
        while self.socket.recv_message(&mut part, Flags::DONTWAIT).is_ok() {
            parts.push(part.as_slice().to_vec());
        }
        parts
    }
}

#[test]
fn short_lived_peers_leave_no_state() {
    with_watchdog(LIMIT, "peers that come and go unseen leave nothing", || {
        let subscription = frame(4, b"\x09SUBSCRIBEtopic");
        let cases = [
            (SocketType::Router, "DEALER", vec![]),
            (SocketType::Pull, "PUSH", vec![]),
            (SocketType::Pair, "PAIR", vec![]),
            (SocketType::Server, "CLIENT", vec![]),
            // Half a message, and bytes that only a connected publisher needs.
            (SocketType::Dealer, "ROUTER", frame(1, b"half")),
            (SocketType::XPub, "SUB", subscription.clone()),
            // These are not received.
            (SocketType::Pub, "SUB", [subscription, frame(0, b"message")].concat()),
            (SocketType::Push, "PULL", frame(0, b"message")),
        ];
        for (socket_type, peer, says) in cases {
            let context = Context::new();
            let mut idle = Idle::new(&context, socket_type);
            let says = [introduction(peer), says].concat();
            for _ in 0..TIMES {
                idle.pass(&says);
                assert!(idle.socket.inbox.len() <= 2, "{socket_type:?}: {}", idle.socket.inbox.len());
            }
            if !matches!(socket_type, SocketType::Pub | SocketType::Push) {
                assert_eq!(idle.received(), [[]; 0], "{socket_type:?}");
            }
            assert_eq!(idle.socket.statistics()[9], 0, "peers");
        }
    });
}

#[test]
fn short_lived_peers_leave_their_messages() {
    with_watchdog(LIMIT, "peers that come and go unseen leave their messages", || {
        let context = Context::new();
        let mut idle = Idle::new(&context, SocketType::Pull);
        for n in 0..TIMES as u8 {
            idle.pass(&introduction("PUSH"));
            idle.pass(&[introduction("PUSH"), frame(0, &[n, 1]), frame(0, &[n, 2])].concat());
            idle.pass(&introduction("PUSH"));
        }
        assert!(idle.socket.inbox.len() <= 4 * TIMES + 2, "{}", idle.socket.inbox.len());
        let mut received = idle.received();
        received.sort();
        assert!(received.into_iter().eq((0..TIMES as u8).flat_map(|n| [vec![n, 1], vec![n, 2]])));
        assert_eq!(idle.socket.inbox.len(), 0);
    });
}

#[test]
fn notifications_cover_short_lived_peers() {
    with_watchdog(LIMIT, "a program that wants to hear of each peer hears of those it has not seen", || {
        let settings: [(SocketType, i32, &[u8], usize); 4] = [
            (SocketType::Router, ROUTER_NOTIFY, &3_i32.to_ne_bytes(), 4),
            (SocketType::Router, DISCONNECT_MSG, b"gone", 2),
            (SocketType::Server, DISCONNECT_MSG, b"gone", 1),
            (SocketType::Stream, STREAM_NOTIFY, &1_i32.to_ne_bytes(), 4),
        ];
        for (socket_type, option, value, parts) in settings {
            let context = Context::new();
            let mut idle = Idle::new(&context, socket_type);
            idle.socket.set_option(option, value).unwrap();
            let says = match socket_type {
                SocketType::Router => introduction("DEALER"),
                SocketType::Server => introduction("CLIENT"),
                _ => Vec::new(),
            };
            (0..TIMES).for_each(|_| idle.pass(&says));
            assert_eq!(idle.received().len(), parts * TIMES, "{socket_type:?} {option}");
        }
    });
}

/// A server that completes the handshake and leaves, again and again.
#[test]
fn reconnects_keep_only_the_last_ready_news() {
    with_watchdog(LIMIT, "of a peer that is connected again and again the last meeting is kept", || {
        let context = Context::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = context.socket(SocketType::Dealer).unwrap();
        socket.set_option(LINGER, &[0; 4]).unwrap();
        socket.set_option(RECONNECT_IVL, &1_i32.to_ne_bytes()).unwrap();
        socket.connect(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
        let mut peer = None;
        for n in 0..TIMES {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&introduction("ROUTER")).unwrap();
            if n + 1 == TIMES {
                stream.write_all(&frame(0, b"here")).unwrap();
                peer = Some(stream);
            } else {
                let mut head = [0; 66];
                stream.read_exact(&mut head).unwrap();
                stream.read_exact(&mut vec![0; head[65].into()]).unwrap();
            }
            // At most two news: one for the connect, one for possible messages.
            assert!(socket.inbox.len() <= 2, "{}", socket.inbox.len());
        }
        while !socket.inbox.has_pending() {
            std::thread::yield_now();
        }
        let mut message = Message::new();
        socket.recv_message(&mut message, Flags::NONE).unwrap();
        assert_eq!(message.as_slice(), b"here");
        let mut numbers = [0; 13 * 8];
        socket.option(STATISTICS, &mut numbers).unwrap();
        assert_eq!(
            u64::from_ne_bytes(numbers[80..88].try_into().unwrap()),
            TIMES as u64 - 1,
            "reconnections"
        );
        drop(peer);
    });
}
