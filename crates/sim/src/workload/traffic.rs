//! Messages whose content follows from their sender and number, so that a receiver can check each
//! of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::rng::Rng;

/// Most messages of a sender.
pub(super) static MAX_MESSAGES: AtomicU64 = AtomicU64::new(u64::MAX);

/// Properties of all messages of a simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageProfile {
    seed: u64,
    most_parts: u64,
    longest: u64,
    /// Longest part of three messages in four.
    usual: u64,
}

pub(super) type Parts = Vec<Vec<u8>>;

impl MessageProfile {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        MessageProfile {
            seed: rng.next(),
            most_parts: *rng.pick(&[1, 1, 2, 6]),
            longest: *rng.pick(&[8, 40, 300, 9_000, 70_000, 300_000, 1_000_000]),
            usual: 100,
        }
    }

    /// Returns this kind with messages so short that many fit into a buffer.
    pub(super) fn of_short_messages(self) -> Self {
        self.of_at_most(9_000)
    }

    /// Returns this kind with parts of at most `longest` bytes.
    pub(super) fn of_at_most(self, longest: u64) -> Self {
        MessageProfile { longest: self.longest.min(longest), ..self }
    }

    /// Returns this kind with messages of a few hundred bytes, fewer than one in four of which is
    /// longer.
    pub(super) fn of_bulk(self) -> Self {
        MessageProfile { longest: 3_000, usual: 1_500, ..self }
    }

    /// Returns this kind with one part for each message.
    pub(super) fn of_one_part(self) -> Self {
        MessageProfile { most_parts: 1, ..self }
    }

    /// Returns the number of messages of a sender that fills buffers repeatedly.
    pub(super) fn count_many(&self, rng: &mut Rng) -> u32 {
        let most = (1_500_000 / (self.longest * self.most_parts)).clamp(200, 3000);
        rng.spread(50, most.min(MAX_MESSAGES.load(Relaxed).max(1))) as u32
    }

    /// Returns the number of messages of a sender: up to `most`, or some megabytes.
    pub(super) fn count(&self, rng: &mut Rng, most: u64) -> u32 {
        let most =
            most.min(MAX_MESSAGES.load(Relaxed)).min(30 + 3_000_000 / (self.longest * self.most_parts));
        rng.spread(1, most) as u32
    }

    /// Returns the number of a message.
    pub(super) fn number(parts: &Parts) -> u32 {
        parts[0].get(4..8).and_then(<[u8]>::first_chunk).map_or(0, |number| u32::from_be_bytes(*number))
    }

    /// Returns message `number` of a sender. Its first part starts with both numbers.
    pub(super) fn message(&self, sender: u32, number: u32) -> Parts {
        let mut rng = Rng::new(self.seed, u64::from(sender) << 32 | u64::from(number));
        let parts = rng.between(1, self.most_parts);
        (0..parts)
            .map(|part| {
                let longest = if rng.chance(4) { self.longest } else { self.longest.min(self.usual) };
                let length = if rng.chance(8) { 0 } else { rng.spread(1, longest.max(1)) };
                let mut bytes = Vec::new();
                if part == 0 {
                    bytes.extend_from_slice(&sender.to_be_bytes());
                    bytes.extend_from_slice(&number.to_be_bytes());
                }
                let mut word = rng.next();
                for _ in 0..length {
                    word = word.rotate_left(7).wrapping_mul(5).wrapping_add(1);
                    bytes.push((word >> 32) as u8);
                }
                bytes
            })
            .collect()
    }
}

/// Record of the received messages.
pub(super) struct Ledger {
    kind: MessageProfile,
    /// True if messages may be missing.
    lossy: bool,
    /// True if all messages of a sender take the same path to a receiver.
    ordered: bool,
    all: Mutex<BTreeSet<(u32, u32)>>,
    last: Mutex<BTreeMap<(u32, u32), u32>>,
    seen: Mutex<BTreeMap<u32, u32>>,
}

impl Ledger {
    pub(super) fn new(kind: MessageProfile, lossy: bool, ordered: bool) -> Self {
        Ledger { kind, lossy, ordered, all: Mutex::default(), last: Mutex::default(), seen: Mutex::default() }
    }

    /// Records a message that `receiver` has received. Checks that the message was sent, is whole,
    /// and is later than the last one of its sender. Returns the sender and the number of its
    /// messages that all receivers have received.
    pub(super) fn record(&self, receiver: u32, parts: &[Vec<u8>]) -> (u32, u32) {
        crate::world::progress();
        let first = parts.first().map(Vec::as_slice).unwrap_or_default();
        let Some(head) = first.first_chunk::<8>() else { panic!("a message that was never sent: {first:?}") };
        let sender = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let number = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let wanted = self.kind.message(sender, number);
        if parts != wanted {
            let lengths = |parts: &[Vec<u8>]| parts.iter().map(Vec::len).collect::<Vec<_>>();
            panic!(
                "message {number} of {sender} is another at {receiver}: parts of {:?} bytes, not {:?}",
                lengths(parts),
                lengths(&wanted)
            );
        }
        let is_new = self.all.lock().unwrap().insert((sender, number));
        assert!(is_new, "message {number} of {sender} comes to {receiver} again");
        let mut last = self.last.lock().unwrap();
        if let Some(before) = last.insert((receiver, sender), number) {
            assert!(
                before < number || !self.ordered,
                "message {number} of {sender} comes to {receiver} after {before}"
            );
        }
        let mut seen = self.seen.lock().unwrap();
        let seen = seen.entry(sender).or_default();
        *seen += 1;
        (sender, *seen)
    }

    /// Checks that all messages of these senders have arrived, unless messages may be missing. Each
    /// sender comes with the number of its messages.
    pub(super) fn check_complete(&self, senders: &[(u32, u32)]) {
        let seen = self.seen.lock().unwrap();
        for (sender, sent) in senders {
            let got = seen.get(sender).copied().unwrap_or(0);
            assert!(got <= *sent, "{got} messages of {sender}, which has sent {sent}");
            assert!(self.lossy || got == *sent, "{got} messages of {sender}, which has sent {sent}");
        }
    }
}
