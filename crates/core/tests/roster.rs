//! Reports of a socket about its peers: the list, the waits, the events of version 3.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{bound, connected, last_endpoint, recv, set, test};
use std::time::{Duration, Instant};

use tautline_core::{Error, Flags, PeerState, Socket, SocketType};

const ROUTING_ID: i32 = 5;
const SUBSCRIBE: i32 = 6;
const LINGER: i32 = 17;
const SNDTIMEO: i32 = 28;
const PEERS: i32 = 0x5441_0005;
const WAIT_PEERS: i32 = 0x5441_0006;
const WAIT_SUBSCRIPTIONS: i32 = 0x5441_0007;
/// Size of a `zmq_tautline_peer_t` in bytes.
const RECORD: usize = 1168;

/// Returns a deadline that has passed, to check the current state without waiting.
fn now() -> Option<Instant> {
    Some(Instant::now())
}

#[test]
fn peers_are_listed_with_their_counters() {
    test("peers", |context| {
        let (mut router, endpoint) = bound(context, SocketType::Router, "tcp://127.0.0.1:*");
        assert_eq!(router.peers(), Ok(Vec::new()));
        let mut dealers: Vec<Socket> = (0..2_u8)
            .map(|number| {
                let mut dealer = context.socket(SocketType::Dealer).unwrap();
                dealer.set_option(ROUTING_ID, &[b'a' + number]).unwrap();
                dealer.connect(&endpoint).unwrap();
                dealer
            })
            .collect();
        router.wait_for_peers(2, None).unwrap();
        for (count, dealer) in (1..).zip(&mut dealers) {
            for _ in 0..count {
                dealer.send(b"12345", Flags::NONE).unwrap();
            }
        }
        for _ in 0..3 {
            recv(&mut router);
            assert_eq!(recv(&mut router), b"12345");
        }
        router.send(b"b", Flags::MORE).unwrap();
        router.send(b"reply", Flags::NONE).unwrap();
        assert_eq!(recv(&mut dealers[1]), b"reply");
        let mut peers = router.peers().unwrap();
        peers.sort_by(|a, b| a.routing_id.cmp(&b.routing_id));
        let seen: Vec<_> = peers
            .iter()
            .map(|peer| (&peer.routing_id[..], peer.messages_in, peer.bytes_in, peer.messages_out))
            .collect();
        assert_eq!(seen, [(&b"a"[..], 1, 7, 0), (b"b", 2, 14, 1)]);
        assert!(peers.iter().all(|peer| peer.state == PeerState::Connected && peer.since > 0));
        assert!(peers.iter().all(|peer| peer.host == "127.0.0.1" && peer.endpoint == endpoint));
        let server = &dealers[0].peers().unwrap()[0];
        assert!(server.connected_here && server.address == endpoint);
        assert_eq!(server.local, peers[0].address);
    });
}

#[test]
fn unconnected_peer_is_listed() {
    test("away", |context| {
        let (vacant, endpoint) = bound(context, SocketType::Pull, "tcp://127.0.0.1:*");
        drop(vacant);
        let mut push = connected(context, SocketType::Push, &endpoint);
        set(&mut push, LINGER, 0);
        push.send(b"later", Flags::NONE).unwrap();
        assert_eq!(push.wait_for_peers(1, now()), Err(Error::Again));
        let peer = &push.peers().unwrap()[0];
        assert_eq!((peer.state, peer.queued_out, peer.since), (PeerState::Connecting, 1, 0));
        assert!(peer.queued_out_bytes > 0);
        let mut pull = context.socket(SocketType::Pull).unwrap();
        pull.bind(&endpoint).unwrap();
        push.wait_for_peers(1, None).unwrap();
        assert_eq!(push.peers().unwrap()[0].state, PeerState::Connected);
        assert_eq!(recv(&mut pull), b"later");
    });
}

#[test]
fn a_publisher_waits_for_subscriptions() {
    test("subscriptions", |context| {
        for at in ["tcp://127.0.0.1:*", "inproc://subscriptions"] {
            for socket_type in [SocketType::Pub, SocketType::XPub] {
                let (mut publisher, endpoint) = bound(context, socket_type, at);
                assert_eq!(publisher.wait_for_subscriptions(0, now()), Ok(()));
                assert_eq!(publisher.wait_for_subscriptions(1, now()), Err(Error::Again));
                let mut subscriber = context.socket(SocketType::Sub).unwrap();
                subscriber.set_option(SUBSCRIBE, b"a").unwrap();
                subscriber.set_option(SUBSCRIBE, b"b").unwrap();
                subscriber.connect(&endpoint).unwrap();
                publisher.wait_for_subscriptions(2, None).unwrap();
                publisher.send(b"b1", Flags::NONE).unwrap();
                assert_eq!(recv(&mut subscriber), b"b1");
            }
        }
        let mut pull = context.socket(SocketType::Pull).unwrap();
        assert_eq!(pull.wait_for_subscriptions(1, now()), Err(Error::NotSupported));
    });
}

#[test]
fn waits_end_with_the_context() {
    test("end", |context| {
        let mut pull = context.socket(SocketType::Pull).unwrap();
        let waiting = std::thread::spawn(move || pull.wait_for_peers(1, None));
        context.shutdown().unwrap();
        assert_eq!(waiting.join().unwrap(), Err(Error::Terminated));
    });
}

