//! Statistics of a socket (ZMQ_TAUTLINE_STATISTICS).

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::last_endpoint;
use std::time::Duration;

use tautline_core::{Context, Error, Flags, Socket, SocketType};
use tautline_testkit::with_watchdog;

const STATISTICS: i32 = 0x5441_0001;
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, PartialEq, Eq)]
struct Numbers([u64; 13]);

impl Numbers {
    fn of(socket: &mut Socket) -> Self {
        let mut out = [0; 13 * 8];
        assert_eq!(socket.option(STATISTICS, &mut out), Ok(out.len()));
        let mut numbers = [0; 13];
        for (number, bytes) in numbers.iter_mut().zip(out.chunks_exact(8)) {
            *number = u64::from_ne_bytes(bytes.try_into().unwrap());
        }
        Numbers(numbers)
    }

    fn sent(&self) -> (u64, u64) {
        (self.0[0], self.0[1])
    }

    fn received(&self) -> (u64, u64) {
        (self.0[2], self.0[3])
    }

    /// Returns the messages dropped at full queues, unroutable messages, and lost messages.
    fn dropped(&self) -> [u64; 3] {
        [self.0[4], self.0[5], self.0[6]]
    }

    /// Returns the messages queued for peers, the messages queued for the program, and the peers.
    fn queued(&self) -> [u64; 3] {
        [self.0[7], self.0[8], self.0[9]]
    }
}

#[test]
fn traffic_is_counted_at_both_ends_and_stays_counted() {
    for endpoint in ["tcp://127.0.0.1:*", "inproc://statistics"] {
        with_watchdog(LIMIT, endpoint, || {
            let context = Context::new();
            let mut push = context.socket(SocketType::Push).unwrap();
            let mut pull = context.socket(SocketType::Pull).unwrap();
            push.bind(endpoint).unwrap();
            let endpoint = last_endpoint(&mut push);
            pull.connect(&endpoint).unwrap();
            let mut buffer = vec![0; 100_000];
            let mut bytes = 0;
            for size in [0, 10, 1000, 100_000] {
                push.send(&buffer[..size], Flags::MORE).unwrap();
                push.send(&buffer[..size], Flags::NONE).unwrap();
                bytes += 2 * size as u64;
                assert_eq!(pull.recv(&mut buffer, Flags::NONE), Ok(size));
                assert_eq!(pull.recv(&mut buffer, Flags::NONE), Ok(size));
            }
            let (sent, received) = (Numbers::of(&mut push), Numbers::of(&mut pull));
            assert_eq!((sent.sent().0, sent.received().0), (4, 0));
            assert_eq!((received.sent().0, received.received().0), (0, 4));
            // The counters include frame headers, at most 9 bytes each.
            for counted in [sent.sent().1, received.received().1] {
                assert!((bytes..=bytes + 8 * 9).contains(&counted), "{counted} bytes");
            }
            pull.disconnect(&endpoint).unwrap();
            assert_eq!(Numbers::of(&mut pull).received(), received.received());
            assert_eq!(Numbers::of(&mut pull).queued(), [0, 0, 0]);
        });
    }
}

#[test]
fn drops_are_counted_by_reason() {
    with_watchdog(LIMIT, "drops", || {
        let context = Context::new();
        let mut publisher = context.socket(SocketType::XPub).unwrap();
        let mut subscriber = context.socket(SocketType::XSub).unwrap();
        for socket in [&mut publisher, &mut subscriber] {
            for option in [23, 24] {
                socket.set_option(option, &1_i32.to_ne_bytes()).unwrap();
            }
        }
        publisher.bind("inproc://drops").unwrap();
        subscriber.connect("inproc://drops").unwrap();
        subscriber.send(b"\x01", Flags::NONE).unwrap();
        publisher.recv(&mut [0; 8], Flags::NONE).unwrap();
        for _ in 0..7 {
            publisher.send(b"x", Flags::NONE).unwrap();
        }
        let numbers = Numbers::of(&mut publisher);
        assert_eq!((numbers.sent().0, numbers.dropped(), numbers.queued()), (2, [5, 0, 0], [2, 0, 1]));
        assert_eq!(Numbers::of(&mut subscriber).queued(), [0, 2, 1]);
        // Messages queued for the subscriber are lost with it.
        drop(subscriber);
        assert_eq!(publisher.recv(&mut [0; 8], Flags::NONE), Ok(1));
        let numbers = Numbers::of(&mut publisher);
        assert_eq!((numbers.dropped(), numbers.queued()), ([5, 0, 2], [0, 0, 0]));

        let mut router = context.socket(SocketType::Router).unwrap();
        router.send(b"nobody", Flags::MORE).unwrap();
        router.send(b"x", Flags::NONE).unwrap();
        assert_eq!(Numbers::of(&mut router).dropped(), [0, 1, 0]);
    });
}

#[test]
fn there_may_be_less_room() {
    let context = Context::new();
    let mut socket = context.socket(SocketType::Pair).unwrap();
    assert_eq!(socket.option(STATISTICS, &mut [0; 20]), Ok(16));
    assert_eq!(socket.option(STATISTICS, &mut [0; 7]), Err(Error::Invalid));
    assert_eq!(socket.option(STATISTICS, &mut [0; 200]), Ok(112));
}

#[test]
fn each_number_can_be_read_alone() {
    with_watchdog(LIMIT, "alone", || {
        let context = Context::new();
        let mut push = context.socket(SocketType::Push).unwrap();
        let mut pull = context.socket(SocketType::Pull).unwrap();
        push.bind("inproc://alone").unwrap();
        pull.connect("inproc://alone").unwrap();
        push.send(b"12345", Flags::default()).unwrap();
        let whole = Numbers::of(&mut push);
        assert_eq!(whole.sent(), (1, 7));
        for (place, number) in (0..).zip(whole.0) {
            let mut long = [0; 8];
            assert_eq!(push.option(0x5441_1000 + place, &mut long), Ok(8));
            assert_eq!(u64::from_ne_bytes(long), number);
            let mut short = [0; 4];
            assert_eq!(push.option(0x5441_1000 + place, &mut short), Ok(4));
            assert_eq!(u64::from(u32::from_ne_bytes(short)), number);
            assert_eq!(push.option(0x5441_2000 + place, &mut short), Ok(4));
            assert_eq!(short, [0; 4]);
        }
        assert_eq!(push.option(0x5441_1000 + 14, &mut [0; 8]), Err(Error::Invalid));
        assert_eq!(push.option(0x5441_0FFF, &mut [0; 8]), Err(Error::Invalid));
    });
}
