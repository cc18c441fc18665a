//! The queues of a socket with many connections release their memory whenever they are empty. This loses no message, in any state
//! of the socket, its peers or the context.

// A loom model has no sockets.
#![cfg(not(loom))]

mod common;

use common::{bound, recv, set, test};

use tautline_core::{Context, Flags, Message, Socket, SocketType};

const LINGER: i32 = 17;
const DISCONNECTED: u16 = 0x200;
const RECONNECT_IVL: i32 = 18;
const ROUTER_MANDATORY: i32 = 33;
/// Number of peers. With up to eight connections, queues keep their memory.
const PEERS: usize = 20;

fn send(socket: &mut Socket, parts: &[&[u8]]) {
    for (i, part) in parts.iter().enumerate() {
        let flags = if i + 1 < parts.len() { Flags::MORE } else { Flags::NONE };
        socket.send(part, flags).unwrap();
    }
}

/// Returns a ROUTER, its peers after their first message, and their routing IDs.
fn crowd(context: &Context) -> (Socket, Vec<Socket>, Vec<Vec<u8>>) {
    crowd_of(context, PEERS)
}

fn crowd_of(context: &Context, size: usize) -> (Socket, Vec<Socket>, Vec<Vec<u8>>) {
    let (mut router, endpoint) = bound(context, SocketType::Router, "tcp://127.0.0.1:*");
    set(&mut router, ROUTER_MANDATORY, 1);
    let peers: Vec<Socket> = (0..size)
        .map(|n| {
            let mut peer = context.socket(SocketType::Dealer).unwrap();
            peer.connect(&endpoint).unwrap();
            send(&mut peer, &[&[n as u8]]);
            peer
        })
        .collect();
    let mut names = vec![Vec::new(); size];
    for _ in 0..size {
        let name = recv(&mut router);
        names[usize::from(recv(&mut router)[0])] = name;
    }
    (router, peers, names)
}

/// Returns the content of a round of messages: some short, some long.
fn content(round: usize) -> Vec<u8> {
    vec![round as u8; [3, 300, 5000, 0, 100_000][round % 5]]
}

#[test]
fn rounds_to_many_peers_and_back_arrive_whole_and_in_order() {
    test("rounds", |context| {
        let (mut router, mut peers, names) = crowd(context);
        for round in 0..50 {
            // Some rounds send several messages to each peer, so that the sweep finds queues.
            let at_once = 1 + round % 3;
            for i in 0..at_once {
                names.iter().for_each(|name| send(&mut router, &[name, b"part", &content(round + i)]));
            }
            for peer in &mut peers {
                for i in 0..at_once {
                    assert_eq!(recv(peer), b"part");
                    assert!(recv(peer) == content(round + i));
                    send(peer, &[b"", &content(round + i)]);
                }
            }
            let mut heard = [0; PEERS];
            for _ in 0..PEERS * at_once {
                let name = recv(&mut router);
                let peer = names.iter().position(|other| *other == name).unwrap();
                assert!(recv(&mut router).is_empty());
                assert!(recv(&mut router) == content(round + heard[peer]));
                heard[peer] += 1;
            }
            assert!(heard.iter().all(|&n| n == at_once));
        }
    });
}

/// The sweep pauses between its rounds, but no message waits for the sender's next call.
#[test]
fn round_robin_stream_arrives_without_another_call() {
    test("in turn", |context| {
        const ROUNDS: u32 = 900;
        let (mut router, mut peers, names) = crowd_of(context, 60);
        for pause in [false, true] {
            for round in 0..ROUNDS {
                names.iter().for_each(|name| send(&mut router, &[name, &round.to_le_bytes()]));
                if pause && round % 100 == 50 {
                    // The owner sleeps, which ends a pause of the sweep.
                    send(&mut peers[0], &[b"wake up"]);
                    recv(&mut router);
                    assert_eq!(recv(&mut router), b"wake up");
                }
            }
            for peer in &mut peers {
                (0..ROUNDS).for_each(|round| assert_eq!(recv(peer), round.to_le_bytes()));
            }
        }
    });
}

