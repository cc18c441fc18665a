//! Subscriptions: large numbers of them, program-controlled ones, inverted ones; and groups.

use std::collections::BTreeSet;
use std::time::Duration;

use tautline_core::{Error, Flags, Message, SocketType};

use super::peer::{LINGER, Peer, RCVHWM, SNDHWM, SUBSCRIBE, UNSUBSCRIBE, receive};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const XPUB_VERBOSE: i32 = 40;
const XPUB_MANUAL: i32 = 71;
const XPUB_WELCOME_MSG: i32 = 72;
const INVERT_MATCHING: i32 = 74;
const XPUB_VERBOSER: i32 = 78;
const XPUB_MANUAL_LAST_VALUE: i32 = 98;
const ONLY_FIRST_SUBSCRIBE: i32 = 108;
const XSUB_VERBOSE_UNSUBSCRIBE: i32 = 115;

/// Subscribes or unsubscribes in the way of the socket type.
fn subscribe(peer: &mut Peer, topic: &[u8], subscribes: bool) {
    if peer.socket.socket_type() == SocketType::XSub {
        let message = [&[u8::from(subscribes)], topic].concat();
        peer.send(&[message]).unwrap();
    } else {
        peer.set_bytes(if subscribes { SUBSCRIBE } else { UNSUBSCRIBE }, topic);
    }
}

