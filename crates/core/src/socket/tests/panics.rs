//! Effect of a panic on the I/O thread on the sockets that live there.

use super::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use tautline_io::errno;
use tautline_testkit::with_watchdog;

const ROUTING_ID: i32 = 5;
const DISCONNECTED: u16 = 0x200;
const HANDSHAKE_FAILED_NO_DETAIL: u16 = 0x800;

/// The head of the next event.
fn next_event(events: &mut Socket) -> (u16, u32) {
    let (mut head, mut address) = (Message::new(), Message::new());
    events.recv_message(&mut head, Flags::NONE).unwrap();
    events.recv_message(&mut address, Flags::NONE).unwrap();
    let (event, value) = head.as_slice().split_at(2);
    (u16::from_ne_bytes(event.try_into().unwrap()), u32::from_ne_bytes(value.try_into().unwrap()))
}

fn bound(context: &Context, routing_id: &[u8]) -> (Socket, String) {
    let mut pull = context.socket(SocketType::Pull).unwrap();
    pull.set_option(ROUTING_ID, routing_id).unwrap();
    pull.bind("tcp://127.0.0.1:*").unwrap();
    let endpoint = pull.last_endpoint.to_string();
    (pull, endpoint)
}

/// Connects, sends these bytes, closes its sending side, and waits for the other end.
fn attack(endpoint: &str, says: &[u8]) {
    let mut peer = TcpStream::connect(&endpoint["tcp://".len()..]).unwrap();
    peer.write_all(says).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let _ = peer.read_to_end(&mut Vec::new());
}

#[test]
fn panic_closes_only_one_stream() {
    let limit = Duration::from_secs(60);
    with_watchdog(limit, "a panic ends one stream and nothing else", || {
        let mut introduction = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, b'N', b'U', b'L', b'L'];
        introduction.resize(64, 0);
        introduction.extend(b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH");
        introduction.extend(b"\0\x04lost");
        for (name, fails) in [(&b"panics in a handshake"[..], true), (b"panics as it reads", false)] {
            let context = Context::new();
            let (mut clumsy, endpoint) = bound(&context, name);
            let (mut other, elsewhere) = bound(&context, b"other");
            let events = u64::from(DISCONNECTED | HANDSHAKE_FAILED_NO_DETAIL);
            clumsy.monitor(Some("inproc://events"), events, 1, SocketType::Pair).unwrap();
            let mut events = context.socket(SocketType::Pair).unwrap();
            events.connect("inproc://events").unwrap();
            for _ in 0..3 {
                attack(&endpoint, &introduction);
                if fails {
                    let fault = (HANDSHAKE_FAILED_NO_DETAIL, errno::EFAULT as u32);
                    assert_eq!(next_event(&mut events), fault);
                }
                assert_eq!(next_event(&mut events).0, DISCONNECTED);
            }
            let mut push = context.socket(SocketType::Push).unwrap();
            push.connect(&elsewhere).unwrap();
            push.send(b"still here", Flags::NONE).unwrap();
            assert_eq!(other.recv(&mut [0; 16], Flags::NONE), Ok(10));
        }
    });
}
