//! `udp` endpoints: RADIO and DISH with groups, and DGRAM.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::last_endpoint;
use std::net::UdpSocket;
use std::time::Duration;

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);

fn send(radio: &mut Socket, group: &[u8], body: &[u8]) {
    let mut message = Message::from_slice(body);
    assert!(message.set_group(group));
    radio.send_message(&mut message, Flags::NONE).unwrap();
}

fn recv(dish: &mut Socket) -> (Vec<u8>, Vec<u8>) {
    let mut message = Message::new();
    dish.recv_message(&mut message, Flags::NONE).unwrap();
    (message.group().to_bytes().to_vec(), message.as_slice().to_vec())
}

#[test]
fn groups_travel_in_datagrams() {
    with_watchdog(LIMIT, "radio and dish", || {
        let context = Context::new();
        let mut dish = context.socket(SocketType::Dish).unwrap();
        let mut radio = context.socket(SocketType::Radio).unwrap();
        dish.bind("udp://127.0.0.1:*").unwrap();
        dish.join(b"TV").unwrap();
        let endpoint = last_endpoint(&mut dish);
        radio.connect(&endpoint).unwrap();
        send(&mut radio, b"Movies", b"not joined");
        send(&mut radio, b"TV", b"Friends");
        assert_eq!(recv(&mut dish), (b"TV".to_vec(), b"Friends".to_vec()));
        // The second message fits exactly into the longest datagram. The first is one byte too long.
        send(&mut radio, b"TV", &vec![7; 65_507 - 3 + 1]);
        send(&mut radio, b"TV", &vec![8; 65_507 - 3]);
        assert_eq!(recv(&mut dish), (b"TV".to_vec(), vec![8; 65_507 - 3]));
        // These datagrams do not come from a RADIO. Only the last is valid.
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = endpoint.strip_prefix("udp://").unwrap();
        for noise in [&b""[..], b"\x03TV", b"\xff", b"\x02TVfrom a stranger"] {
            stranger.send_to(noise, address).unwrap();
        }
        assert_eq!(recv(&mut dish), (b"TV".to_vec(), b"from a stranger".to_vec()));
        radio.disconnect(&endpoint).unwrap();
        assert_eq!(radio.disconnect(&endpoint), Err(Error::NoEntry));
        send(&mut radio, b"TV", b"to nobody");
        dish.unbind(&endpoint).unwrap();
        drop((radio, dish));
        context.terminate().unwrap();
    });
}

/// The length of a group is an unsigned octet. A datagram that is shorter than its group is dropped.
#[test]
fn groups_may_have_255_octets() {
    with_watchdog(LIMIT, "long groups", || {
        let context = Context::new();
        let mut dish = context.socket(SocketType::Dish).unwrap();
        let mut radio = context.socket(SocketType::Radio).unwrap();
        dish.bind("udp://127.0.0.1:*").unwrap();
        let endpoint = last_endpoint(&mut dish);
        radio.connect(&endpoint).unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = endpoint.strip_prefix("udp://").unwrap();
        for len in [0, 1, 127, 128, 129, 200, 254, 255_u8] {
            let group = vec![b'g'; len.into()];
            dish.join(&group).unwrap();
            let longer = [&[len], &group[..], b"whole"].concat();
            // The first is one octet too short for its group. The second has an empty body.
            stranger.send_to(&longer[..usize::from(len)], address).unwrap();
            stranger.send_to(&longer[..=usize::from(len)], address).unwrap();
            stranger.send_to(&longer, address).unwrap();
            assert_eq!(recv(&mut dish), (group.clone(), Vec::new()));
            assert_eq!(recv(&mut dish), (group.clone(), b"whole".to_vec()));
            send(&mut radio, &group, b"from a radio");
            assert_eq!(recv(&mut dish), (group, b"from a radio".to_vec()));
        }
    });
}

/// A datagram has 65,507 octets for the group and the body. Longer messages are dropped, and later messages arrive.
#[test]
fn oversized_message_is_dropped() {
    with_watchdog(LIMIT, "long datagrams", || {
        let context = Context::new();
        let mut dish = context.socket(SocketType::Dish).unwrap();
        let mut radio = context.socket(SocketType::Radio).unwrap();
        dish.bind("udp://127.0.0.1:*").unwrap();
        radio.connect(&last_endpoint(&mut dish)).unwrap();
        for len in [0, 255] {
            let group = vec![b'g'; len];
            dish.join(&group).unwrap();
            let most = 65_507 - 1 - len;
            for size in [8192, 8193, 32_768, most + 1, 100_000, 1 << 20, most] {
                send(&mut radio, &group, &vec![7; size]);
                if size <= most {
                    assert_eq!(recv(&mut dish), (group.clone(), vec![7; size]));
                }
            }
        }
        let [mut a, mut b] = [(); 2].map(|()| {
            let mut socket = context.socket(SocketType::Dgram).unwrap();
            socket.bind("udp://127.0.0.1:*").unwrap();
            socket
        });
        let at_b = last_endpoint(&mut b).replace("udp://", "");
        let mut message = Message::new();
        for size in [8192, 8193, 65_508, 1 << 20, 65_507] {
            a.send(at_b.as_bytes(), Flags::MORE).unwrap();
            a.send(&vec![8; size], Flags::NONE).unwrap();
            if size <= 65_507 {
                b.recv_message(&mut message, Flags::NONE).unwrap();
                b.recv_message(&mut message, Flags::NONE).unwrap();
                assert_eq!(message.as_slice(), vec![8; size]);
            }
        }
    });
}

