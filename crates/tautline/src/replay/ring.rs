//! The last messages of a publisher.

use std::collections::VecDeque;

use crate::Message;

/// Memory per message in addition to its bytes.
const OVERHEAD: usize = 2 * size_of::<Message>();

/// A kept message.
#[derive(Debug)]
pub(super) struct KeptMessage {
    pub(super) number: u64,
    pub(super) topic: Message,
    pub(super) body: Message,
}

impl KeptMessage {
    fn size(&self) -> usize {
        self.topic.len() + self.body.len() + OVERHEAD
    }
}

/// Messages with consecutive numbers, the oldest first: at most `most` messages and `most_bytes`
/// bytes.
#[derive(Debug)]
pub(super) struct Ring {
    kept: VecDeque<KeptMessage>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl Ring {
    pub(super) fn new(most: usize, most_bytes: usize) -> Self {
        Ring { kept: VecDeque::new(), bytes: 0, most, most_bytes }
    }

    /// Adds the next message and drops the oldest ones. A message that exceeds the limit alone is
    /// not kept, and all older messages are dropped.
    pub(super) fn push(&mut self, message: KeptMessage) {
        self.bytes += message.size();
        self.kept.push_back(message);
        while self.kept.len() > self.most || self.bytes > self.most_bytes {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.size();
        }
    }

    /// Returns the first kept message from `number` on. Large bodies are not copied.
    pub(super) fn first_from(&mut self, number: u64) -> Option<KeptMessage> {
        let oldest = self.kept.front()?.number;
        let at = usize::try_from(number.saturating_sub(oldest)).ok()?;
        let kept = self.kept.get_mut(at)?;
        Some(KeptMessage { number: kept.number, topic: kept.topic.share(), body: kept.body.share() })
    }

    /// Returns the number of kept messages.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}

#[cfg(test)]
mod tests {
    use tautline_testkit::XorShift;

    use super::*;

    fn kept(number: u64, len: usize) -> KeptMessage {
        KeptMessage { number, topic: Message::from("t"), body: Message::from(vec![0; len]) }
    }

    fn numbers(ring: &mut Ring, from: u64) -> Vec<u64> {
        (0..)
            .scan(from, |next, _| {
                ring.first_from(*next).map(|kept| {
                    *next = kept.number + 1;
                    kept.number
                })
            })
            .collect()
    }

    #[test]
    fn oldest_messages_are_dropped_at_each_limit() {
        let mut ring = Ring::new(3, usize::MAX);
        (0..5).for_each(|number| ring.push(kept(number, 10)));
        assert_eq!(numbers(&mut ring, 0), [2, 3, 4]);
        assert_eq!(numbers(&mut ring, 4), [4]);
        assert_eq!(numbers(&mut ring, 5), []);
        let mut ring = Ring::new(1000, 3 * (11 + OVERHEAD));
        (0..5).for_each(|number| ring.push(kept(number, 10)));
        assert_eq!(numbers(&mut ring, 0), [2, 3, 4]);
        ring.push(kept(5, 4 * (11 + OVERHEAD)));
        assert_eq!((ring.len(), ring.bytes), (0, 0));
        ring.push(kept(6, 10));
        assert_eq!(numbers(&mut ring, 0), [6]);
    }

    /// The ring keeps the longest run of newest messages within both limits.
    #[test]
    fn random_messages_agree_with_a_model() {
        for seed in 0..200 {
            let mut random = XorShift::new(seed);
            let (most, most_bytes) = (random.below(8), random.below(10 * (OVERHEAD + 40)));
            let mut ring = Ring::new(most, most_bytes);
            let mut sizes: Vec<usize> = Vec::new();
            for number in 0..100 {
                let message = kept(number, if random.one_in(8) { 2_000 } else { random.below(60) });
                sizes.push(message.size());
                ring.push(message);
                let (mut count, mut bytes) = (0, 0);
                for size in sizes.iter().rev() {
                    if count == most || bytes + size > most_bytes {
                        break;
                    }
                    (count, bytes) = (count + 1, bytes + size);
                }
                assert_eq!((ring.len(), ring.bytes), (count, bytes), "seed {seed}, message {number}");
                let from = random.below(110) as u64;
                let first = number + 1 - count as u64;
                let expected: Vec<u64> = (first.max(from)..=number).collect();
                assert_eq!(numbers(&mut ring, from), expected, "seed {seed}, from {from}");
                assert!(ring.first_from(u64::MAX).is_none());
            }
        }
    }
}
