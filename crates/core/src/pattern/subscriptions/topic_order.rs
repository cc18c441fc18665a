//! The topics of a pipe in byte order, produced in steps: each step sorts some topics, then the
//! sorted runs are merged.

use super::Subscribers;
use crate::pattern::topics::Topics;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Bound;

/// A topic, its slot and the index of its run.
type Head = (Box<[u8]>, u32, usize);

/// The slots of the topics. The slots belong to the pipe until they are taken here or removed
/// elsewhere.
#[derive(Debug, Default)]
pub(super) struct TopicOrder {
    /// The remaining slots of each sorted run.
    runs: Vec<std::vec::IntoIter<u32>>,
    /// The next topic of each run that has one.
    heads: BinaryHeap<Reverse<Head>>,
    /// The last slot in the runs, while some slots are still unsorted.
    upto: Option<u32>,
    sorted: bool,
}

impl TopicOrder {
    /// Sorts up to `count` more of `slots`. Returns true once all are sorted. Slots that were
    /// removed from `slots` in the meantime may be missing.
    pub(super) fn sort(&mut self, slots: &BTreeSet<u32>, topics: &Topics<Subscribers>, count: usize) -> bool {
        if self.sorted {
            return true;
        }
        let after = (self.upto.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let mut run: Vec<u32> = slots.range(after).copied().take(count).collect();
        self.upto = run.last().copied();
        self.sorted = run.len() < count || slots.last().copied() == self.upto;
        run.sort_by_key(|&slot| topics.topic(slot));
        self.runs.push(run.into_iter());
        self.advance(self.runs.len() - 1, slots, topics);
        self.sorted
    }

    /// Takes the slot of the next topic out of `slots`.
    pub(super) fn take(&mut self, slots: &mut BTreeSet<u32>, topics: &Topics<Subscribers>) -> Option<u32> {
        loop {
            let Reverse((_, slot, run)) = self.heads.pop()?;
            self.advance(run, slots, topics);
            if slots.remove(&slot) {
                return Some(slot);
            }
        }
    }

    /// Moves to the next slot of this run. Skips slots that were removed elsewhere.
    fn advance(&mut self, run: usize, slots: &BTreeSet<u32>, topics: &Topics<Subscribers>) {
        if let Some(slot) = self.runs[run].find(|slot| slots.contains(slot)) {
            let topic = topics.topic(slot).unwrap_or_default();
            self.heads.push(Reverse((topic.into(), slot, run)));
        }
    }
}
