//! Publishers that keep their last messages, and subscribers that request missing messages. This
//! workload uses the crate `tautline`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tautline::replay::{Delivery, ReliablePub, ReliableSub, Start};
use tautline::{Context, Dealer, Error};

use super::peer::trace;
use super::{Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

/// Default high-water mark of a ring.
const RING_HWM: u32 = 250;

/// A publisher that ends and starts again at the same endpoints, some subscribers, and peers of the
/// ring that send nonsense, or request all messages and read none.
///
/// Each subscriber receives the messages of each epoch in order and once. A missing message is
/// reported as lost, and a new epoch as a restart. Each subscriber receives the last message.
pub(super) fn replays(stage: &mut Scenario, rng: &mut Rng) {
    // A PUB and a ring at inproc endpoints cannot be connected to after they have ended.
    if stage.transport() == "inproc" {
        stage.over_tcp();
    }
    // Drawn from a separate stream.
    let mut own = Rng::new(rng.clone().next(), 9);
    if own.chance(4) {
        return crowded(stage, &mut own);
    }
    let (live, ring) = (stage.endpoint(), stage.endpoint());
    let epochs = rng.between(1, 4) as u32;
    let kept = rng.spread(1, 2_000) as usize;
    let counts: Vec<u64> = (0..epochs).map(|_| rng.spread(1, 120)).collect();
    let total = *counts.last().expect("an epoch");
    let missing = Arc::new(AtomicUsize::new(0));
    let mut handles = Vec::new();
    for _ in 0..rng.between(1, 3) {
        missing.fetch_add(1, SeqCst);
        let context = Context::from_engine(stage.context(rng));
        let (live, ring, missing, mut rng) = (live.clone(), ring.clone(), missing.clone(), fork(rng));
        let begins_late = rng.chance(2);
        handles.push(spawn("subscriber", move || {
            if begins_late {
                std::thread::sleep(Duration::from_micros(rng.spread(1, 3_000_000)));
            }
            subscribe(&context, [&live, &ring], (epochs - 1, total), &mut rng);
            missing.fetch_sub(1, SeqCst);
        }));
    }
    let is_over = Arc::new(AtomicBool::new(false));
    for _ in 0..rng.between(0, 6) {
        let context = Context::from_engine(stage.context(rng));
        let (ring, is_over, rng) = (ring.clone(), is_over.clone(), fork(rng));
        handles.push(spawn("stranger", move || request_nonsense(&context, &ring, rng, &is_over)));
    }
    let context = Context::from_engine(stage.context(rng));
    for (epoch, count) in counts.iter().enumerate() {
        let is_last = epoch + 1 == counts.len();
        if is_last {
            stage.stop_losses();
        }
        let mut publisher = publisher(&context, [&live, &ring], kept, RING_HWM);
        if rng.chance(2) {
            std::thread::sleep(Duration::from_micros(rng.spread(1, 2_000_000)));
        }
        for number in 0.. {
            // The last epoch ends after each subscriber has received its last message.
            if number >= *count && (!is_last || missing.load(SeqCst) == 0) {
                break;
            }
            if number >= *count {
                std::thread::sleep(Duration::from_millis(500));
            }
            world::progress();
            let body = format!("{epoch}/{number}");
            let sent = retry(|| publisher.send(if number % 3 == 0 { "three" } else { "t" }, body.as_str()));
            assert_eq!(sent, number, "the number of a message");
            if rng.chance(6) {
                std::thread::sleep(Duration::from_micros(rng.spread(1, 300_000)));
            }
        }
        trace(|| format!("the end of epoch {epoch}"));
        if rng.chance(2) {
            let _ = publisher.socket().set_linger(Duration::ZERO);
        }
        drop(publisher);
        // A message that is unread when its connection is replaced shows the new epoch, because
        // properties belong to the connection. So the subscribers read everything before.
        for _ in 0..30 {
            std::thread::sleep(Duration::from_secs(1));
            world::progress();
        }
    }
    is_over.store(true, SeqCst);
    join(handles);
}

/// More peers than a ring has places request all messages and read none. A subscriber that comes
/// after them still receives every message.
fn crowded(stage: &mut Scenario, rng: &mut Rng) {
    stage.stop_losses();
    // Small buffers, so that the queues of the silent peers are full.
    world::with(|world| world.kernel.faults.buffer = (2_304, 8_192));
    let (live, ring) = (stage.endpoint(), stage.endpoint());
    let context = Context::from_engine(stage.context(rng));
    let mut publisher = publisher(&context, [&live, &ring], 1_000, 2);
    let count = rng.between(60, 100);
    for number in 0..count {
        retry(|| publisher.send("t", format!("{number}/{}", "x".repeat(2_000))));
    }
    let mut silent = Vec::new();
    for _ in 0..rng.between(3, 8) {
        let context = Context::from_engine(stage.context(rng));
        let mut dealer =
            Dealer::builder(&context).receive_hwm(1).linger(Duration::ZERO).connect(&ring).unwrap();
        retry(|| dealer.send_multipart([&b""[..], &[0; 8]]));
        silent.push(dealer);
    }
    std::thread::sleep(Duration::from_secs(20));
    let context = Context::from_engine(stage.context(rng));
    let mut subscriber = ReliableSub::builder(&context)
        .subscribe("")
        .start(Start::Oldest)
        .answer_timeout(Duration::from_secs(100))
        .connect(&live, &ring)
        .unwrap();
    for number in 0..count {
        let Some(delivery) = retry(|| subscriber.recv_within(Duration::from_secs(300))) else {
            panic!("silent peers keep message {number} from a subscriber");
        };
        world::progress();
        let Delivery::Message(update) = delivery else { panic!("{delivery:?}") };
        assert_eq!((update.number, update.replayed), (number, true), "the next message of the ring");
    }
}

/// Repeats interrupted calls.
fn retry<T>(mut call: impl FnMut() -> tautline::Result<T>) -> T {
    loop {
        match call() {
            Ok(value) => return value,
            Err(Error::Interrupted) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Starts a publisher. The sockets of an earlier one may hold the endpoints for a moment.
fn publisher(context: &Context, [live, ring]: [&str; 2], kept: usize, ring_hwm: u32) -> ReliablePub {
    for _ in 0..10_000 {
        let mut publisher = ReliablePub::builder(context)
            .keep(kept)
            .with_ring(|ring| ring.send_hwm(ring_hwm))
            .build()
            .unwrap();
        let bound = publisher.serve(ring).and_then(|_| publisher.bind(live));
        match bound {
            Ok(_) => return publisher,
            Err(Error::AddressInUse(..)) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the endpoints of a publisher stay in use");
}

/// Receives until `last`, the epoch and the number of the last expected message.
fn subscribe(context: &Context, [live, ring]: [&str; 2], last: (u32, u64), rng: &mut Rng) {
    let start = *rng.pick(&[Start::Live, Start::Oldest, Start::Oldest, Start::LastOfEachTopic]);
    let mut subscriber = ReliableSub::builder(context)
        .subscribe("")
        .start(start)
        .with_socket(|socket| socket.receive_hwm(if rng.chance(2) { 4 } else { 1_000 }))
        .connect(live, ring)
        .unwrap();
    // The epoch, and the next number, if they are known.
    let (mut epoch, mut next) = (None, None);
    let mut is_in_order = start != Start::LastOfEachTopic;
    loop {
        let delivery = retry(|| subscriber.recv());
        trace(|| format!("{start:?}: {delivery:?}"));
        world::progress();
        match delivery {
            Delivery::Restarted => (epoch, next, is_in_order) = (None, Some(0), true),
            Delivery::Lost { first, last } => {
                assert!(first <= last, "an empty loss from {first} to {last}");
                assert_eq!(Some(first), next.or(Some(first)), "the first lost message");
                next = Some(last + 1);
            }
            Delivery::Message(update) => {
                let body = String::from_utf8(update.body.to_vec()).expect("the body of a publisher");
                let (its_epoch, number) = body.split_once('/').expect("an epoch and a number");
                let its_epoch: u32 = its_epoch.parse().expect("an epoch");
                assert_eq!(number, update.number.to_string(), "the number of a body");
                assert!(epoch.is_none_or(|epoch| epoch == its_epoch), "epoch {its_epoch} after {epoch:?}");
                let expected = next.unwrap_or(update.number);
                // The newest message of each topic leaves gaps.
                assert!(
                    update.number == expected || !is_in_order && update.number > expected,
                    "message {} of epoch {its_epoch} comes, not {expected}",
                    update.number
                );
                (epoch, next) = (Some(its_epoch), Some(update.number + 1));
                if (its_epoch, update.number + 1) >= last {
                    return;
                }
            }
            other => panic!("{other:?}"),
        }
        if rng.chance(8) {
            std::thread::sleep(Duration::from_micros(rng.spread(1, 500_000)));
        }
    }
}

/// Sends valid and invalid requests to a ring, and reads some of the answers or none.
fn request_nonsense(context: &Context, ring: &str, mut rng: Rng, is_over: &AtomicBool) {
    let mut dealer =
        Dealer::builder(context).receive_hwm(1).send_hwm(1).linger(Duration::ZERO).connect(ring).unwrap();
    let reads = rng.chance(2);
    while !is_over.load(SeqCst) {
        let number = *rng.pick(&[0, 1, 50, u64::MAX - 2, u64::MAX - 1, u64::MAX]);
        let number = number.to_be_bytes();
        let request: Vec<&[u8]> = match rng.below(5) {
            0 => vec![b"nonsense"],
            1 => vec![b"", &number[..rng.below(8) as usize]],
            2 => vec![&number, b""],
            3 => vec![b"", &number, b"", b"more"],
            _ => vec![b"", &number],
        };
        // A ring that has ended takes no requests.
        let _ = dealer.try_send_multipart(request);
        if reads {
            let _ = dealer.try_recv_multipart();
        }
        std::thread::sleep(Duration::from_micros(rng.spread(1_000, 2_000_000)));
    }
}
