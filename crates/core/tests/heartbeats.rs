//! Heartbeats: the time after which a socket disconnects a silent peer. The test plays the peer.
//!
//! The peer counts our PINGs, which are at least an interval apart, however busy the machine is.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{bind, handshake, set, test};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tautline_core::{Context, Socket, SocketType};

const HEARTBEAT_IVL: i32 = 75;
const HEARTBEAT_TIMEOUT: i32 = 77;
const PONG: &[u8] = b"\x04\x05\x04PONG";

/// Returns a PULL with these heartbeats in milliseconds, and a peer after its handshake.
fn pair(context: &Context, interval: i32, timeout: i32) -> (Socket, TcpStream) {
    let mut pull = context.socket(SocketType::Pull).unwrap();
    set(&mut pull, HEARTBEAT_IVL, interval);
    set(&mut pull, HEARTBEAT_TIMEOUT, timeout);
    let endpoint = bind(&mut pull, "tcp://127.0.0.1:*");
    let mut peer = TcpStream::connect(&endpoint["tcp://".len()..]).unwrap();
    peer.write_all(&handshake("PUSH")).unwrap();
    let mut head = [0; 66];
    peer.read_exact(&mut head).unwrap();
    peer.read_exact(&mut vec![0; head[65].into()]).unwrap();
    (pull, peer)
}

/// Reads the next PING. Returns false at the end of the stream.
fn pinged(peer: &mut TcpStream) -> bool {
    let mut head = [0; 2];
    if peer.read_exact(&mut head).is_err() {
        return false;
    }
    let mut body = vec![0; head[1].into()];
    peer.read_exact(&mut body).unwrap();
    if body.starts_with(b"\x04PONG") {
        return pinged(peer);
    }
    assert!(head[0] == 4 && body.starts_with(b"\x04PING"), "{head:?} {body:?}");
    true
}

fn pings_until_the_end(peer: &mut TcpStream) -> usize {
    std::iter::from_fn(|| pinged(peer).then_some(())).count()
}

#[test]
fn the_timeout_counts_from_the_first_unanswered_ping() {
    for answered in [0, 1, 7] {
        test("timeout", move |context| {
            let (_pull, mut peer) = pair(context, 10, 100);
            let mut last = Instant::now();
            for _ in 0..answered {
                assert!(pinged(&mut peer));
                last = Instant::now();
                peer.write_all(PONG).unwrap();
            }
            let unanswered = pings_until_the_end(&mut peer);
            assert!(last.elapsed() >= Duration::from_millis(99), "{:?}", last.elapsed());
            assert!((1..=13).contains(&unanswered), "{unanswered} PINGs after {answered} answers");
        });
    }
}

#[test]
fn a_timeout_of_0_is_never() {
    test("never", |context| {
        let (_pull, mut peer) = pair(context, 1, 0);
        for _ in 0..50 {
            assert!(pinged(&mut peer));
        }
    });
}

#[test]
fn a_time_to_live_counts_from_the_last_arrival() {
    test("ttl", |context| {
        // On a machine that stands still for 800 ms, the connection ends too early.
        let (_pull, mut peer) = loop {
            let (pull, mut peer) = pair(context, 10, 0);
            // A PING with a time to live of 800 ms.
            peer.write_all(b"\x04\x07\x04PING\0\x08").unwrap();
            if (0..10).all(|_| pinged(&mut peer)) {
                break (pull, peer);
            }
        };
        let last = Instant::now();
        peer.write_all(PONG).unwrap();
        let silent = pings_until_the_end(&mut peer);
        assert!(last.elapsed() >= Duration::from_millis(799), "{:?}", last.elapsed());
        assert!(silent <= 100, "{silent} PINGs in a silence of 800 ms");
    });
}
