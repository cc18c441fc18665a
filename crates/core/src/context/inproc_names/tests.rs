//! Leftovers of inproc peers that connect and disconnect before the other side processes their
//! news.

use std::time::Duration;

use super::*;
use crate::{Context, Flags, Socket};
use tautline_proto::SocketType;
use tautline_testkit::with_watchdog;

const LINGER: i32 = 17;
const DISCONNECT_MSG: i32 = 111;

fn pending(context: &Context) -> usize {
    lock(&context.0.names).pending.len()
}

fn socket(context: &Context, socket_type: SocketType) -> Socket {
    let mut socket = context.socket(socket_type).unwrap();
    socket.set_option(LINGER, &0_i32.to_ne_bytes()).unwrap();
    socket
}

fn test(name: &str, body: impl FnOnce(&Context) + Send + 'static) {
    with_watchdog(Duration::from_secs(60), name, move || {
        let context = Context::new();
        body(&context);
        context.terminate().unwrap();
    });
}

#[test]
fn abandoned_connects_do_not_accumulate() {
    test("given up", |context| {
        for _ in 0..100 {
            let mut closed = socket(context, SocketType::Push);
            closed.connect("inproc://nobody").unwrap();
            drop(closed);
            assert_eq!(pending(context), 0);
        }
        let mut sub = socket(context, SocketType::Sub);
        sub.set_option(6, b"topic").unwrap();
        for _ in 0..100 {
            sub.connect("inproc://nobody").unwrap();
            assert_eq!(pending(context), 1);
            sub.disconnect("inproc://nobody").unwrap();
            assert_eq!(pending(context), 0);
        }
        // Of many pending ends, at most about as many are kept as are still wanted.
        let mut all: Vec<_> = (0..64).map(|_| socket(context, SocketType::Dealer)).collect();
        for dealer in &mut all {
            dealer.connect("inproc://nobody").unwrap();
        }
        while let Some(dealer) = all.pop() {
            drop(dealer);
            assert!(pending(context) <= 2 * all.len() + 1);
        }
        assert_eq!(pending(context), 0);
    });
}

#[test]
fn whole_messages_wait_for_the_bind() {
    test("whole messages", |context| {
        for n in 0..10_u8 {
            let mut push = socket(context, SocketType::Push);
            push.connect("inproc://later").unwrap();
            if n % 2 == 0 {
                push.send(&[n], Flags::NONE).unwrap();
            }
            push.send(b"a part of", Flags::MORE).unwrap();
        }
        // At most as many abandoned ends are kept as wanted ones.
        assert!((5..=10).contains(&pending(context)));
        let mut pull = socket(context, SocketType::Pull);
        pull.bind("inproc://later").unwrap();
        let mut received = [0; 5];
        for place in &mut received {
            pull.recv(std::slice::from_mut(place), Flags::NONE).unwrap();
        }
        received.sort_unstable();
        assert_eq!(received, [0, 2, 4, 6, 8]);
        assert!(pull.recv(&mut [], Flags::DONTWAIT).is_err());
    });
}

/// Number of news that the owner has not processed.
fn news(socket: &Socket) -> usize {
    socket.inbox().len()
}

#[test]
fn idle_owner_keeps_only_messages() {
    test("never looks", |context| {
        let mut pull = socket(context, SocketType::Pull);
        pull.bind("inproc://lazy").unwrap();
        for n in 0..100_u8 {
            let mut push = socket(context, SocketType::Push);
            push.connect("inproc://lazy").unwrap();
            if n == 50 {
                push.send(&[n], Flags::NONE).unwrap();
            }
            push.send(b"a part of", Flags::MORE).unwrap();
            drop(push);
            assert_eq!(news(&pull), usize::from(n >= 50));
        }
        let mut byte = [0];
        pull.recv(&mut byte, Flags::NONE).unwrap();
        assert_eq!(byte, [50]);
    });
}

#[test]
fn disconnect_msg_arrives_for_silent_peers() {
    test("told", |context| {
        let mut router = socket(context, SocketType::Router);
        router.set_option(DISCONNECT_MSG, b"gone").unwrap();
        router.bind("inproc://told").unwrap();
        for _ in 0..3 {
            socket(context, SocketType::Dealer).connect("inproc://told").unwrap();
        }
        for _ in 0..3 {
            let mut body = [0; 8];
            router.recv(&mut body, Flags::NONE).unwrap();
            assert_eq!(router.recv(&mut body, Flags::NONE).unwrap(), 4);
        }
    });
}
