//! Topics and their values: finds all topics that are a prefix of a subject (RFC 29: a subscription
//! matches by prefix).
//!
//! A handful of topics is tried one after the other. More topics are found by one hash lookup per
//! distinct topic length; with many lengths a [`Trie`] takes over. While a topic is stored, its
//! slot number does not change. Callers use this number in their own lists.
//!
//! No operation iterates over all topics, because peers decide how many there are. The trie is
//! built and dissolved by a few topics with each change ([`Topics::clean_up`]). Until it has all
//! topics, lookups do not use it.

use crate::error::{NoMemory, check_memory};
use slots::Slots;
use trie::Trie;

mod slots;
#[cfg(test)]
mod tests;
mod trie;

/// Up to this many topics are compared one by one.
const FEW: usize = 4;
/// With more distinct lengths than this, the trie is faster than a lookup per length.
const MANY_LENGTHS: usize = 6;
/// With this number of lengths or fewer, the trie is dissolved.
const FEW_LENGTHS: usize = 3;
/// For up to this many topics a trie is built at once.
const AT_ONCE: usize = 256;
/// Number of slots by which each change advances the trie, if there are more topics.
const STEP: usize = 8;
/// `Topics::trie_end` of a trie that has all topics.
const ALL: u32 = u32::MAX;

/// Upper limit for the small allocations of one topic elsewhere: nodes of trees, lists of pipes.
const SMALL_PIECES: usize = 16 * 1024;

/// Memory of a topic in addition to its bytes: its slot, 16 bytes of the allocator, 18 to 36 in the
/// table, and 6 to 12 in the list of its peer's topics.
pub(crate) const TOPIC_COST: u64 = 124;
/// Memory of a topic in the trie in addition to its bytes: nodes of 64 bytes, some of them vacant,
/// and its label's 32 bytes.
const TRIE_COST: u64 = 200;

/// The topics of one length.
#[derive(Debug)]
struct Length {
    length: usize,
    /// Number of these topics.
    topics: usize,
    /// Last bytes of these topics, and of former ones: a bit each, modulo 64. These bits avoid most
    /// lookups that would find no topic.
    last_bytes: u64,
}

/// The bit of a topic's last byte.
#[inline]
fn last_byte_bit(topic: &[u8]) -> u64 {
    topic.last().map_or(1, |byte| 1 << (byte & 63))
}

/// A set of topics with a value each.
#[derive(Debug)]
pub(crate) struct Topics<V> {
    slots: Slots<V>,
    /// True if prefixes are never looked up.
    exact: bool,
    /// Distinct lengths in ascending order.
    lengths: Vec<Length>,
    /// True if there are enough lengths for a trie.
    many: bool,
    trie: Option<Trie>,
    /// The topics of all slots below this one are in the trie. `ALL` once the trie can be used.
    trie_end: u32,
    /// True if the trie is being dissolved.
    is_dissolving: bool,
}

impl<V> Default for Topics<V> {
    fn default() -> Self {
        Topics {
            slots: Slots::default(),
            exact: false,
            lengths: Vec::new(),
            many: false,
            trie: None,
            trie_end: 0,
            is_dissolving: false,
        }
    }
}

impl<V> Topics<V> {
    /// Creates an empty set that is never asked for the prefixes of a subject.
    pub(crate) fn exact() -> Self {
        Topics { exact: true, ..Topics::default() }
    }

    /// Number of topics.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Length of the longest topic. Only this many bytes of a subject are examined.
    pub(crate) fn longest(&self) -> usize {
        self.lengths.last().map_or(0, |last| last.length)
    }

    /// True if the set has the empty topic, which matches every subject.
    #[inline]
    pub(crate) fn has_empty(&self) -> bool {
        self.lengths.first().is_some_and(|first| first.length == 0)
    }

    /// The slot of `topic`.
    #[inline]
    pub(crate) fn slot(&self, topic: &[u8]) -> Option<u32> {
        self.slots.find(topic)
    }

    /// The topic of a slot that is in use.
    pub(crate) fn topic(&self, slot: u32) -> Option<&[u8]> {
        self.slots.get(slot).map(|slot| &*slot.topic)
    }

    /// The value of a slot that is in use.
    pub(crate) fn value(&self, slot: u32) -> Option<&V> {
        self.slots.get(slot).map(|slot| &slot.value)
    }

    /// The topic and value of a slot that is in use.
    pub(crate) fn entry(&mut self, slot: u32) -> Option<(&[u8], &mut V)> {
        self.slots.get_mut(slot).map(|slot| (&*slot.topic, &mut slot.value))
    }