#[test]
fn options_do_the_same() {
    test("options", |context| {
        let (mut router, endpoint) = bound(context, SocketType::Router, "tcp://127.0.0.1:*");
        let one = 1_i32.to_ne_bytes();
        set(&mut router, SNDTIMEO, 1);
        assert_eq!(router.set_option(WAIT_PEERS, &one), Err(Error::Again));
        assert_eq!(router.set_option(WAIT_SUBSCRIPTIONS, &one), Err(Error::NotSupported));
        for wrong in [&[][..], &[1], &(-1_i32).to_ne_bytes()] {
            assert_eq!(router.set_option(WAIT_PEERS, wrong), Err(Error::Invalid));
        }
        let mut dealer = context.socket(SocketType::Dealer).unwrap();
        dealer.set_option(ROUTING_ID, b"joe").unwrap();
        dealer.connect(&endpoint).unwrap();
        set(&mut router, SNDTIMEO, -1);
        router.set_option(WAIT_PEERS, &one).unwrap();
        dealer.send(b"12345", Flags::NONE).unwrap();
        recv(&mut router);
        recv(&mut router);

        // The layout is that of `zmq_tautline_peer_t`.
        let mut out = vec![0xFF; 3 * RECORD + 7];
        assert_eq!(router.option(PEERS, &mut out), Ok(RECORD));
        let number = |place: usize| u64::from_ne_bytes(out[8 * place..][..8].try_into().unwrap());
        let small = |place: usize| u32::from_ne_bytes(out[112 + 4 * place..][..4].try_into().unwrap());
        assert_eq!((number(2), number(4), number(5)), (0, 1, 7));
        assert_eq!((small(0), small(1), small(2), small(3)), (1, 0, 3, 0));
        assert_eq!(&out[128..132], b"joe\0");
        let text = |at: usize| {
            let end = out[at..].iter().position(|byte| *byte == 0).unwrap();
            String::from_utf8(out[at..at + end].to_vec()).unwrap()
        };
        let peer = &router.peers().unwrap()[0];
        assert_eq!([text(384), text(512)], [peer.address.clone(), peer.local.clone()]);
        assert_eq!([text(640), text(896)], [endpoint, String::new()]);
        assert_eq!([text(1088), text(1152)], ["127.0.0.1", "NULL"]);
        // A buffer without room for a record stays empty.
        assert_eq!(router.option(PEERS, &mut out[..RECORD - 1]), Ok(0));
    });
}

/// Returns the parts of the next event with this number, without its number and values.
fn event(monitor: &mut Socket, wanted: u64) -> Vec<String> {
    loop {
        let mut parts = Vec::new();
        loop {
            parts.push(recv(monitor));
            let mut more = [0; 4];
            monitor.option(13, &mut more).unwrap();
            if more == [0; 4] {
                break;
            }
        }
        if u64::from_ne_bytes(parts[0].as_slice().try_into().unwrap()) == wanted {
            return parts[3..].iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect();
        }
    }
}

#[test]
fn events_of_version_3_say_which_peer_and_why() {
    test("version 3", |context| {
        let (mut router, endpoint) = bound(context, SocketType::Router, "tcp://127.0.0.1:*");
        router.monitor(Some("inproc://events"), 0xFFFF, 3, SocketType::Pair).unwrap();
        assert_eq!(router.monitor(Some("inproc://other"), 0xFFFF, 4, SocketType::Pair), Err(Error::Invalid));
        let mut monitor = connected(context, SocketType::Pair, "inproc://events");
        let mut dealer = context.socket(SocketType::Dealer).unwrap();
        dealer.set_option(ROUTING_ID, b"joe").unwrap();
        dealer.connect(&endpoint).unwrap();
        let done = event(&mut monitor, 0x1000);
        assert_eq!(done[0], last_endpoint(&mut router));
        assert_eq!(done[2..], ["joe", "127.0.0.1", "", ""]);
        drop(dealer);
        let gone = event(&mut monitor, 0x200);
        assert_eq!(gone[..2], done[..2]);
        assert_eq!(gone[2..5], ["joe", "127.0.0.1", ""]);
        // The connection ends with the end of the stream or, if bytes were in flight, with a reset.
        assert!(gone[5] == "the peer closed the connection" || gone[5].contains("reset"), "{}", gone[5]);
        router.monitor(None, 0, 1, SocketType::Pair).unwrap();
    });
}

/// A list has a record for each connected peer, as far as the buffer has room.
#[test]
fn a_list_is_as_long_as_there_are_peers() {
    test("many", |context| {
        let mut pull = context.socket(SocketType::Pull).unwrap();
        pull.bind("inproc://many").unwrap();
        let mut pushes: Vec<Socket> =
            (0..20).map(|_| connected(context, SocketType::Push, "inproc://many")).collect();
        pull.wait_for_peers(20, Instant::now().checked_add(Duration::from_secs(60))).unwrap();
        pushes.truncate(5);
        pull.wait_for_peers(5, now()).unwrap();
        let _ = pull.recv(&mut [], Flags::DONTWAIT);
        assert_eq!(pull.peers().unwrap().len(), 5);
        let mut out = vec![0; 20 * RECORD];
        assert_eq!(pull.option(PEERS, &mut out), Ok(5 * RECORD));
        assert_eq!(pull.option(PEERS, &mut out[..3 * RECORD]), Ok(3 * RECORD));
    });
}
