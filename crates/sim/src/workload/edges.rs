//! Workloads at the edges of the guarantees: changing subscriptions, the last message of a
//! conflating socket, exact high-water marks, full shared memory, and a context that ends while its
//! sockets are in use.

use std::collections::BTreeSet;
use std::time::Duration;

use tautline_core::{Error, SocketType};

use super::peer::{CONFLATE, HEARTBEAT_IVL, LINGER, Peer, RCVHWM, SNDHWM, SNDTIMEO, SUBSCRIBE, UNSUBSCRIBE};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

/// Topics of [`churn`]. Some are prefixes of others.
const TOPICS: [&[u8]; 6] = [b"a", b"ab", b"abc", b"b", b"", b"ba"];

/// SUB and XSUB that change their subscriptions while an XPUB sends. After the last change each
/// receives exactly the topics of its final subscriptions.
pub(super) fn churn(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let count = rng.between(1, 5) as usize;
    let (changing, settled) = (Countdown::new(count), Countdown::new(1));
    let mut handles = Vec::new();
    for _ in 0..count {
        let (context, mut rng) = (stage.context(rng), fork(rng));
        let (endpoint, changing, settled) = (endpoint.clone(), changing.clone(), settled.clone());
        handles.push(spawn("sub", move || {
            // A repeated subscription of an XSUB is sent to its peer again.
            let is_raw = rng.chance(3);
            let socket_type = if is_raw { SocketType::XSub } else { SocketType::Sub };
            let mut peer = Peer::new(&context, socket_type, fork(&mut rng));
            peer.set(RCVHWM, 0);
            // Most of the time all of them wait, for long.
            peer.set(HEARTBEAT_IVL, 0);
            peer.bind_or_connect(&endpoint, false);
            let change = |peer: &mut Peer, option: i32, topic: &[u8]| match is_raw {
                false => peer.set_bytes(option, topic),
                true => {
                    let subscribes = u8::from(option == SUBSCRIBE);
                    peer.send(&[[&[subscribes], topic].concat()]).unwrap_or_else(|error| panic!("{error}"));
                }
            };
            let mut own: Vec<&[u8]> = Vec::new();
            for _ in 0..rng.spread(1, 40) {
                if own.is_empty() || rng.chance(2) {
                    let topic = *rng.pick(&TOPICS);
                    change(&mut peer, SUBSCRIBE, topic);
                    own.push(topic);
                } else {
                    let topic = own.swap_remove(rng.below(own.len() as u64) as usize);
                    change(&mut peer, UNSUBSCRIBE, topic);
                }
                if let Ok(parts) = peer.try_recv() {
                    assert_eq!(parts[1], b"early");
                }
                if rng.chance(3) {
                    peer.sleep_briefly();
                }
            }
            changing.count_down();
            let mut earlier = None;
            while settled.remaining() > 0 {
                std::thread::sleep(Duration::from_millis(200));
                // After a lost connection the owner subscribes again, in a call of the program.
                earlier = peer.try_recv().ok();
                if earlier.as_ref().is_some_and(|parts| parts[1] == b"late") {
                    break;
                }
            }
            peer.set_receive_timeout(20_000);
            let mut heard = BTreeSet::new();
            loop {
                match earlier.take().map_or_else(|| peer.recv(), Ok) {
                    Ok(parts) if parts[1] == b"late" => {
                        let is_new = heard.insert(parts[0].clone());
                        assert!(is_new, "{:?} comes again", parts[0]);
                    }
                    Ok(parts) => assert_eq!(parts[1], b"early"),
                    Err(Error::Again) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            let wanted: BTreeSet<Vec<u8>> = TOPICS
                .iter()
                .filter(|topic| own.iter().any(|prefix| topic.starts_with(prefix)))
                .map(|topic| topic.to_vec())
                .collect();
            assert_eq!(heard, wanted, "received topics, with subscriptions to {own:?}");
            peer.set(LINGER, 0);
        }));
    }
    let mut publisher = Peer::new(&stage.context(rng), SocketType::XPub, fork(rng));
    publisher.set(SNDHWM, 0);
    publisher.set(LINGER, 0);
    publisher.set(HEARTBEAT_IVL, 0);
    publisher.bind_or_connect(&endpoint, true);
    while changing.remaining() > 0 {
        let topic = *rng.pick(&TOPICS);
        publisher.send(&[topic.to_vec(), b"early".to_vec()]).unwrap();
        while publisher.try_recv().is_ok() {}
        publisher.sleep_briefly();
    }
    world::with(|world| world.kernel.faults.stop_losses());
    // By then lost connections are restored, and all subscriptions have arrived.
    for _ in 0..90 {
        std::thread::sleep(Duration::from_secs(1));
        while publisher.try_recv().is_ok() {}
    }
    settled.count_down();
    for topic in TOPICS {
        publisher.send(&[topic.to_vec(), b"late".to_vec()]).unwrap();
    }
    join(handles);
}

/// A conflating receiver. Once the sender is quiet, it receives the last message.
pub(super) fn conflate(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let count = rng.spread(1, 300) as u32;
    let kind = stage.kind.of_one_part();
    let types = *rng.pick(&[
        (SocketType::Push, SocketType::Pull),
        (SocketType::Dealer, SocketType::Dealer),
        (SocketType::Pub, SocketType::Sub),
    ]);
    let (context, receiver_rng, at) = (stage.context(rng), fork(rng), endpoint.clone());
    let joined = Countdown::new(1);
    let done = joined.clone();
    let receiver = spawn("keeper", move || {
        let mut peer = Peer::new(&context, types.1, receiver_rng);
        peer.set(CONFLATE, 1);
        if types.1 == SocketType::Sub {
            peer.set_bytes(SUBSCRIBE, b"");
        }
        peer.bind_or_connect(&at, true);
        done.count_down();
        let mut last = None;
        while last != Some(count - 1) {
            let parts = peer.recv().unwrap_or_else(|error| panic!("{error}"));
            let number = u32::from_be_bytes(*parts[0][4..].first_chunk().expect("a number"));
            assert!(parts == kind.message(0, number), "message {number} is another");
            assert!(last.is_none_or(|last| last < number), "{number} comes after {last:?}");
            last = Some(number);
        }
    });
    while joined.remaining() > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut sender = Peer::new(&stage.context(rng), types.0, fork(rng));
    if rng.chance(2) {
        sender.set(CONFLATE, 1);
    }
    sender.set(SNDHWM, 0);
    sender.bind_or_connect(&endpoint, false);
    if types.0 == SocketType::Pub || stage.lossy {
        // Its subscription has arrived, and no message is lost from now on.
        world::with(|world| world.kernel.faults.stop_losses());
        std::thread::sleep(Duration::from_secs(60));
    }
    for number in 0..count {
        sender.send(&kind.message(0, number)).unwrap_or_else(|error| panic!("{error}"));
    }
    receiver.join().unwrap();
    sender.set(LINGER, 0);
}

/// A sender without a peer accepts exactly as many messages as its high-water mark. After the peer
/// connects, all of them arrive.
pub(super) fn bounds(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_streams();
    let endpoint = stage.endpoint();
    let kind = stage.kind;
    let mark = rng.spread(1, 200) as i32;
    let sender_type = *rng.pick(&[SocketType::Push, SocketType::Dealer]);
    let mut sender = Peer::new(&stage.context(rng), sender_type, fork(rng));
    sender.set(SNDHWM, mark);
    sender.socket.connect(&endpoint).unwrap();
    let mut taken = 0;
    loop {
        match sender.send_dontwait(&kind.message(0, taken)) {
            Ok(()) => taken += 1,
            Err(Error::Again) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(taken < 2 * mark as u32 + 10, "{taken} messages with a high-water mark of {mark}");
    }
    assert_eq!(taken, mark as u32, "messages for a peer that is not there");
    if rng.chance(2) {
        std::thread::sleep(Duration::from_micros(rng.spread(10, 1_000_000)));
    }
    assert_eq!(sender.send_dontwait(&kind.message(0, taken)), Err(Error::Again));
    let receiver_type = if sender_type == SocketType::Push { SocketType::Pull } else { SocketType::Dealer };
    let mut receiver = Peer::new(&stage.context(rng), receiver_type, fork(rng));
    let ledger = stage.ledger();
    world::with(|world| world.kernel.faults.stop_losses());
    receiver.bind_or_connect(&endpoint, true);
    for _ in 0..taken {
        let parts = receiver.recv().unwrap_or_else(|error| panic!("{error}"));
        ledger.record(0, &parts);
    }
    ledger.check_complete(&[(0, taken)]);
    receiver.set(LINGER, 0);
    sender.set(LINGER, 0);
}

/// Messages in both directions through shared memory, which often fills up. No connection is lost.
pub(super) fn memory(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_ipc();
    world::with(|world| {
        world.kernel.faults.stop_losses();
        world.kernel.faults.no_memory = 0;
    });
    let kind = if rng.chance(2) { stage.kind.of_bulk() } else { stage.kind.of_short_messages() };
    let ledger = stage.ledger_of(kind);
    let mut sent = Vec::new();
    let mut handles = Vec::new();
    let stays = rng.chance(2);
    let (first, second) =
        *rng.pick(&[(SocketType::Push, SocketType::Pull), (SocketType::Dealer, SocketType::Dealer)]);
    for sender in 0..rng.between(1, 2) as u32 {
        let endpoint = stage.endpoint();
        let count = kind.count_many(rng);
        sent.push((sender, count));
        let missing = Countdown::new(1);
        for (socket_type, sends) in [(first, true), (second, false)] {
            let (context, mut rng) = (stage.context(rng), fork(rng));
            let (endpoint, ledger, missing) = (endpoint.clone(), ledger.clone(), missing.clone());
            handles.push(spawn("memory", move || {
                let mut peer = Peer::new(&context, socket_type, fork(&mut rng));
                peer.bind_or_connect(&endpoint, !sends);
                for number in 0..count {
                    if sends {
                        peer.send(&kind.message(sender, number)).unwrap_or_else(|error| panic!("{error}"));
                    } else {
                        let parts = peer.recv().unwrap_or_else(|error| panic!("{error}"));
                        ledger.record(sender, &parts);
                    }
                }
                // All messages arrive, though the sender makes no further call.
                if !sends {
                    missing.count_down();
                }
                while stays && missing.remaining() > 0 {
                    std::thread::sleep(Duration::from_millis(100));
                }
            }));
        }
    }
    join(handles);
    ledger.check_complete(&sent);
}

/// Senders that wait for room before each message. Their peers have room for a few messages. Each
/// sender is notified of new room, over any transport.
pub(super) fn room(stage: &mut Scenario, rng: &mut Rng) {
    exchange(stage, rng, |peer, sends| {
        if sends {
            peer.always_poll();
        }
    });
}

/// Each program is an event loop: one task waits for ZMQ_FD while another task polls the same
/// socket. The first task must be notified of new room and of new messages in spite of the polls.
pub(super) fn tasks(stage: &mut Scenario, rng: &mut Rng) {
    exchange(stage, rng, |peer, _| peer.run_two_tasks());
}

/// Sends messages over pairs of sockets that have room for a few messages. `prepare` gets each
/// peer, and true if the peer sends.
fn exchange(stage: &mut Scenario, rng: &mut Rng, prepare: fn(&mut Peer, bool)) {
    stage.stop_losses();
    let kind = if rng.chance(2) { stage.kind.of_bulk() } else { stage.kind.of_short_messages() };
    let ledger = stage.ledger_of(kind);
    let (first, second) = *rng.pick(&[
        (SocketType::Push, SocketType::Pull),
        (SocketType::Dealer, SocketType::Dealer),
        (SocketType::Pair, SocketType::Pair),
    ]);
    let mut sent = Vec::new();
    let mut handles = Vec::new();
    for sender in 0..rng.between(1, 3) as u32 {
        let endpoint = stage.endpoint();
        let count = kind.count_many(rng).min(400);
        sent.push((sender, count));
        let missing = Countdown::new(1);
        for (socket_type, sends) in [(first, true), (second, false)] {
            let (context, mut rng) = (stage.context(rng), fork(rng));
            let (endpoint, ledger, missing) = (endpoint.clone(), ledger.clone(), missing.clone());
            handles.push(spawn("room", move || {
                let mut peer = Peer::new(&context, socket_type, fork(&mut rng));
                for option in [SNDHWM, RCVHWM] {
                    peer.set(option, rng.between(1, 3) as i32);
                }
                prepare(&mut peer, sends);
                peer.bind_or_connect(&endpoint, !sends);
                for number in 0..count {
                    if sends {
                        peer.send(&kind.message(sender, number)).unwrap_or_else(|error| panic!("{error}"));
                    } else {
                        let parts = peer.recv().unwrap_or_else(|error| panic!("{error}"));
                        ledger.record(sender, &parts);
                    }
                }
                if !sends {
                    missing.count_down();
                }
                // A PAIR that closes discards the messages that it has not received.
                while sends && missing.remaining() > 0 {
                    std::thread::sleep(Duration::from_millis(100));
                }
            }));
        }
    }
    join(handles);
    ledger.check_complete(&sent);
}

/// Sockets that send and receive until their context ends.
pub(super) fn terminate(stage: &mut Scenario, rng: &mut Rng) {
    let pairs = [
        (SocketType::Push, SocketType::Pull),
        (SocketType::Pub, SocketType::Sub),
        (SocketType::Dealer, SocketType::Router),
        (SocketType::Req, SocketType::Rep),
        (SocketType::Pair, SocketType::Pair),
    ];
    let mut handles = Vec::new();
    for _ in 0..rng.between(1, 4) {
        let endpoint = stage.endpoint();
        let (first, second) = *rng.pick(&pairs);
        for (socket_type, binds) in [(first, true), (second, false)] {
            let (context, mut rng) = (stage.context(rng), fork(rng));
            let (endpoint, kind) = (endpoint.clone(), stage.kind);
            handles.push(spawn("worker", move || {
                let Some(mut peer) = Peer::try_new(&context, socket_type, fork(&mut rng)) else { return };
                peer.set(LINGER, rng.spread(1, 2000) as i32);
                peer.set(SNDTIMEO, 20);
                if socket_type == SocketType::Sub {
                    peer.set_bytes(SUBSCRIBE, b"");
                }
                peer.bind_or_connect(&endpoint, binds);
                let sends = !matches!(socket_type, SocketType::Pull | SocketType::Sub | SocketType::Router);
                let receives = !matches!(socket_type, SocketType::Push | SocketType::Pub);
                for number in 0.. {
                    let outcome = match sends && (!receives || number % 2 == 0) {
                        true => peer.try_send(&kind.message(0, number)),
                        // Without a timeout, or with a short one.
                        false if rng.chance(2) && !sends => peer.recv().map(drop),
                        false => peer.try_recv().map(drop),
                    };
                    match outcome {
                        // Without a high-water mark, the sender would fill all memory.
                        Ok(()) if number % 64 == 63 => peer.sleep_briefly(),
                        Ok(()) => {}
                        Err(Error::Again | Error::State) => peer.sleep_briefly(),
                        Err(Error::Terminated) => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            }));
        }
    }
    std::thread::sleep(Duration::from_micros(rng.spread(10, 3_000_000)));
    let start = world::current_time();
    let patience = rng.chance(2).then(|| Duration::from_millis(rng.spread(1, 500)));
    for context in std::mem::take(&mut stage.contexts) {
        // The context ends in time if it drops the remaining messages, or after all are sent.
        // Sockets in use are asked to close, and the call is repeated.
        let mut calls = 0;
        while let Err(error) = context.terminate_within(patience) {
            let is_again = error == Error::Again && patience.is_some();
            assert!(error == Error::Interrupted || is_again, "terminate: {error}");
            calls += u32::from(is_again);
            assert!(calls < 10_000, "a context does not end within {patience:?}");
        }
    }
    let took = Duration::from_nanos(world::current_time() - start);
    join(handles);
    // The longest linger, plus the time in which the connections of each context end in order.
    let stalls = world::with(|world| world.kernel.faults.stall > 0).unwrap_or(false);
    assert!(stalls || took < Duration::from_secs(30), "terminate takes {took:?}");
}