    /// All topics, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &V)> {
        self.slots.iter().map(|slot| (&*slot.topic, &slot.value))
    }

    /// Memory of this many topics with this many bytes together, for example those of one peer: at
    /// least the memory that their removal would free.
    pub(crate) fn cost(&self, topics: usize, bytes: u64) -> u64 {
        let in_slots = topics as u64 * TOPIC_COST + bytes;
        if self.trie.is_some() { in_slots + topics as u64 * TRIE_COST + bytes } else { in_slots }
    }

    fn length_position(&self, length: usize) -> Result<usize, usize> {
        self.lengths.binary_search_by_key(&length, |entry| entry.length)
    }

    /// Makes room for this topic. Without it, `insert` aborts the process if memory is short.
    pub(crate) fn make_room(&mut self, topic: &[u8]) -> Result<(), NoMemory> {
        self.slots.make_room()?;
        self.lengths.try_reserve(1)?;
        if let Some(trie) = &mut self.trie {
            trie.make_room(topic.len())?;
        }
        check_memory(SMALL_PIECES + topic.len())
    }

    /// Returns the slot of `topic`, which is added with a default value if it is new.
    pub(crate) fn insert(&mut self, topic: &[u8]) -> u32
    where
        V: Default,
    {
        if let Some(slot) = self.slot(topic) {
            return slot;
        }
        let slot = self.slots.insert(topic, V::default());
        match self.length_position(topic.len()) {
            Ok(position) => {
                self.lengths[position].topics += 1;
                self.lengths[position].last_bytes |= last_byte_bit(topic);
            }
            Err(position) => {
                let length = Length { length: topic.len(), topics: 1, last_bytes: last_byte_bit(topic) };
                self.lengths.insert(position, length);
            }
        }
        self.many |= self.lengths.len() > MANY_LENGTHS && !self.exact;
        if slot < self.trie_end
            && let Some(trie) = &mut self.trie
        {
            trie.insert(topic, slot);
        }
        self.clean_up(self.step());
        slot
    }

    /// Removes the topic of `slot`.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<(Box<[u8]>, V)> {
        let taken = self.slots.remove(slot)?;
        if let Ok(position) = self.length_position(taken.topic.len()) {
            self.lengths[position].topics -= 1;
            if self.lengths[position].topics == 0 {
                self.lengths.remove(position);
            }
        }
        self.many &= self.lengths.len() > FEW_LENGTHS;
        if slot < self.trie_end
            && let Some(trie) = &mut self.trie
        {
            if trie.make_room(taken.topic.len()).is_ok() {
                trie.remove(&taken.topic);
            } else {
                (self.trie, self.trie_end) = (None, 0);
            }
        }
        self.clean_up(self.step());
        Some((taken.topic, taken.value))
    }

    /// Number of clean-up steps with each change.
    fn step(&self) -> usize {
        if self.slots.len() <= AT_ONCE { 2 * AT_ONCE } else { STEP }
    }

    /// True if `clean_up` has no work to do.
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        match &self.trie {
            Some(trie) => self.trie_end == ALL && self.many && !trie.is_sparse(),
            None => !self.many,
        }
    }

    /// Advances a trie that is being built or dissolved, by at most `steps` topics. If there is no
    /// memory, drops the trie at once.
    pub(crate) fn clean_up(&mut self, mut steps: usize) {
        while steps > 0 && !self.is_clean() {
            let Some(trie) = &mut self.trie else {
                (self.trie, self.trie_end, self.is_dissolving) = (Some(Trie::new()), 0, false);
                continue;
            };
            let next = self.slots.get(self.trie_end).map_or(0, |slot| slot.topic.len());
            if trie.make_room(next).is_err() {
                (self.trie, self.trie_end) = (None, 0);
                return;
            }
            if !self.is_dissolving && (self.trie_end == ALL || !self.many) {
                self.is_dissolving = true;
                self.trie_end = self.trie_end.min(self.slots.end());
            }
            if self.is_dissolving && self.trie_end == 0 {
                self.trie = None;
            } else if self.is_dissolving {
                self.trie_end -= 1;
                if let Some(slot) = self.slots.get(self.trie_end) {
                    trie.remove(&slot.topic);
                }
            } else if self.trie_end >= self.slots.end() {
                self.trie_end = ALL;
            } else {
                if let Some(slot) = self.slots.get(self.trie_end) {
                    trie.insert(&slot.topic, self.trie_end);
                }
                self.trie_end += 1;
            }
            steps -= 1;
        }
    }

    /// True if any topic is a prefix of `subject`.
    #[inline]
    pub(crate) fn matches(&self, subject: &[u8]) -> bool {
        if self.has_empty() {
            return true;
        }
        let mut any = false;
        self.for_each_match(subject, |_| {
            any = true;
            false
        });
        any
    }

    /// Calls `found` with the value of every topic that is a prefix of `subject`, until it returns
    /// false.
    #[inline]
    pub(crate) fn for_each_match(&self, subject: &[u8], mut found: impl FnMut(&V) -> bool) {
        let Some(few) = self.slots.few(FEW) else {
            return self.for_each_match_of_many(subject, found);
        };
        for slot in few.iter().flatten() {
            // Check for the empty topic first, because it is the most frequent one.
            if (slot.topic.is_empty() || subject.starts_with(&slot.topic)) && !found(&slot.value) {
                return;
            }
        }
    }

    #[inline(never)]
    fn for_each_match_of_many(&self, subject: &[u8], mut found: impl FnMut(&V) -> bool) {
        let mut at_slot = |slot: u32| match self.slots.get(slot) {
            Some(slot) => found(&slot.value),
            None => true,
        };
        if self.trie_end == ALL
            && let Some(trie) = &self.trie
        {
            return trie.prefixes(subject, at_slot);
        }
        for length in &self.lengths {
            let Some(prefix) = subject.get(..length.length) else { return };
            if length.last_bytes & last_byte_bit(prefix) != 0
                && let Some(slot) = self.slots.find(prefix)
                && !at_slot(slot)
            {
                return;
            }
        }
    }
}
