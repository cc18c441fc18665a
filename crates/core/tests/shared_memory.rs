//! ipc between sockets that have exchanged enough messages to use shared memory. Every message arrives once and in order, however the
//! owner waits and whichever thread reads for it. High-water marks hold, and a socket notices the end of its peer.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{bind, bound, connected, recv, set, test};
use std::thread;

use tautline_core::poller::{self, Item, POLLIN, PollTarget};
use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};

const SNDHWM: i32 = 23;
const RCVHWM: i32 = 24;
const FD: i32 = 14;
const EVENTS: i32 = 15;
const SUBSCRIBE: i32 = 6;
const XPUB_NODROP: i32 = 69;
const XPUB_VERBOSER: i32 = 78;
const LINGER: i32 = 17;
const HEARTBEAT_IVL: i32 = 75;
const HEARTBEAT_TIMEOUT: i32 = 77;
const DISCONNECTED: u16 = 0x200;

/// Number of writes after which both ends certainly use shared memory, if the system has it.
const ENOUGH: u32 = 200;

fn get(socket: &mut Socket, option: i32) -> i32 {
    let mut value = [0; 4];
    socket.option(option, &mut value).unwrap();
    i32::from_ne_bytes(value)
}

/// Exchanges `ENOUGH` requests and replies.
fn warm(asking: &mut Socket, answering: &mut Socket) {
    for number in 0..ENOUGH {
        asking.send(&number.to_le_bytes(), Flags::NONE).unwrap();
        let request = recv(answering);
        answering.send(&request, Flags::NONE).unwrap();
        assert_eq!(recv(asking), number.to_le_bytes());
    }
}

/// Returns two PAIRs that already use shared memory.
fn warm_pair(context: &Context) -> (Socket, Socket) {
    let (mut near, endpoint) = bound(context, SocketType::Pair, "ipc://*");
    let mut far = connected(context, SocketType::Pair, &endpoint);
    warm(&mut far, &mut near);
    (near, far)
}

fn body(number: u32) -> Vec<u8> {
    let len = [4, 70, 300, 5000, 4, 40_000, 9, 200_000][number as usize % 8];
    let mut body = vec![number as u8; len];
    body[..4].copy_from_slice(&number.to_le_bytes());
    body
}

#[test]
fn messages_of_all_sizes_arrive_in_order() {
    test("sizes", |context| {
        let (mut near, mut far) = warm_pair(context);
        let sender = thread::spawn(move || {
            (0..5_000).for_each(|number| far.send(&body(number), Flags::NONE).unwrap());
            far
        });
        (0..5_000).for_each(|number| assert!(recv(&mut near) == body(number), "message {number}"));
        sender.join().unwrap();
    });
}

/// Returns a body of a length that peers may take in place.
fn large(number: u32) -> Vec<u8> {
    let len = [131_072, 200_000, 131_057, 1 << 20, 140_001][number as usize % 5];
    let mut body = vec![number as u8; len];
    body.iter_mut().step_by(1000).enumerate().for_each(|(at, byte)| *byte = at as u8);
    body
}

/// The sender may use its memory again after each call.
#[test]
fn large_bodies_from_any_memory_arrive_whole() {
    test("large", |context| {
        let (mut near, mut far) = warm_pair(context);
        set(&mut far, SNDHWM, 10);
        let sender = thread::spawn(move || {
            let mut kept = Vec::new();
            for number in 0..300 {
                let mut bytes = large(number);
                let mut message = match number % 5 {
                    0 => Message::from_vec(bytes),
                    1 => Message::from_owner(bytes),
                    2 => Message::from_slice(&bytes),
                    3 => {
                        kept.push(Message::from_owner(bytes));
                        kept.last_mut().unwrap().share()
                    }
                    _ => {
                        let flags = if number % 2 == 0 { Flags::NONE } else { Flags::MORE };
                        far.send(&bytes, flags).unwrap();
                        bytes.fill(0);
                        if number % 2 == 1 {
                            far.send(&large(number + 1), Flags::NONE).unwrap();
                        }
                        continue;
                    }
                };
                far.send_message(&mut message, Flags::NONE).unwrap();
                kept.truncate(3);
            }
            far
        });
        for number in 0..300 {
            let (mut message, parted) = (Message::new(), number % 5 == 4 && number % 2 == 1);
            near.recv_message(&mut message, Flags::NONE).unwrap();
            assert!(message.as_slice() == large(number) && message.more() == parted, "message {number}");
            if parted {
                assert!(recv(&mut near) == large(number + 1), "message {number}");
            }
        }
        sender.join().unwrap();
    });
}