/// Subscribers with hundreds of topics, many of which are prefixes of others. Each must receive
/// exactly the messages that match its list of topics.
pub(super) fn catalogue(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    world::with(|world| world.kernel.faults.stop_losses());
    let inverts = rng.chance(4);
    let topics = words(rng, 1500);
    let probes: Vec<Vec<u8>> = (0..rng.between(1, 200))
        .map(|_| {
            let mut probe = rng.pick(&topics).clone();
            if rng.chance(2) {
                probe.push(rng.below(4) as u8);
            }
            probe
        })
        .collect();
    let count = rng.between(1, 4) as usize;
    let (ready, goes) = (Countdown::new(count), Countdown::new(1));
    let mut handles = Vec::new();
    for _ in 0..count {
        let (context, mut rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        let (topics, probes, ready, goes) = (topics.clone(), probes.clone(), ready.clone(), goes.clone());
        handles.push(spawn("sub", move || {
            let kind = *rng.pick(&[SocketType::Sub, SocketType::XSub]);
            let mut peer = Peer::new(&context, kind, fork(&mut rng));
            peer.set(RCVHWM, 0);
            peer.set(SNDHWM, 0);
            peer.set(INVERT_MATCHING, inverts.into());
            peer.set(LINGER, 0);
            if rng.chance(2) {
                peer.bind_or_connect(&endpoint, false);
            }
            let mut own: Vec<Vec<u8>> = Vec::new();
            for _ in 0..rng.spread(1, 1000) {
                let topic = rng.pick(&topics).clone();
                subscribe(&mut peer, &topic, true);
                own.push(topic);
                if rng.chance(4) {
                    let topic = own.swap_remove(rng.below(own.len() as u64) as usize);
                    subscribe(&mut peer, &topic, false);
                }
            }
            if peer.socket.option(32, &mut [0; 256]) == Ok(1) {
                peer.bind_or_connect(&endpoint, false);
            }
            ready.count_down();
            while goes.remaining() > 0 {
                std::thread::sleep(Duration::from_millis(100));
            }
            peer.set_receive_timeout(20_000);
            let mut heard = Vec::new();
            loop {
                match peer.recv() {
                    Ok(parts) => heard.push(parts[0].clone()),
                    Err(Error::Again) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            let wants = |probe: &&Vec<u8>| own.iter().any(|topic| probe.starts_with(topic)) != inverts;
            let wanted: Vec<&Vec<u8>> = probes.iter().filter(wants).collect();
            assert!(heard.iter().eq(wanted.iter().copied()), "{} are heard of {}", heard.len(), wanted.len());
        }));
    }
    let kind = *rng.pick(&[SocketType::Pub, SocketType::XPub]);
    let mut publisher = Peer::new(&stage.context(rng), kind, fork(rng));
    publisher.set(SNDHWM, 0);
    publisher.set(RCVHWM, 0);
    publisher.set(INVERT_MATCHING, inverts.into());
    let option = *rng.pick(&[XPUB_VERBOSE, XPUB_VERBOSER, ONLY_FIRST_SUBSCRIBE]);
    publisher.set(option, 1);
    publisher.bind_or_connect(&endpoint, true);
    while ready.remaining() > 0 {
        std::thread::sleep(Duration::from_millis(500));
        while kind == SocketType::XPub && publisher.try_recv().is_ok() {}
    }
    // All subscriptions have arrived.
    for _ in 0..60 {
        std::thread::sleep(Duration::from_secs(1));
        while kind == SocketType::XPub && publisher.try_recv().is_ok() {}
    }
    for probe in &probes {
        publisher.send(std::slice::from_ref(probe)).unwrap();
    }
    goes.count_down();
    join(handles);
}

/// Returns words of few letters, so that many are prefixes of others.
fn words(rng: &mut Rng, most: u64) -> Vec<Vec<u8>> {
    let letters = rng.between(1, 6);
    (0..rng.spread(2, most))
        .map(|_| (0..rng.between(1, 9)).map(|_| rng.below(letters) as u8).collect())
        .collect()
}

/// An XPUB whose program decides what each subscriber gets (ZMQ_XPUB_MANUAL), and greets them.
pub(super) fn manual(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    world::with(|world| world.kernel.faults.stop_losses());
    let last_value = rng.chance(2);
    let welcomes = rng.chance(2);
    let count = rng.between(1, 4) as u8;
    let mut publisher = Peer::new(&stage.context(rng), SocketType::XPub, fork(rng));
    publisher.set(SNDHWM, 0);
    publisher.set(RCVHWM, 0);
    publisher.set(LINGER, 60_000);
    publisher.set(if last_value { XPUB_MANUAL_LAST_VALUE } else { XPUB_MANUAL }, 1);
    if welcomes {
        publisher.set_bytes(XPUB_WELCOME_MSG, b"welcome");
    }
    publisher.bind_or_connect(&endpoint, true);
    let mut handles = Vec::new();
    for number in 0..count {
        let (context, mut rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        handles.push(spawn("sub", move || {
            let kind = *rng.pick(&[SocketType::Sub, SocketType::XSub]);
            let mut peer = Peer::new(&context, kind, fork(&mut rng));
            peer.set(RCVHWM, 0);
            peer.set(LINGER, 0);
            if kind == SocketType::XSub {
                peer.set(ONLY_FIRST_SUBSCRIBE, rng.chance(2).into());
                peer.set(XSUB_VERBOSE_UNSUBSCRIBE, rng.chance(2).into());
            }
            peer.bind_or_connect(&endpoint, false);
            if welcomes {
                subscribe(&mut peer, b"welcome", true);
                assert_eq!(peer.recv().unwrap(), [b"welcome"]);
            }
            // A SUB drops messages that it has not requested. The program turns each request into
            // "A".
            if kind == SocketType::Sub {
                subscribe(&mut peer, b"A", true);
            }
            subscribe(&mut peer, &[b'a', number], true);
            let wanted = [b'A', number];
            for _ in 0..2 {
                let parts = peer.recv().unwrap();
                assert_eq!(parts[0], wanted);
            }
            // A message for the publisher.
            if kind == SocketType::XSub {
                peer.send(&[b"a letter".to_vec(), vec![b'n', number]]).unwrap();
                subscribe(&mut peer, &[b'a', number], false);
                // Sent before the connection ends.
                peer.set(LINGER, 60_000);
            }
        }));
    }
    let (mut subscribed, mut letters, mut quiet) = (BTreeSet::new(), 0, 0);
    publisher.set_receive_timeout(1_000);
    while quiet < 30 {
        let parts = match publisher.recv() {
            Ok(parts) => parts,
            Err(error) => {
                assert_eq!(error, Error::Again);
                quiet += usize::from(subscribed.len() == usize::from(count));
                continue;
            }
        };
        match parts[0].as_slice() {
            [1, b'a', number] => {
                publisher.set_bytes(SUBSCRIBE, &[b'A', *number]);
                assert!(subscribed.insert(*number), "{number} subscribes again");
                // With ZMQ_XPUB_MANUAL_LAST_VALUE the first is for this subscriber alone.
                for _ in 0..2 {
                    publisher.send(&[vec![b'A', *number]]).unwrap();
                }
            }
            [0, b'a', number] => publisher.set_bytes(UNSUBSCRIBE, &[b'A', *number]),
            [0 | 1, ..] => {}
            b"a letter" => {
                assert_eq!(parts.len(), 2);
                letters += 1;
            }
            other => panic!("a message that was never sent: {other:?}"),
        }
    }
    assert!(letters <= usize::from(count));
    join(handles);
}

/// RADIO and DISH over streams or inproc: a DISH that joins and leaves groups receives the messages
/// of its groups.
pub(super) fn groups(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    world::with(|world| world.kernel.faults.stop_losses());
    let kind = stage.kind.of_one_part();
    let count = kind.count(rng, 60);
    let dishes = rng.between(1, 4) as usize;
    let (ready, goes) = (Countdown::new(dishes), Countdown::new(1));
    let mut handles = Vec::new();
    for _ in 0..dishes {
        let (context, mut rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        let (ready, goes) = (ready.clone(), goes.clone());
        handles.push(spawn("dish", move || {
            let mut peer = Peer::new(&context, SocketType::Dish, fork(&mut rng));
            peer.set(RCVHWM, 0);
            peer.set(LINGER, 0);
            peer.bind_or_connect(&endpoint, false);
            let mut own = BTreeSet::new();
            for _ in 0..rng.spread(1, 30) {
                let group = group(rng.below(6));
                let is_in = own.contains(&group);
                if rng.chance(3) {
                    let outcome = peer.socket.leave(group.as_bytes());
                    assert_eq!(outcome, if is_in { Ok(()) } else { Err(Error::Invalid) }, "leave {group}");
                    own.remove(&group);
                } else {
                    let outcome = peer.socket.join(group.as_bytes());
                    assert_eq!(outcome, if is_in { Err(Error::Invalid) } else { Ok(()) }, "join {group}");
                    own.insert(group);
                }
            }
            assert_eq!(peer.socket.join(&[b'g'; 300]), Err(Error::Invalid));
            ready.count_down();
            while goes.remaining() > 0 {
                std::thread::sleep(Duration::from_millis(100));
            }
            peer.set_receive_timeout(20_000);
            let mut message = Message::new();
            let mut heard = Vec::new();
            loop {
                match receive(&mut peer.socket, &mut message, Duration::from_secs(20)) {
                    Ok(()) => {
                        let number =
                            u32::from_be_bytes(*message.as_slice()[4..].first_chunk().expect("a number"));
                        assert!(
                            kind.message(0, number) == [message.as_slice()],
                            "message {number} is another"
                        );
                        assert_eq!(message.group().to_str(), Ok(group(u64::from(number) % 6).as_str()));
                        heard.push(number);
                    }
                    Err(Error::Again) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            let wanted: Vec<u32> =
                (0..count).filter(|number| own.contains(&group(u64::from(*number) % 6))).collect();
            assert_eq!(heard, wanted, "received messages of the groups {own:?}");
        }));
    }
    let mut radio = Peer::new(&stage.context(rng), SocketType::Radio, fork(rng));
    radio.set(SNDHWM, 0);
    radio.set(LINGER, 60_000);
    radio.bind_or_connect(&endpoint, true);
    assert_eq!(radio.socket.join(b"a group"), Err(Error::NotSupported));
    while ready.remaining() > 0 {
        std::thread::sleep(Duration::from_millis(500));
    }
    std::thread::sleep(Duration::from_secs(60));
    for number in 0..count {
        let mut message = Message::from_vec(kind.message(0, number).remove(0));
        message.set_group(group(u64::from(number) % 6).as_bytes());
        while let Err(error) = radio.socket.send_message(&mut message, Flags::NONE) {
            assert_eq!(error, Error::Interrupted);
        }
    }
    goes.count_down();
    join(handles);
    channel(stage, rng);
}

fn group(number: u64) -> String {
    format!("group {number}")
}

/// Two CHANNEL.
fn channel(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let kind = stage.kind.of_one_part();
    let count = kind.count(rng, 30);
    let mut ends = [true, false].map(|binds| {
        let mut peer = Peer::new(&stage.context(rng), SocketType::Channel, fork(rng));
        peer.bind_or_connect(&endpoint, binds);
        peer
    });
    for number in 0..count {
        let (from, to) = (number as usize % 2, 1 - number as usize % 2);
        ends[from].send(&kind.message(9, number)).unwrap();
        assert!(ends[to].recv().unwrap() == kind.message(9, number), "message {number} is another");
    }
}