#[test]
fn messages_to_many_peers_are_sent_after_close() {
    test("linger", |context| {
        for round in 0..10 {
            let (mut router, mut peers, names) = crowd(context);
            // The queues have been empty before. The later messages are sent with the sweep running, or after it.
            for i in 0..=round {
                names.iter().for_each(|name| send(&mut router, &[name, &content(i)]));
                if i % 2 == 0 {
                    let name = names.last().unwrap();
                    send(peers.last_mut().unwrap(), &[b"awake"]);
                    assert_eq!(recv(&mut router), *name);
                    assert_eq!(recv(&mut router), b"awake");
                }
            }
            drop(router);
            for peer in &mut peers {
                (0..=round).for_each(|i| assert!(recv(peer) == content(i)));
            }
        }
    });
}

#[test]
fn partly_written_messages_finish_after_close() {
    test("partly written", |context| {
        let (mut router, mut peers, names) = crowd(context);
        let large = vec![7; 6 << 20];
        names.iter().for_each(|name| send(&mut router, &[name, b"small"]));
        names.iter().for_each(|name| send(&mut router, &[name, &large, b"end"]));
        names.iter().for_each(|name| send(&mut router, &[name, b"small"]));
        drop(router);
        for peer in &mut peers {
            assert_eq!(recv(peer), b"small");
            assert!(recv(peer) == large);
            assert_eq!(recv(peer), b"end");
            assert_eq!(recv(peer), b"small");
        }
    });
}

#[test]
fn context_ends_with_unsendable_messages() {
    test("gone", |context| {
        for linger in [0, 50] {
            let (mut router, mut peers, names) = crowd(context);
            set(&mut router, LINGER, linger);
            names.iter().for_each(|name| send(&mut router, &[name, b"one"]));
            for (n, mut peer) in peers.drain(..).enumerate() {
                set(&mut peer, LINGER, 0);
                // Each peer disconnects without having read: here, or at the end of the iteration.
                if n % 2 == 0 {
                    drop(peer);
                }
            }
            for name in &names {
                // Sending to a disconnected peer may be an error.
                if router.send(name, Flags::MORE).is_ok() {
                    router.send(&vec![1; 3 << 20], Flags::NONE).unwrap();
                }
            }
        }
    });
}

#[test]
fn messages_for_many_endpoints_outlive_the_connections() {
    test("reconnect", |context| {
        let mut push = context.socket(SocketType::Push).unwrap();
        set(&mut push, RECONNECT_IVL, 1);
        let mut endpoints = Vec::new();
        let mut pulls: Vec<Socket> = (0..PEERS)
            .map(|_| {
                let (pull, endpoint) = bound(context, SocketType::Pull, "tcp://127.0.0.1:*");
                push.connect(&endpoint).unwrap();
                endpoints.push(endpoint);
                pull
            })
            .collect();
        // Send a message to each PULL, so that every queue has been used and is empty again.
        (0..PEERS).for_each(|_| send(&mut push, &[b"first"]));
        pulls.iter_mut().for_each(|pull| assert_eq!(recv(pull), b"first"));
        push.monitor(Some("inproc://events"), DISCONNECTED.into(), 1, SocketType::Pair).unwrap();
        let mut events = context.socket(SocketType::Pair).unwrap();
        events.connect("inproc://events").unwrap();
        pulls.clear();
        for _ in 0..PEERS {
            assert_eq!(recv(&mut events)[..2], DISCONNECTED.to_ne_bytes());
            recv(&mut events);
        }
        for n in 0..3 * PEERS as u8 {
            send(&mut push, &[b"head", &[n]]);
        }
        let mut pulls: Vec<Socket> = endpoints
            .iter()
            .map(|endpoint| {
                let mut pull = context.socket(SocketType::Pull).unwrap();
                pull.bind(endpoint).unwrap();
                pull
            })
            .collect();
        drop(push);
        let mut all = Vec::new();
        let mut message = Message::new();
        while all.len() < 3 * PEERS {
            for pull in &mut pulls {
                while pull.recv_message(&mut message, Flags::DONTWAIT).is_ok() {
                    assert_eq!(message.as_slice(), b"head");
                    all.push(recv(pull)[0]);
                }
            }
            std::thread::yield_now();
        }
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..3 * PEERS as u8));
    });
}
