//! Senders that send a burst, and then make no call until all of it has arrived. The last messages
//! must not wait for a call that may never come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tautline_core::{Error, SocketType};

use super::patterns::XPUB_NODROP;
use super::peer::{HEARTBEAT_IVL, HEARTBEAT_TIMEOUT, LINGER, Peer, RCVHWM, SNDHWM, SUBSCRIBE};
use super::traffic::{Ledger, MessageProfile, Parts};
use super::{Countdown, Scenario, event_checks, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

/// A sender and one or many receivers. After each burst the sender makes no call until all of it is
/// received. The first bursts may precede the receivers. Published messages count for the
/// subscribers that are known at that time.
pub(super) fn bursts(stage: &mut Scenario, rng: &mut Rng) {
    stage.stop_losses();
    let kind = stage.kind.of_at_most(70_000);
    let (first, second) = *rng.pick(&[
        (SocketType::Push, SocketType::Pull),
        (SocketType::Dealer, SocketType::Dealer),
        (SocketType::Pair, SocketType::Pair),
        (SocketType::XPub, SocketType::Sub),
        (SocketType::XPub, SocketType::Sub),
    ]);
    let publishes = first == SocketType::XPub;
    let receivers = match first {
        SocketType::Pair => 1,
        _ if rng.chance(3) => rng.between(5, 12) as u32,
        _ => rng.between(1, 4) as u32,
    };
    // A publisher with several endpoints, or a sender to which peers connect.
    let connects = receivers == 1 || rng.chance(2);
    let endpoints: Vec<String> =
        (0..if connects { receivers } else { 1 }).map(|_| stage.endpoint()).collect();
    let ledgers: Vec<Arc<Ledger>> = (0..if publishes { receivers } else { 1 })
        .map(|_| Arc::new(Ledger::new(kind, publishes, true)))
        .collect();
    let heard: Arc<Vec<AtomicU64>> = Arc::new((0..receivers).map(|_| AtomicU64::new(0)).collect());
    let busy = Countdown::new(1);
    let mut handles = Vec::new();
    for receiver in 0..receivers {
        let (context, mut rng) = (stage.context(rng), fork(rng));
        let endpoint = endpoints[receiver as usize % endpoints.len()].clone();
        let ledger = ledgers[receiver as usize % ledgers.len()].clone();
        let (heard, busy) = (heard.clone(), busy.clone());
        handles.push(spawn("hears", move || {
            if rng.chance(3) {
                std::thread::sleep(Duration::from_micros(rng.spread(10, 3_000_000)));
            }
            let mut peer = Peer::new(&context, second, fork(&mut rng));
            if publishes {
                peer.set_bytes(SUBSCRIBE, b"");
                // Announces this receiver.
                peer.set_bytes(SUBSCRIBE, &[0xff, receiver as u8]);
            }
            peer.bind_or_connect(&endpoint, connects);
            peer.set_receive_timeout(*rng.pick(&[3, 300]));
            while busy.remaining() > 0 {
                if let Ok(parts) = peer.recv() {
                    let (_, of_all) = ledger.record(receiver, &parts);
                    let (own, number) = (&heard[receiver as usize], MessageProfile::number(&parts));
                    own.store(if publishes { u64::from(number) + 1 } else { of_all.into() }, SeqCst);
                }
            }
            peer.set(LINGER, 0);
        }));
    }
    let mut sender = Peer::new(&stage.context(rng), first, fork(rng));
    if publishes {
        // No message is dropped, and every subscription is reported (XPUB_VERBOSE).
        match rng.chance(2) {
            true => sender.set(XPUB_NODROP, 1),
            false => sender.set(SNDHWM, 0),
        }
        sender.set(40, 1);
    }
    endpoints.iter().for_each(|endpoint| sender.bind_or_connect(endpoint, !connects));
    let mut known = Vec::new();
    let first_ones = if publishes { rng.between(1, receivers.into()) as usize } else { 0 };
    while known.len() < first_ones {
        known.extend(subscriber(sender.recv()));
    }
    let most = u64::from(kind.count(rng, 60));
    let mut sent = 0;
    for _ in 0..rng.between(1, 12) {
        let mut left = rng.spread(1, most);
        // The wait ends soon after one more subscriber has joined.
        let mut awaits = publishes && known.len() < receivers as usize && rng.chance(2);
        if awaits {
            left = 300;
        }
        while left > 0 {
            left -= 1;
            if publishes && (awaits || rng.chance(4)) {
                let before = known.len();
                known.extend(subscriber(sender.try_recv()));
                if awaits && known.len() > before {
                    (awaits, left) = (false, rng.below(4));
                }
            }
            sender.send(&kind.message(0, sent)).unwrap_or_else(|error| panic!("{error}"));
            sent += 1;
            if rng.chance(8) {
                std::thread::sleep(Duration::from_micros(rng.spread(1, 2000)));
            }
        }
        let all = |heard: &AtomicU64| heard.load(SeqCst) == sent.into();
        let is_heard = || match publishes {
            true => known.iter().all(|at| all(&heard[*at])),
            false => heard.iter().any(all),
        };
        while !is_heard() {
            std::thread::sleep(Duration::from_micros(rng.spread(100, 500_000)));
        }
        world::progress();
        std::thread::sleep(Duration::from_micros(rng.spread(1, 100_000)));
    }
    if !publishes {
        assert_eq!(sender.statistic(0), sent.into(), "sent messages in the statistics of the sender");
    }
    busy.count_down();
    join(handles);
    ledgers.iter().for_each(|ledger| ledger.check_complete(&[(0, sent)]));
    sender.set(LINGER, 0);
}

/// A receiver without a high-water mark that makes no call until all is sent. The library still
/// reads the messages from the network, so the sender is not held up.
pub(super) fn ahead(stage: &mut Scenario, rng: &mut Rng) {
    stage.stop_losses();
    let endpoint = stage.endpoint();
    let kind = if rng.chance(2) { stage.kind.of_bulk() } else { stage.kind };
    let ledger = stage.ledger_of(kind);
    let (first, second) = *rng.pick(&[
        (SocketType::Push, SocketType::Pull),
        (SocketType::Dealer, SocketType::Dealer),
        (SocketType::Pair, SocketType::Pair),
    ]);
    let count = kind.count(rng, 400);
    let most = rng.spread(1, 20) as u32;
    let (sending, hearing) = (Countdown::new(1), Countdown::new(1));
    let (context, sender_rng) = (stage.context(rng), fork(rng));
    let (is_sent, is_heard, at) = (sending.clone(), hearing.clone(), endpoint.clone());
    let sender_binds = rng.chance(2);
    let sender = spawn("sends", move || {
        let mut peer = Peer::new(&context, first, sender_rng);
        peer.bind_or_connect(&at, sender_binds);
        for number in 0..count {
            peer.send(&kind.message(0, number)).unwrap_or_else(|error| panic!("{error}"));
        }
        is_sent.count_down();
        while is_heard.remaining() > 0 {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let mut peer = Peer::new(&stage.context(rng), second, fork(rng));
    peer.set(RCVHWM, 0);
    peer.bind_or_connect(&endpoint, !sender_binds);
    for number in 0..count {
        while number >= most && sending.remaining() > 0 {
            std::thread::sleep(Duration::from_micros(rng.spread(10, 500_000)));
        }
        ledger.record(0, &peer.recv().unwrap_or_else(|error| panic!("{error}")));
    }
    hearing.count_down();
    join(vec![sender]);
    ledger.check_complete(&[(0, count)]);
}

/// Returns the subscriber that a message to an XPUB announces.
fn subscriber(outcome: Result<Parts, Error>) -> Option<usize> {
    match outcome {
        Ok(parts) => (parts[0].first_chunk() == Some(&[1, 0xff])).then(|| parts[0][2].into()),
        Err(Error::Again) => None,
        Err(error) => panic!("{error}"),
    }
}

/// A PUSH that has a message to send exactly when it sends a PING, and no message in between. Its
/// peer then has a PING to send, as well. No connection is lost.
pub(super) fn alive(stage: &mut Scenario, rng: &mut Rng) {
    /// Longer than any delay of a simulation.
    const INTERVAL: u64 = 20_000;
    stage.stop_losses();
    if stage.transport() == "inproc" {
        stage.over_tcp();
    }
    let endpoint = stage.endpoint();
    let (kind, ledger) = (stage.kind, stage.ledger());
    let busy = Countdown::new(1);
    let begun = Arc::new(AtomicU64::new(0));
    let peers = [(SocketType::Pull, true), (SocketType::Push, false)].map(|(socket_type, binds)| {
        let mut peer = Peer::new(&stage.context(rng), socket_type, fork(rng));
        // With a high-water mark, an answer may have to wait.
        peer.set(RCVHWM, 0);
        peer.set(HEARTBEAT_IVL, if binds && rng.chance(2) { 0 } else { INTERVAL as i32 });
        peer.set(HEARTBEAT_TIMEOUT, INTERVAL as i32 / 2);
        peer.socket.observe(event_checks::steady(begun.clone()));
        peer.bind_or_connect(&endpoint, binds);
        peer
    });
    let [mut pull, mut push] = peers;
    pull.set_receive_timeout(1000);
    let (heard, done) = (ledger.clone(), busy.clone());
    let receiver = spawn("pull", move || {
        while done.remaining() > 0 {
            if let Ok(parts) = pull.recv() {
                heard.record(0, &parts);
            }
        }
        pull.set(LINGER, 0);
    });
    while begun.load(SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let count = kind.count(rng, 20);
    for number in 0..count {
        let (now, interval) = (world::current_time(), INTERVAL * 1_000_000);
        let next = interval - (now - begun.load(SeqCst)) % interval;
        std::thread::sleep(Duration::from_nanos(next.saturating_sub(rng.spread(1, 60_000))));
        push.send(&kind.message(0, number)).unwrap_or_else(|error| panic!("{error}"));
    }
    std::thread::sleep(Duration::from_secs(60));
    // From now on a connection may end.
    begun.store(u64::MAX, SeqCst);
    busy.count_down();
    receiver.join().unwrap();
    ledger.check_complete(&[(0, count)]);
    push.set(LINGER, 0);
}
