//! Storage of topics: each is in a slot with a number, found by its bytes.
//!
//! Slots are allocated in segments, so that their number grows without moving any, and a segment
//! without topics frees its memory. The hash table grows and shrinks by one bucket at a time
//! (linear hashing): peers decide how many topics there are, and no subscription may cost as much
//! as a move of all topics.
//!
//! Peers also choose the bytes, so the hash has random keys.

use crate::error::NoMemory;
use crate::pattern::hash::SeededHash;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};

/// Slots in a segment.
const SEGMENT: usize = 256;

/// A slot and the hash of its topic. The hash avoids most comparisons with other topics.
#[derive(Debug, Clone, Copy)]
struct BucketLink {
    slot: u32,
    hash: u32,
}

impl BucketLink {
    /// The end of a chain.
    const NONE: BucketLink = BucketLink { slot: u32::MAX, hash: 0 };

    fn is_none(self) -> bool {
        self.slot == BucketLink::NONE.slot
    }
}

/// Summary of a bucket in one byte. Most subjects match no topic, and a table that fits into the
/// cache shows this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tag(u8);

impl Tag {
    const EMPTY: Tag = Tag(0);
    /// The bucket may have several topics.
    const SEVERAL: Tag = Tag(u8::MAX);

    /// Returns the tag of a bucket with one topic. The lowest bits of `hash`, the hash of the
    /// topic, are the bucket.
    #[inline]
    fn only(hash: u32) -> Tag {
        Tag((hash >> 25) as u8 + 1)
    }
}

/// A topic and its value.
#[derive(Debug)]
pub(super) struct Slot<V> {
    pub(super) topic: Box<[u8]>,
    pub(super) value: V,
    /// The next slot in the bucket.
    next: BucketLink,
}

#[derive(Debug)]
struct Segment<V> {
    /// Has the length of the largest number of slots that were in use at the same time. Holds no
    /// memory while the segment is unused.
    slots: Vec<Option<Slot<V>>>,
    used: usize,
    /// Bits of the `slots` that are not in use.
    vacant: [u64; SEGMENT / 64],
}

impl<V> Segment<V> {
    const fn new() -> Self {
        Segment { slots: Vec::new(), used: 0, vacant: [0; SEGMENT / 64] }
    }

    /// The lowest place that is not in use. There must be one.
    fn place(&mut self) -> usize {
        for (index, word) in self.vacant.iter_mut().enumerate() {
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return index * 64 + bit;
            }
        }
        self.slots.push(None);
        self.slots.len() - 1
    }

    fn put(&mut self, slot: Slot<V>) -> usize {
        let place = self.place();
        self.slots[place] = Some(slot);
        self.used += 1;
        place
    }

    fn take(&mut self, place: usize) -> Option<Slot<V>> {
        let slot = self.slots.get_mut(place)?.take()?;
        self.used -= 1;
        self.vacant[place / 64] |= 1 << (place % 64);
        if self.used == 0 {
            *self = Segment::new();
        }
        Some(slot)
    }
}

/// All slots.
#[derive(Debug)]
pub(super) struct Slots<V> {
    segments: Vec<Segment<V>>,
    /// The segments with room. The lowest ones are filled first, so that the others may become
    /// empty.
    open: BTreeSet<usize>,
    /// The first slot of each bucket. There are two to four buckets for each topic, so most have at
    /// most one topic.
    heads: Vec<BucketLink>,
    /// Summary of each bucket, indexed by the number of the bucket.
    tags: Vec<Tag>,
    len: usize,
    hash: SeededHash,
}

impl<V> Default for Slots<V> {
    fn default() -> Self {
        Slots {
            segments: Vec::new(),
            open: BTreeSet::new(),
            heads: Vec::new(),
            tags: Vec::new(),
            len: 0,
            hash: SeededHash::default(),
        }
    }
}

/// The number without its highest bit: the bucket from which bucket `number` was split.
fn parent(number: usize) -> usize {
    number & !(1 << number.ilog2())
}

impl<V> Slots<V> {
    /// Number of slots in use.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Upper limit (exclusive) of the slot numbers.
    pub(super) fn end(&self) -> u32 {
        (self.segments.len() * SEGMENT) as u32
    }

    /// All slots, if they are few and close together.
    #[inline]
    pub(super) fn few(&self, most: usize) -> Option<&[Option<Slot<V>>]> {
        match &self.segments[..] {
            [] => Some(&[]),
            [only] if only.slots.len() <= most => Some(&only.slots),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&Slot<V>> {
        let segment = self.segments.get(slot as usize / SEGMENT)?;
        segment.slots.get(slot as usize % SEGMENT)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Slot<V>> {
        let segment = self.segments.get_mut(slot as usize / SEGMENT)?;
        segment.slots.get_mut(slot as usize % SEGMENT)?.as_mut()
    }

    /// The slots in use.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot<V>> {
        self.segments.iter().flat_map(|segment| segment.slots.iter().flatten())
    }

    #[inline]
    fn hash(&self, topic: &[u8]) -> u32 {
        let mut hasher = self.hash.build_hasher();
        hasher.write(topic);
        hasher.finish() as u32
    }

    /// The bucket of a hash: its lowest bits, or one bit less if that bucket does not exist yet.
    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        let count = self.heads.len();
        let mask = count.next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        if bucket < count { bucket } else { bucket & (mask >> 1) }
    }

    /// The slot of `topic`.
    #[inline]
    pub(super) fn find(&self, topic: &[u8]) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let hash = self.hash(topic);
        let bucket = self.bucket(hash);
        let tag = self.tags[bucket];
        if tag != Tag::only(hash) && tag != Tag::SEVERAL {
            return None;
        }
        let mut link = self.heads[bucket];
        while !link.is_none() {
            let slot = self.get(link.slot)?;
            if link.hash == hash && *slot.topic == *topic {
                return Some(link.slot);
            }
            link = slot.next;
        }
        None
    }

