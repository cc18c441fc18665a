//! Every pattern end to end, over each transport, through the public API.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{last_endpoint, recv};
use std::time::Duration;

use tautline_core::poller::{Item, POLLIN, PollTarget, poll};
use tautline_core::{Context, Error, Flags, Socket, SocketType};
use tautline_testkit::with_watchdog;

const TRANSPORTS: [&str; 3] = ["tcp://127.0.0.1:*", "ipc://*", "inproc://here"];

/// Returns a bound and a connected socket.
fn joined(context: &Context, bound: SocketType, connected: SocketType, endpoint: &str) -> (Socket, Socket) {
    let mut a = context.socket(bound).unwrap();
    a.bind(endpoint).unwrap();
    let mut b = context.socket(connected).unwrap();
    b.connect(&last_endpoint(&mut a)).unwrap();
    (a, b)
}

fn each_transport(name: &str, test: impl Fn(&Context, &str) + Send + Sync + 'static) {
    with_watchdog(Duration::from_secs(60), name, move || {
        for endpoint in TRANSPORTS {
            let context = Context::new();
            test(&context, endpoint);
            context.terminate().unwrap();
        }
    });
}

#[test]
fn push_to_pull() {
    each_transport("push_to_pull", |context, endpoint| {
        let (mut pull, mut push) = joined(context, SocketType::Pull, SocketType::Push, endpoint);
        for size in [0, 1, 5, 255, 256, 4096, 40_000, 70_000, 300_000] {
            let body: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            push.send(&body, Flags::NONE).unwrap();
            assert!(recv(&mut pull) == body, "{size} bytes over {endpoint}");
        }
    });
}

#[test]
fn a_stream_of_messages_arrives_whole_and_in_order() {
    each_transport("stream", |context, endpoint| {
        let (mut pull, mut push) = joined(context, SocketType::Pull, SocketType::Push, endpoint);
        let sender = std::thread::spawn(move || {
            for n in 0..200_000u64 {
                push.send(&n.to_le_bytes(), Flags::NONE).unwrap();
            }
        });
        let mut buffer = [0; 8];
        for n in 0..200_000u64 {
            assert_eq!(pull.recv(&mut buffer, Flags::NONE), Ok(8));
            assert_eq!(u64::from_le_bytes(buffer), n);
        }
        sender.join().unwrap();
    });
}

#[test]
fn req_and_rep_take_turns() {
    each_transport("req_rep", |context, endpoint| {
        let (mut rep, mut req) = joined(context, SocketType::Rep, SocketType::Req, endpoint);
        let server = std::thread::spawn(move || {
            for _ in 0..2000 {
                let request = recv(&mut rep);
                rep.send(&request, Flags::NONE).unwrap();
            }
        });
        for n in 0..2000u32 {
            req.send(&n.to_le_bytes(), Flags::NONE).unwrap();
            assert_eq!(req.send(b"again", Flags::NONE), Err(Error::State));
            assert_eq!(recv(&mut req), n.to_le_bytes());
        }
        server.join().unwrap();
    });
}