#[test]
fn names_are_resolved_and_messages_wait_for_that() {
    with_watchdog(LIMIT, "host name", || {
        let context = Context::new();
        let mut dish = context.socket(SocketType::Dish).unwrap();
        let mut radio = context.socket(SocketType::Radio).unwrap();
        dish.bind("udp://127.0.0.1:*").unwrap();
        dish.join(b"").unwrap();
        let port = last_endpoint(&mut dish).rsplit(':').next().unwrap().to_owned();
        radio.connect(&format!("udp://localhost:{port}")).unwrap();
        send(&mut radio, b"", b"hello");
        assert_eq!(recv(&mut dish), (Vec::new(), b"hello".to_vec()));
    });
}

#[test]
fn datagrams_with_any_address() {
    with_watchdog(LIMIT, "dgram", || {
        let context = Context::new();
        let [mut a, mut b] = [(); 2].map(|()| {
            let mut socket = context.socket(SocketType::Dgram).unwrap();
            socket.bind("udp://127.0.0.1:*").unwrap();
            socket
        });
        let [at_a, at_b] = [&mut a, &mut b].map(|socket| last_endpoint(socket).replace("udp://", ""));
        let mut buffer = [0; 64];
        a.send(b"nowhere", Flags::MORE).unwrap();
        a.send(b"dropped", Flags::NONE).unwrap();
        for round in 0..300_u32 {
            a.send(at_b.as_bytes(), Flags::MORE).unwrap();
            a.send(&round.to_ne_bytes(), Flags::NONE).unwrap();
            let len = b.recv(&mut buffer, Flags::NONE).unwrap();
            assert_eq!(&buffer[..len], at_a.as_bytes());
            assert_eq!(b.recv(&mut buffer, Flags::NONE), Ok(4));
            assert_eq!(buffer[..4], round.to_ne_bytes());
        }
        assert_eq!(a.bind("udp://127.0.0.1:*"), Err(Error::Invalid));
    });
}

#[test]
fn the_receive_high_water_mark_leaves_datagrams_to_the_kernel() {
    with_watchdog(LIMIT, "udp high-water mark", || {
        let context = Context::new();
        let mut dish = context.socket(SocketType::Dish).unwrap();
        dish.set_option(24, &2_i32.to_ne_bytes()).unwrap();
        dish.bind("udp://127.0.0.1:*").unwrap();
        dish.join(b"g").unwrap();
        let address = last_endpoint(&mut dish).replace("udp://", "");
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for number in 0..50_u8 {
            sender.send_to(&[1, b'g', number], &address).unwrap();
        }
        for number in 0..50_u8 {
            assert_eq!(recv(&mut dish), (b"g".to_vec(), vec![number]));
        }
    });
}

#[test]
fn other_uses_are_refused() {
    let context = Context::new();
    let socket = |socket_type| context.socket(socket_type).unwrap();
    let refused = Err(Error::IncompatibleProtocol);
    assert_eq!(socket(SocketType::Radio).bind("udp://*:5556"), refused);
    assert_eq!(socket(SocketType::Dish).connect("udp://127.0.0.1:5556"), refused);
    assert_eq!(socket(SocketType::Dgram).connect("udp://127.0.0.1:5556"), refused);
    assert_eq!(socket(SocketType::Dgram).bind("tcp://127.0.0.1:*"), refused);
    assert_eq!(socket(SocketType::Dgram).connect("inproc://x"), refused);
    for socket_type in [SocketType::Pub, SocketType::Pair, SocketType::Client, SocketType::Stream] {
        assert_eq!(socket(socket_type).bind("udp://*:5556"), refused);
        assert_eq!(socket(socket_type).connect("udp://nonsense"), refused);
    }
    assert_eq!(socket(SocketType::Dish).bind("udp://127.0.0.1"), Err(Error::Invalid));
    assert_eq!(socket(SocketType::Dish).bind("udp://192.0.2.1:5556"), Err(Error::AddressNotAvailable));
    assert_eq!(socket(SocketType::Dish).bind("udp://no-such-interface:5556"), Err(Error::NoDevice));
    assert_eq!(socket(SocketType::Radio).connect("udp://127.0.0.1:*"), Err(Error::Invalid));
}