    /// Makes room for one more topic, without its bytes.
    pub(super) fn make_room(&mut self) -> Result<(), NoMemory> {
        match self.open.first() {
            Some(&number) => self.segments[number].slots.try_reserve(1)?,
            None => self.segments.try_reserve(1)?,
        }
        self.heads.try_reserve(2)?;
        self.tags.try_reserve(2)?;
        Ok(())
    }

    /// Adds a new topic. Returns its slot.
    pub(super) fn insert(&mut self, topic: &[u8], value: V) -> u32 {
        let number = self.open.first().copied().unwrap_or_else(|| {
            self.segments.push(Segment::new());
            self.open.insert(self.segments.len() - 1);
            self.segments.len() - 1
        });
        self.len += 1;
        // This loop runs at most twice.
        while self.heads.len() < 2 * self.len {
            self.split();
        }
        let hash = self.hash(topic);
        let bucket = self.bucket(hash);
        let segment = &mut self.segments[number];
        let place = segment.put(Slot { topic: topic.into(), value, next: BucketLink::NONE });
        if segment.used == SEGMENT {
            self.open.remove(&number);
        }
        let slot = (number * SEGMENT + place) as u32;
        self.put_first(bucket, BucketLink { slot, hash });
        slot
    }

    /// Removes a topic.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Slot<V>> {
        let next = self.get(slot)?.next;
        let bucket = self.bucket(self.hash(&self.get(slot)?.topic));
        self.relink(bucket, slot, next);
        let number = slot as usize / SEGMENT;
        let taken = self.segments[number].take(slot as usize % SEGMENT)?;
        self.open.insert(number);
        while self.segments.last().is_some_and(|last| last.used == 0) {
            self.segments.pop();
            self.open.remove(&self.segments.len());
        }
        self.len -= 1;
        // This loop runs at most four times.
        while self.heads.len() > 4 * self.len {
            self.join();
        }
        Some(taken)
    }

    /// Replaces the link to `slot` in this bucket by a link to `next`.
    fn relink(&mut self, bucket: usize, slot: u32, next: BucketLink) {
        let mut link = self.heads[bucket];
        if link.slot == slot {
            self.heads[bucket] = next;
            if next.is_none() {
                self.tags[bucket] = Tag::EMPTY;
            }
            return;
        }
        while let Some(other) = self.get_mut(link.slot) {
            link = other.next;
            if link.slot == slot {
                other.next = next;
                return;
            }
        }
    }

    /// Puts this slot first in the bucket. Returns the slot's former successor.
    fn put_first(&mut self, bucket: usize, link: BucketLink) -> BucketLink {
        let next = std::mem::replace(&mut self.heads[bucket], link);
        self.tags[bucket] = if next.is_none() { Tag::only(link.hash) } else { Tag::SEVERAL };
        let slot = self.get_mut(link.slot);
        slot.map_or(BucketLink::NONE, |slot| std::mem::replace(&mut slot.next, next))
    }

    /// Puts each slot of a chain into its bucket.
    fn distribute(&mut self, mut link: BucketLink) {
        while !link.is_none() {
            link = self.put_first(self.bucket(link.hash), link);
        }
    }

    /// Adds a bucket, which takes over a part of another one.
    fn split(&mut self) {
        let new = self.heads.len();
        self.heads.push(BucketLink::NONE);
        self.tags.push(Tag::EMPTY);
        if new > 0 {
            let old = parent(new);
            self.tags[old] = Tag::EMPTY;
            let chain = std::mem::replace(&mut self.heads[old], BucketLink::NONE);
            self.distribute(chain);
        }
    }

    /// Removes a bucket; another one takes over its slots.
    fn join(&mut self) {
        self.tags.pop();
        let Some(chain) = self.heads.pop() else { return };
        if !self.heads.is_empty() {
            self.distribute(chain);
        }
        if self.heads.capacity() > 4 * self.heads.len() + SEGMENT {
            self.heads.shrink_to(2 * self.heads.len());
            self.tags.shrink_to(2 * self.tags.len());
        }
    }

    /// Returns the number of topics in the longest chain, and the memory in use.
    #[cfg(test)]
    pub(super) fn measure(&self) -> (usize, usize) {
        let chain = |head: &BucketLink| {
            let next = |link: &BucketLink| self.get(link.slot).map(|slot| slot.next);
            std::iter::successors(Some(*head), next).filter(|link| !link.is_none()).count()
        };
        let slots: usize = self.segments.iter().map(|segment| segment.slots.capacity()).sum();
        let memory = slots * size_of::<Option<Slot<V>>>()
            + self.heads.capacity() * (size_of::<BucketLink>() + size_of::<Tag>());
        (self.heads.iter().map(chain).max().unwrap_or(0), memory)
    }
}