/// With high-water marks of 1, the queue has room for each reply, even if another thread has just written the previous reply.
#[test]
fn a_mark_of_one_loses_no_reply() {
    each_transport("mark_of_one", |context, endpoint| {
        let mark = |socket: &mut Socket| {
            for code in [23, 24] {
                socket.set_option(code, &1_i32.to_ne_bytes()).unwrap();
            }
        };
        let mut rep = context.socket(SocketType::Rep).unwrap();
        mark(&mut rep);
        rep.bind(endpoint).unwrap();
        let endpoint = last_endpoint(&mut rep);
        let clients = [0; 3].map(|_| {
            let mut req = context.socket(SocketType::Req).unwrap();
            mark(&mut req);
            req.connect(&endpoint).unwrap();
            std::thread::spawn(move || {
                for n in 0..1000_u32 {
                    req.send(&n.to_le_bytes(), Flags::NONE).unwrap();
                    assert_eq!(recv(&mut req), n.to_le_bytes());
                }
            })
        });
        for _ in 0..3 * 1000 {
            let request = recv(&mut rep);
            rep.send(&request, Flags::NONE).unwrap();
        }
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
}

#[test]
fn published_messages_reach_their_subscribers() {
    each_transport("pub_sub", |context, endpoint| {
        let (mut publisher, mut subscriber) = joined(context, SocketType::XPub, SocketType::Sub, endpoint);
        subscriber.set_option(6, b"a").unwrap();
        assert_eq!(recv(&mut publisher), b"\x01a");
        for body in [b"b1", b"a1", b"b2", b"a2"] {
            publisher.send(body, Flags::NONE).unwrap();
        }
        assert_eq!(recv(&mut subscriber), b"a1");
        assert_eq!(recv(&mut subscriber), b"a2");
        subscriber.set_option(7, b"a").unwrap();
        assert_eq!(recv(&mut publisher), b"\x00a");
    });
}

#[test]
fn routers_know_each_other_by_routing_id() {
    each_transport("router", |context, endpoint| {
        let (mut router, mut dealer) = joined(context, SocketType::Router, SocketType::Dealer, endpoint);
        dealer.send(b"hello", Flags::MORE).unwrap();
        dealer.send(b"world", Flags::NONE).unwrap();
        let id = recv(&mut router);
        assert_eq!(
            (recv(&mut router).as_slice(), recv(&mut router).as_slice()),
            (&b"hello"[..], &b"world"[..])
        );
        router.send(&id, Flags::MORE).unwrap();
        router.send(b"back", Flags::NONE).unwrap();
        assert_eq!(recv(&mut dealer), b"back");
    });
}

#[test]
fn pairs_talk_both_ways() {
    each_transport("pair", |context, endpoint| {
        let (mut a, mut b) = joined(context, SocketType::Pair, SocketType::Pair, endpoint);
        for _ in 0..100 {
            a.send(b"ping", Flags::NONE).unwrap();
            assert_eq!(recv(&mut b), b"ping");
            b.send(b"pong", Flags::NONE).unwrap();
            assert_eq!(recv(&mut a), b"pong");
        }
    });
}

/// Several peers connect one after the other before the bound socket is called. It receives the messages of each.
#[test]
fn pairs_come_one_after_the_other() {
    each_transport("one_after_the_other", |context, endpoint| {
        let mut bound = context.socket(SocketType::Pair).unwrap();
        bound.bind(endpoint).unwrap();
        let endpoint = last_endpoint(&mut bound);
        for round in 0..2_u8 {
            for number in 0..3 {
                let own = if endpoint.starts_with("inproc") { context.clone() } else { Context::new() };
                let mut peer = own.socket(SocketType::Pair).unwrap();
                peer.connect(&endpoint).unwrap();
                peer.send(&[round, number], Flags::NONE).unwrap();
                peer.send(&[round, number], Flags::NONE).unwrap();
                peer.close();
                if !endpoint.starts_with("inproc") {
                    // After this, the kernel has all messages and the end of the stream.
                    own.terminate().unwrap();
                }
            }
            for number in [0, 0, 1, 1, 2, 2] {
                assert_eq!(recv(&mut bound), [round, number], "{endpoint}");
            }
        }
    });
}

#[test]
fn termination_wakes_a_blocked_receiver() {
    each_transport("termination", |context, endpoint| {
        let (mut pull, push) = joined(context, SocketType::Pull, SocketType::Push, endpoint);
        let blocked = std::thread::spawn(move || {
            let mut buffer = [0; 1];
            pull.recv(&mut buffer, Flags::NONE)
        });
        context.shutdown().unwrap();
        assert_eq!(blocked.join().unwrap(), Err(Error::Terminated));
        drop(push);
    });
}

#[test]
fn connect_comes_before_bind() {
    with_watchdog(Duration::from_secs(60), "connect_before_bind", || {
        let context = Context::new();
        let path = tautline_testkit::endpoint::tcp();
        for endpoint in [path.as_str(), "inproc://later"] {
            let mut push = context.socket(SocketType::Push).unwrap();
            push.connect(endpoint).unwrap();
            push.send(b"early", Flags::NONE).unwrap();
            let mut pull = context.socket(SocketType::Pull).unwrap();
            pull.bind(endpoint).unwrap();
            assert_eq!(recv(&mut pull), b"early");
        }
        context.terminate().unwrap();
    });
}

#[test]
fn inproc_takes_exactly_the_sum_of_both_high_water_marks() {
    with_watchdog(Duration::from_secs(60), "inproc_hwm", || {
        for (send, receive, sum) in [(1000, 1000, 2000), (1, 1, 2), (2, 1, 3)] {
            let context = Context::new();
            let mut pull = context.socket(SocketType::Pull).unwrap();
            pull.set_option(24, &i32::to_ne_bytes(receive)).unwrap();
            pull.bind("inproc://hwm").unwrap();
            let mut push = context.socket(SocketType::Push).unwrap();
            push.set_option(23, &i32::to_ne_bytes(send)).unwrap();
            push.connect("inproc://hwm").unwrap();
            let taken = (0..10_000).take_while(|_| push.send(b"x", Flags::DONTWAIT).is_ok()).count();
            assert_eq!(taken, sum);
            for _ in 0..sum {
                recv(&mut pull);
            }
            assert_eq!(pull.recv(&mut [0; 1], Flags::DONTWAIT), Err(Error::Again));
            push.send(b"x", Flags::DONTWAIT).unwrap();
            drop((push, pull));
            context.terminate().unwrap();
        }
    });
}

#[test]
fn round_robin_to_crowd_arrives_without_another_call() {
    each_transport("crowd", |context, endpoint| {
        const PEERS: usize = 40;
        // This number is below the high-water mark, so no peer is skipped.
        const ROUNDS: u64 = 900;
        let mut push = context.socket(SocketType::Push).unwrap();
        push.bind(endpoint).unwrap();
        let endpoint = last_endpoint(&mut push);
        let mut pulls: Vec<_> = (0..PEERS).map(|_| context.socket(SocketType::Pull).unwrap()).collect();
        pulls.iter_mut().for_each(|pull| pull.connect(&endpoint).unwrap());
        // Send greetings until all peers have received one. Some peers receive several.
        let mut greeted = 0;
        while greeted < PEERS {
            push.send(b"", Flags::NONE).unwrap();
            greeted = 0;
            for pull in &mut pulls {
                let mut items = [Item { watched: PollTarget::Socket(pull), events: POLLIN, revents: 0 }];
                greeted += poll(&mut items, Some(Duration::ZERO)).unwrap();
            }
        }
        let (done, wait_for_all) = std::sync::mpsc::channel::<()>();
        let sender = std::thread::spawn(move || {
            for n in 0..ROUNDS {
                for _ in 0..PEERS {
                    push.send(&n.to_le_bytes(), Flags::NONE).unwrap();
                }
            }
            // The socket stays open without further calls.
            let _ = wait_for_all.recv();
        });
        for pull in &mut pulls {
            let mut buffer = [0; 8];
            while pull.recv(&mut buffer, Flags::NONE).unwrap() == 0 {}
            for n in 0..ROUNDS {
                assert_eq!(u64::from_le_bytes(buffer), n);
                if n + 1 < ROUNDS {
                    assert_eq!(pull.recv(&mut buffer, Flags::NONE), Ok(8));
                }
            }
        }
        drop(done);
        sender.join().unwrap();
    });
}
