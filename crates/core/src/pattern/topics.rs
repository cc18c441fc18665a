//! Topics and what hangs on them: finds all topics that are a prefix of a subject (RFC 29: a subscription matches by prefix).
//!
//! A handful of topics is simply tried one after the other. More of them are found by one hash lookup per distinct topic length; with
//! many lengths a [`Trie`] takes over. A topic has a slot number as long as it is here, for callers that keep their own lists.

use super::hash::SeededHash;
use std::collections::HashMap;
use std::sync::Arc;
use trie::Trie;

#[cfg(test)]
mod tests;
mod trie;

/// Up to so many topics are compared one by one.
const FEW: usize = 4;
/// With more distinct lengths than this the trie is faster than a lookup per length.
const MANY_LENGTHS: usize = 6;
/// With so few lengths again the trie goes.
const FEW_LENGTHS: usize = 3;

/// The topics of one length.
#[derive(Debug)]
struct Length {
    length: usize,
    /// How many there are.
    topics: usize,
    /// Their last bytes, or those of topics that have been: a bit each, modulo 64. Spares most lookups that would find nothing.
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
    slots: Vec<Option<(Arc<[u8]>, V)>>,
    vacant: Vec<u32>,
    /// Slot by topic.
    index: HashMap<Arc<[u8]>, u32, SeededHash>,
    /// Distinct lengths in ascending order.
    lengths: Vec<Length>,
    trie: Option<Trie>,
}

impl<V> Default for Topics<V> {
    fn default() -> Self {
        Topics {
            slots: Vec::new(),
            vacant: Vec::new(),
            index: HashMap::default(),
            lengths: Vec::new(),
            trie: None,
        }
    }
}

impl<V> Topics<V> {
    /// Number of topics.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Length of the longest topic: no more of a subject is ever looked at.
    pub(crate) fn longest(&self) -> usize {
        self.lengths.last().map_or(0, |last| last.length)
    }

    /// Whether the empty topic is here, which every subject matches.
    #[inline]
    pub(crate) fn has_empty(&self) -> bool {
        self.lengths.first().is_some_and(|first| first.length == 0)
    }

    /// The slot of `topic`.
    pub(crate) fn slot(&self, topic: &[u8]) -> Option<u32> {
        self.index.get(topic).copied()
    }

    /// The topic and value of a slot that is in use.
    pub(crate) fn entry(&mut self, slot: u32) -> Option<(&Arc<[u8]>, &mut V)> {
        self.slots.get_mut(slot as usize)?.as_mut().map(|(topic, value)| (&*topic, value))
    }

    /// All topics, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &V)> {
        self.slots.iter().flatten().map(|(topic, value)| (&**topic, value))
    }

    fn length_position(&self, length: usize) -> Result<usize, usize> {
        self.lengths.binary_search_by_key(&length, |entry| entry.length)
    }

    /// The slot of `topic`, which is added with a default value if it is new.
    pub(crate) fn insert(&mut self, topic: &[u8]) -> u32
    where
        V: Default,
    {
        if let Some(slot) = self.slot(topic) {
            return slot;
        }
        let topic: Arc<[u8]> = topic.into();
        let entry = Some((Arc::clone(&topic), V::default()));
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                (self.slots.len() - 1) as u32
            }
        };
        match self.length_position(topic.len()) {
            Ok(position) => {
                self.lengths[position].topics += 1;
                self.lengths[position].last_bytes |= last_byte_bit(&topic);
            }
            Err(position) => {
                let length = Length { length: topic.len(), topics: 1, last_bytes: last_byte_bit(&topic) };
                self.lengths.insert(position, length);
            }
        }
        if let Some(trie) = &mut self.trie {
            trie.insert(&topic, slot);
        }
        self.index.insert(topic, slot);
        if self.lengths.len() > MANY_LENGTHS && self.trie.is_none() {
            let mut trie = Trie::new();
            for (topic, &slot) in &self.index {
                trie.insert(topic, slot);
            }
            self.trie = Some(trie);
        }
        slot
    }

    /// Forgets the topic of `slot`.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<(Arc<[u8]>, V)> {
        let (topic, value) = self.slots.get_mut(slot as usize)?.take()?;
        self.vacant.push(slot);
        self.index.remove(&topic);
        if let Ok(position) = self.length_position(topic.len()) {
            self.lengths[position].topics -= 1;
            if self.lengths[position].topics == 0 {
                self.lengths.remove(position);
            }
        }
        if self.lengths.len() <= FEW_LENGTHS {
            self.trie = None;
        } else if let Some(trie) = &mut self.trie {
            trie.remove(&topic);
        }
        Some((topic, value))
    }

    /// Whether any topic is a prefix of `subject`.
    #[inline]
    pub(crate) fn matches(&self, subject: &[u8]) -> bool {
        if self.has_empty() {
            return true;
        }
        let mut any = false;
        self.each_match(subject, |_| {
            any = true;
            false
        });
        any
    }

    /// Calls `found` with the value of every topic that is a prefix of `subject`, until it returns false.
    #[inline]
    pub(crate) fn each_match(&self, subject: &[u8], mut found: impl FnMut(&V) -> bool) {
        if self.slots.len() > FEW {
            return self.each_match_of_many(subject, found);
        }
        for (topic, value) in self.slots.iter().flatten() {
            // Most often it is the empty one.
            if (topic.is_empty() || subject.starts_with(topic)) && !found(value) {
                return;
            }
        }
    }

    #[inline(never)]
    fn each_match_of_many(&self, subject: &[u8], mut found: impl FnMut(&V) -> bool) {
        let mut at_slot = |slot: u32| match self.slots.get(slot as usize) {
            Some(Some((_, value))) => found(value),
            _ => true,
        };
        if let Some(trie) = &self.trie {
            return trie.prefixes(subject, at_slot);
        }
        for length in &self.lengths {
            let Some(prefix) = subject.get(..length.length) else { return };
            if length.last_bytes & last_byte_bit(prefix) != 0
                && let Some(&slot) = self.index.get(prefix)
                && !at_slot(slot)
            {
                return;
            }
        }
    }
}