/// A message that a peer has sent goes back, and on to another peer.
#[test]
fn received_messages_can_be_sent_on() {
    test("on", |context| {
        let (mut near, mut far) = warm_pair(context);
        let (mut onward, mut end) = warm_pair(context);
        for number in 0..200 {
            far.send(&large(number), Flags::NONE).unwrap();
            let mut message = Message::new();
            near.recv_message(&mut message, Flags::NONE).unwrap();
            onward.send_message(&mut message.share(), Flags::NONE).unwrap();
            near.send_message(&mut message, Flags::NONE).unwrap();
            assert!(recv(&mut end) == large(number) && recv(&mut far) == large(number), "message {number}");
        }
    });
}

/// Subscribers over ipc read one copy in place. One over tcp gets the bytes of the message.
#[test]
fn large_bodies_reach_subscribers_of_all_transports() {
    let body = |number| if number < ENOUGH { vec![1] } else { large(number) };
    test("subscribers", move |context| {
        let mut publisher = context.socket(SocketType::XPub).unwrap();
        set(&mut publisher, XPUB_NODROP, 1);
        set(&mut publisher, XPUB_VERBOSER, 1);
        set(&mut publisher, SNDHWM, 4);
        let receivers: Vec<_> = ["ipc://*", "ipc://*", "tcp://127.0.0.1:*", "ipc://*"]
            .into_iter()
            .map(|endpoint| {
                let mut subscriber = connected(context, SocketType::Sub, &bind(&mut publisher, endpoint));
                subscriber.set_option(SUBSCRIBE, b"").unwrap();
                assert_eq!(recv(&mut publisher), [1]);
                thread::spawn(move || {
                    for number in 0..300 + ENOUGH {
                        assert!(recv(&mut subscriber) == body(number), "message {number}");
                    }
                })
            })
            .collect();
        for number in 0..300 + ENOUGH {
            let bytes = body(number);
            match number % 3 {
                0 => publisher.send(&bytes, Flags::NONE).unwrap(),
                1 => publisher.send_message(&mut Message::from_vec(bytes), Flags::NONE).unwrap(),
                _ => publisher.send_message(&mut Message::from_slice(&bytes), Flags::NONE).unwrap(),
            }
        }
        receivers.into_iter().for_each(|receiver| receiver.join().unwrap());
    });
}

/// A poll of more sockets than the library checks one by one.
#[test]
fn many_sockets_in_one_poll() {
    test("poll", |context| {
        const SOCKETS: usize = 12;
        let (mut near, mut far): (Vec<_>, Vec<_>) = (0..SOCKETS).map(|_| warm_pair(context)).unzip();
        let sender = thread::spawn(move || {
            for round in 0..300_u32 {
                for (index, socket) in far.iter_mut().enumerate() {
                    // Some sockets are silent for long, so that the poll sleeps.
                    if (round as usize).is_multiple_of(index + 1) {
                        socket.send(&round.to_le_bytes(), Flags::NONE).unwrap();
                        recv(socket);
                    }
                }
            }
            far
        });
        let mut missing: usize = (0..SOCKETS).map(|index| 300_usize.div_ceil(index + 1)).sum();
        while missing > 0 {
            let mut items: Vec<_> = near
                .iter_mut()
                .map(|socket| Item { watched: PollTarget::Socket(socket), events: POLLIN, revents: 0 })
                .collect();
            assert!(poller::poll(&mut items, None).unwrap() > 0);
            let ready: Vec<_> = items.iter().map(|item| item.revents & POLLIN != 0).collect();
            for (socket, _) in near.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
                recv(socket);
                socket.send(b"", Flags::NONE).unwrap();
                missing -= 1;
            }
        }
        sender.join().unwrap();
    });
}

