//! Senders that fall silent where several rules interact: their last messages arrive, although they
//! make no further call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tautline_core::{Error, SocketType};

use super::peer::{
    HEARTBEAT_IVL, HEARTBEAT_TIMEOUT, LINGER, MANDATORY, Peer, RCVHWM, ROUTING_ID, SNDHWM, SNDTIMEO,
    SUBSCRIBE,
};
use super::traffic::Ledger;
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

/// A ROUTER that sends to many DEALER, now and then several messages in a row to the same one, and
/// answers their questions in between. After each burst it makes no call until all is received.
pub(super) fn answers(stage: &mut Scenario, rng: &mut Rng) {
    stage.stop_losses();
    let endpoint = stage.endpoint();
    let kind = stage.kind.of_at_most(*rng.pick(&[40, 300, 3_000]));
    let clients = rng.between(3, 14) as u32;
    let ledger = Arc::new(Ledger::new(kind, false, true));
    let heard: Arc<Vec<AtomicU64>> = Arc::new((0..clients).map(|_| AtomicU64::new(0)).collect());
    let busy = Countdown::new(1);
    let asks = *rng.pick(&[1, 2, 4, 20]);
    let mut handles = Vec::new();
    for client in 0..clients {
        let (context, mut rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        let (ledger, heard, busy) = (ledger.clone(), heard.clone(), busy.clone());
        handles.push(spawn("asks", move || {
            let mut peer = Peer::new(&context, SocketType::Dealer, fork(&mut rng));
            peer.set_bytes(ROUTING_ID, format!("client {client}").as_bytes());
            peer.set(SNDTIMEO, 1);
            peer.limit_pings();
            peer.bind_or_connect(&endpoint, false);
            peer.set_receive_timeout(*rng.pick(&[3, 300]));
            let ask = |peer: &mut Peer| match peer.try_send(&[client.to_be_bytes().to_vec()]) {
                Ok(()) | Err(Error::Again) => {}
                Err(error) => panic!("{error}"),
            };
            ask(&mut peer);
            while busy.remaining() > 0 {
                if let Ok(parts) = peer.recv() {
                    ledger.record(client, &parts);
                    heard[client as usize].fetch_add(1, SeqCst);
                    if rng.chance(asks) {
                        ask(&mut peer);
                    }
                }
            }
            peer.set(LINGER, 0);
        }));
    }
    let mut router = Peer::new(&stage.context(rng), SocketType::Router, fork(rng));
    router.set(MANDATORY, 1);
    router.set(SNDHWM, 0);
    router.limit_pings();
    router.bind_or_connect(&endpoint, true);
    let mut known: Vec<u32> = Vec::new();
    let mut sent = vec![0; clients as usize];
    for _ in 0..rng.between(1, 12) {
        let mut left = rng.spread(1, 150);
        let mut to = 0;
        while left > 0 {
            left -= 1;
            // A question, possibly the first of its sender. The ROUTER either answers it or only
            // receives it.
            let asked = if known.is_empty() { Some(router.recv()) } else { None };
            let asked = asked.or_else(|| rng.chance(6).then(|| router.try_recv()));
            match asked {
                Some(Ok(parts)) => {
                    let client = u32::from_be_bytes(*parts[1].first_chunk().expect("a client's number"));
                    if !known.contains(&client) {
                        known.push(client);
                    }
                    to = client;
                    if rng.chance(4) {
                        left = rng.below(4);
                    }
                }
                Some(Err(Error::Again)) | None if rng.chance(3) => to = *rng.pick(&known),
                Some(Err(Error::Again)) | None => {}
                Some(Err(error)) => panic!("{error}"),
            }
            if !known.contains(&to) {
                to = *rng.pick(&known);
            }
            let number = &mut sent[to as usize];
            let mut parts = kind.message(to, *number);
            parts.insert(0, format!("client {to}").into_bytes());
            router.send_dontwait(&parts).unwrap_or_else(|error| panic!("to {to}: {error}"));
            *number += 1;
        }
        let is_heard = || heard.iter().zip(&sent).all(|(heard, sent)| heard.load(SeqCst) == u64::from(*sent));
        while !is_heard() {
            std::thread::sleep(Duration::from_micros(rng.spread(100, 500_000)));
        }
        world::progress();
        std::thread::sleep(Duration::from_micros(rng.spread(1, 100_000)));
    }
    busy.count_down();
    join(handles);
    router.set(LINGER, 0);
}

/// A PUB that sends at full speed while subscribers join without its knowledge. Exactly the
/// messages that it counts as sent arrive, without a further call, also at slow subscribers.
pub(super) fn joiners(stage: &mut Scenario, rng: &mut Rng) {
    /// Longer than the delivery of any message.
    const LONG: Duration = Duration::from_secs(60);
    stage.stop_losses();
    let endpoint = stage.endpoint();
    let kind = stage.kind.of_at_most(*rng.pick(&[40, 3_000, 9_000])).of_one_part();
    let subscribers = rng.between(1, 6) as u32;
    let ledgers: Vec<Arc<Ledger>> =
        (0..subscribers).map(|_| Arc::new(Ledger::new(kind, true, true))).collect();
    let (heard, busy) = (Arc::new(AtomicU64::new(0)), Countdown::new(1));
    let mut handles = Vec::new();
    for subscriber in 0..subscribers {
        let (context, mut rng, endpoint) = (stage.context(rng), fork(rng), endpoint.clone());
        let (ledger, heard, busy) = (ledgers[subscriber as usize].clone(), heard.clone(), busy.clone());
        handles.push(spawn("joins", move || {
            std::thread::sleep(Duration::from_micros(rng.spread(10, 300_000)));
            let mut peer = Peer::new(&context, SocketType::Sub, fork(&mut rng));
            peer.set_bytes(SUBSCRIBE, b"");
            peer.limit_pings();
            peer.bind_or_connect(&endpoint, false);
            peer.set_receive_timeout(*rng.pick(&[3, 300]));
            let is_slow = rng.chance(3);
            while busy.remaining() > 0 {
                if let Ok(parts) = peer.recv() {
                    ledger.record(subscriber, &parts);
                    heard.fetch_add(1, SeqCst);
                }
                if is_slow && rng.chance(4) {
                    peer.sleep_briefly();
                }
            }
        }));
    }
    let mut publisher = Peer::new(&stage.context(rng), SocketType::Pub, fork(rng));
    publisher.set(LINGER, 0);
    publisher.limit_pings();
    publisher.bind_or_connect(&endpoint, true);
    let mut sent = 0;
    for _ in 0..rng.between(2, 10) {
        let mut left = rng.spread(1, 300);
        // The wait ends soon after one more subscriber has joined, for which each message counts
        // once more.
        let mut awaits = rng.chance(2);
        if awaits {
            left = 1000;
        }
        let mut counted = (publisher.statistic(0), u64::MAX);
        while left > 0 {
            left -= 1;
            publisher.send_dontwait(&kind.message(0, sent)).unwrap_or_else(|error| panic!("{error}"));
            sent += 1;
            if awaits {
                let now = publisher.statistic(0);
                let peers = now - counted.0;
                if peers > counted.1 {
                    (awaits, left) = (false, rng.below(4));
                }
                counted = (now, peers);
            }
        }
        std::thread::sleep(LONG);
        let came = heard.load(SeqCst);
        assert_eq!(
            came,
            publisher.statistic(0),
            "received messages, and sent messages in the statistics of the publisher"
        );
        world::progress();
        std::thread::sleep(Duration::from_micros(rng.spread(1, 100_000)));
    }
    busy.count_down();
    join(handles);
}

/// Two DEALER over ipc that both send until their queues are full, without reading. Then one
/// receives all messages, and after that the other: each can read while the other does not. One
/// direction may use shared memory without the other.
pub(super) fn crossed(stage: &mut Scenario, rng: &mut Rng) {
    stage.over_ipc();
    stage.stop_losses();
    world::with(|world| world.kernel.faults.no_memory = *rng.pick(&[0, 2, 2]));
    let endpoint = stage.endpoint();
    let kind = stage.kind.of_at_most(70_000);
    let ledger = stage.ledger_of(kind);
    let binds = rng.chance(2);
    let mut peers = [binds, !binds].map(|binds| {
        let mut peer = Peer::new(&stage.context(rng), SocketType::Dealer, fork(rng));
        for option in [SNDHWM, RCVHWM] {
            peer.set(option, rng.between(1, 5) as i32);
        }
        peer.bind_or_connect(&endpoint, binds);
        peer
    });
    let mut sent = [0_u32; 2];
    for _ in 0..rng.between(1, 6) {
        let before = sent;
        let most = kind.count_many(rng);
        // The senders send one after the other, or in turns, until both have been refused for long.
        let mut refused = [0, 0];
        while refused
            .iter()
            .zip(sent.iter().zip(before))
            .any(|(refused, (sent, before))| *refused < 5 && sent - before < most)
        {
            let own = rng.below(2) as usize;
            if refused[own] >= 5 || sent[own] - before[own] >= most {
                continue;
            }
            match peers[own].send_dontwait(&kind.message(own as u32, sent[own])) {
                Ok(()) => (sent[own], refused[own]) = (sent[own] + 1, 0),
                Err(Error::Again) => {
                    refused[own] += 1;
                    std::thread::sleep(Duration::from_millis(rng.spread(1, 2_000)));
                }
                Err(error) => panic!("{error}"),
            }
        }
        let first = rng.below(2) as usize;
        for own in [first, 1 - first] {
            for _ in before[1 - own]..sent[1 - own] {
                let parts = peers[own].recv().unwrap_or_else(|error| panic!("{error}"));
                ledger.record(own as u32, &parts);
            }
        }
    }
    ledger.check_complete(&[(0, sent[0]), (1, sent[1])]);
    peers.iter_mut().for_each(|peer| peer.set(LINGER, 0));
}

/// A DEALER that sends corked batches to another. Both send PINGs every few milliseconds, which the
/// I/O threads answer. After each batch the sender makes no call until all is received.
pub(super) fn batches(stage: &mut Scenario, rng: &mut Rng) {
    stage.stop_losses();
    stage.over_streams();
    let endpoint = stage.endpoint();
    let kind = stage.kind.of_at_most(9_000);
    let ledger = Arc::new(Ledger::new(kind, false, true));
    let (heard, busy) = (Arc::new(AtomicU64::new(0)), Countdown::new(1));
    let binds = rng.chance(2);
    let interval = rng.between(1, 4) as i32;
    let [mut sender, mut receiver] = [binds, !binds].map(|binds| {
        let mut peer = Peer::new(&stage.context(rng), SocketType::Dealer, fork(rng));
        peer.set(SNDHWM, 0);
        peer.set(RCVHWM, 0);
        peer.set(HEARTBEAT_IVL, interval);
        peer.set(HEARTBEAT_TIMEOUT, 400_000);
        peer.bind_or_connect(&endpoint, binds);
        peer
    });
    receiver.set_receive_timeout(*rng.pick(&[3, 300]));
    let (hears, done, entered) = (heard.clone(), busy.clone(), ledger.clone());
    let hearer = spawn("hears", move || {
        while done.remaining() > 0 {
            if let Ok(parts) = receiver.recv() {
                entered.record(0, &parts);
                hears.fetch_add(1, SeqCst);
            }
        }
        receiver.set(LINGER, 0);
    });
    // From the first message on there is a peer.
    sender.send(&kind.message(0, 0)).unwrap_or_else(|error| panic!("{error}"));
    let mut sent = 1;
    for _ in 0..rng.between(10, 60) {
        let cork = sender.socket.cork();
        for _ in 0..rng.between(1, 6) {
            sender.send_dontwait(&kind.message(0, sent)).unwrap_or_else(|error| panic!("{error}"));
            sent += 1;
        }
        drop(cork);
        match rng.chance(2) {
            true => sender.socket.flush(),
            false => sender.socket.end_batch(),
        }
        while heard.load(SeqCst) < u64::from(sent) {
            std::thread::sleep(Duration::from_micros(rng.spread(100, 500_000)));
        }
        world::progress();
        std::thread::sleep(Duration::from_micros(rng.spread(1, 10_000)));
    }
    assert_eq!(sender.statistic(0), sent.into(), "sent messages in the statistics of the sender");
    busy.count_down();
    join(vec![hearer]);
    ledger.check_complete(&[(0, sent)]);
    sender.set(LINGER, 0);
}