/// Several connections of a socket share one set, which tells which of them have messages.
#[test]
fn one_socket_with_several_peers() {
    test("peers", |context| {
        let (mut pull, endpoint) = bound(context, SocketType::Pull, "ipc://*");
        let senders: Vec<_> = (0..5_u32)
            .map(|index| {
                let mut push = connected(context, SocketType::Push, &endpoint);
                thread::spawn(move || {
                    for number in 0..20_000_u32 {
                        push.send(&[index.to_le_bytes(), number.to_le_bytes()].concat(), Flags::NONE)
                            .unwrap();
                    }
                })
            })
            .collect();
        let mut next = [0_u32; 5];
        for _ in 0..100_000 {
            let message = recv(&mut pull);
            let number = |at: usize| u32::from_le_bytes(message[at..at + 4].try_into().unwrap());
            let next = &mut next[number(0) as usize];
            assert_eq!(number(4), *next);
            *next += 1;
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

/// The I/O thread reads, and an event loop sleeps on the descriptor.
#[test]
fn an_owner_that_waits_on_the_descriptor() {
    test("descriptor", |context| {
        let (mut near, mut far) = warm_pair(context);
        let fd = get(&mut near, FD);
        let sender = thread::spawn(move || {
            for number in 0..2_000_u32 {
                far.send(&number.to_le_bytes(), Flags::NONE).unwrap();
                assert_eq!(recv(&mut far), number.to_le_bytes());
            }
            far
        });
        for number in 0..2_000_u32 {
            while get(&mut near, EVENTS) & i32::from(POLLIN) == 0 {
                let item = Item { watched: PollTarget::Descriptor(fd), events: POLLIN, revents: 0 };
                poller::poll(&mut [item], None).unwrap();
            }
            assert_eq!(recv(&mut near), number.to_le_bytes());
            near.send(&number.to_le_bytes(), Flags::NONE).unwrap();
        }
        sender.join().unwrap();
    });
}

/// While the owners make no calls, the I/O threads answer PINGs and read ahead, up to the high-water mark.
#[test]
fn marks_hold_while_the_owner_is_elsewhere() {
    test("marks", |context| {
        let (mut near, endpoint) = bound(context, SocketType::Pull, "ipc://*");
        set(&mut near, RCVHWM, 10);
        let mut far = context.socket(SocketType::Push).unwrap();
        set(&mut far, SNDHWM, 10);
        set(&mut far, LINGER, 0);
        set(&mut far, HEARTBEAT_IVL, 1);
        set(&mut far, HEARTBEAT_TIMEOUT, 600_000);
        far.connect(&endpoint).unwrap();
        for number in 0..ENOUGH {
            far.send(&number.to_le_bytes(), Flags::NONE).unwrap();
            assert_eq!(recv(&mut near), number.to_le_bytes());
        }
        // Send until the high-water marks and the shared memory are full.
        let large = vec![1; 100_000];
        let mut sent = 0;
        while far.send(&large, Flags::DONTWAIT).is_ok() {
            sent += 1;
            assert!(sent < 100);
        }
        assert_eq!(far.send(&large, Flags::DONTWAIT), Err(Error::Again));
        for _ in 0..sent {
            assert!(recv(&mut near) == large);
        }
        assert_eq!(near.recv(&mut [0], Flags::DONTWAIT), Err(Error::Again));
        far.send(b"room", Flags::NONE).unwrap();
        assert_eq!(recv(&mut near), b"room");
    });
}

#[test]
fn the_end_of_a_peer_comes_behind_its_last_message() {
    test("end", |context| {
        let (mut near, mut far) = warm_pair(context);
        near.monitor(Some("inproc://events"), DISCONNECTED.into(), 1, SocketType::Pair).unwrap();
        let mut events = connected(context, SocketType::Pair, "inproc://events");
        (0..100_u32).for_each(|number| far.send(&number.to_le_bytes(), Flags::NONE).unwrap());
        far.close();
        let event = recv(&mut events);
        assert_eq!(u16::from_ne_bytes([event[0], event[1]]), DISCONNECTED);
        (0..100_u32).for_each(|number| assert_eq!(recv(&mut near), number.to_le_bytes()));
        near.monitor(None, 0, 1, SocketType::Pair).unwrap();
    });
}

/// A non-blocking receive only reads memory. The socket still notices the end of its peer.
#[test]
fn polling_owner_notices_disconnect() {
    test("go", |context| {
        let (mut near, endpoint) = bound(context, SocketType::Pull, "ipc://*");
        near.monitor(Some("inproc://events"), DISCONNECTED.into(), 1, SocketType::Pair).unwrap();
        let mut events = connected(context, SocketType::Pair, "inproc://events");
        for _ in 0..3 {
            let mut far = connected(context, SocketType::Push, &endpoint);
            for number in 0..ENOUGH {
                far.send(&number.to_le_bytes(), Flags::NONE).unwrap();
                let mut got = [0; 4];
                while near.recv(&mut got, Flags::DONTWAIT) == Err(Error::Again) {}
                assert_eq!(got, number.to_le_bytes());
            }
            far.close();
            while events.recv(&mut [0; 8], Flags::DONTWAIT) == Err(Error::Again) {
                assert_eq!(near.recv(&mut [0; 4], Flags::DONTWAIT), Err(Error::Again));
            }
            recv(&mut events);
        }
        near.monitor(None, 0, 1, SocketType::Pair).unwrap();
    });
}
