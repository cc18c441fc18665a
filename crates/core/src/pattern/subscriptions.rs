//! Subscriptions: the store of PUB, XPUB and RADIO (topics of each pipe) and that of SUB and XSUB
//! (a count per topic).
//!
//! The subscriptions of a peer are bounded ([`PeerSubscriptions::memory_of`]), but may be millions
//! of topics. So when the peer leaves, they are removed in steps. Until the end no other peer may
//! get the id of its pipe (`Pipes::reserve_id`).

use super::groups::{GroupChange, Groups, TopicSet};
use super::topics::Topics;
use crate::error::NoMemory;
use crate::pipe::PipeId;
use small_set::SmallSet;
use std::collections::BTreeSet;
use topic_order::TopicOrder;

mod small_set;
#[cfg(test)]
mod tests;
mod topic_order;

/// A pipe with more topics than this is in no group, because joining and leaving a group would cost
/// too much.
const GROUPED_TOPICS: usize = 16;

/// Number of topics that one step removes from a pipe that has ended. Subscribing adds at most as
/// many topics in one step. So the topics of peers that connect and disconnect do not accumulate.
const STEP: usize = 1000;

/// The pipes and groups that have a topic.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    /// The pipes that are in no group, in ascending order.
    single: SmallSet<PipeId>,
    /// The groups whose members have the topic.
    groups: SmallSet<u32>,
    /// Number of pipes with the topic, including members of groups. Never 0.
    all: u32,
}

impl Subscribers {
    /// The pipes that are in no group, in ascending order.
    #[inline]
    pub(crate) fn single(&self) -> &[PipeId] {
        self.single.as_slice()
    }

    /// The groups whose members have the topic.
    #[inline]
    pub(crate) fn groups(&self) -> &[u32] {
        self.groups.as_slice()
    }
}

/// The topics of a pipe.
#[derive(Debug, Default)]
struct PipeTopics {
    /// The slots of its topics.
    slots: BTreeSet<u32>,
    /// The bytes of these topics.
    bytes: u64,
}

/// A pipe that has ended and still has some topics here.
#[derive(Debug)]
struct LeavingPipe {
    pipe: PipeId,
    /// The topics of the pipe in byte order, if their ends must be reported in that order.
    order: Option<TopicOrder>,
}

/// Subscriptions of peers. A pipe has a topic once, even if it has subscribed to it several times.
#[derive(Debug, Default)]
pub(crate) struct PeerSubscriptions {
    topics: Topics<Subscribers>,
    /// The topics of each pipe, indexed by the number of the pipe.
    pipes: Vec<PipeTopics>,
    leaving: Vec<LeavingPipe>,
    groups: Groups,
    /// Pipes whose topics have changed and that may belong to a group.
    changed: Vec<PipeId>,
}

/// Entry of a pipe into a group, or exit from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Membership {
    /// The pipe gets its messages by the group.
    Joined(u32, PipeId),
    /// The pipe gets its messages individually again.
    Left(u32, PipeId),
}

/// The common destination of all messages, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SoleTarget {
    /// Not yet determined.
    Unknown,
    /// There is no common destination.
    Nobody,
    /// This pipe alone, which is in no group.
    Pipe(PipeId),
    /// The members of this group alone.
    Group(u32),
}

/// Effect of a removal on a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The pipe did not have the topic.
    Unknown,
    /// Other pipes still have the topic.
    StillSubscribed,
    /// This was the last pipe with the topic.
    Last,
}

impl PeerSubscriptions {
    /// Creates an empty store that is only asked for exact topics.
    pub(crate) fn exact() -> Self {
        PeerSubscriptions { topics: Topics::exact(), ..PeerSubscriptions::default() }
    }

    /// Number of distinct topics.
    pub(crate) fn len(&self) -> usize {
        self.topics.len()
    }

    /// Memory of the topics of `pipe`, in bytes, as if no other pipe shared them.
    pub(crate) fn memory_of(&self, pipe: PipeId) -> u64 {
        let wanted = self.pipes.get(pipe.0 as usize);
        wanted.map_or(0, |wanted| self.topics.cost(wanted.slots.len(), wanted.bytes))
    }

    /// True if `pipe` has the topic.
    pub(crate) fn has(&self, topic: &[u8], pipe: PipeId) -> bool {
        let wanted = self.pipes.get(pipe.0 as usize);
        wanted.is_some_and(|wanted| self.topics.slot(topic).is_some_and(|slot| wanted.slots.contains(&slot)))
    }

    /// The topics of `pipe`.
    pub(crate) fn topics_of(&self, pipe: PipeId) -> Vec<Vec<u8>> {
        let slots = self.pipes.get(pipe.0 as usize).into_iter().flat_map(|wanted| &wanted.slots);
        slots.filter_map(|&slot| self.topics.topic(slot)).map(<[u8]>::to_vec).collect()
    }

    /// Makes room for `add`. Without it, `add` aborts the process if memory is short.
    pub(crate) fn make_room(&mut self, topic: &[u8], pipe: PipeId) -> Result<(), NoMemory> {
        let missing = (pipe.0 as usize + 1).saturating_sub(self.pipes.len());
        self.pipes.try_reserve(missing)?;
        self.topics.make_room(topic)
    }

    /// Subscribes `pipe`, which must be in no group (`ungroup`) unless it has the topic already.
    /// Returns true if no pipe had the topic before.
    pub(crate) fn add(&mut self, topic: &[u8], pipe: PipeId) -> bool {
        let slot = self.topics.insert(topic);
        let number = pipe.0 as usize;
        if number >= self.pipes.len() {
            self.pipes.resize_with(number + 1, PipeTopics::default);
        }
        let wanted = &mut self.pipes[number];
        if !wanted.slots.insert(slot) {
            return false;
        }
        wanted.bytes += topic.len() as u64;
        let Some((_, subscribers)) = self.topics.entry(slot) else { return false };
        subscribers.all += 1;
        subscribers.single.insert(pipe);
        subscribers.all == 1
    }

    /// Unsubscribes `pipe`, which must be in no group (`ungroup`).
    pub(crate) fn remove(&mut self, topic: &[u8], pipe: PipeId) -> Removal {
        let Some(slot) = self.topics.slot(topic) else { return Removal::Unknown };
        let Some(wanted) = self.pipes.get_mut(pipe.0 as usize) else { return Removal::Unknown };
        if !wanted.slots.remove(&slot) {
            return Removal::Unknown;
        }
        wanted.bytes -= topic.len() as u64;
        let mut removed = Removal::StillSubscribed;
        self.remove_from_topic(slot, pipe, |_, last| {
            if last {
                removed = Removal::Last;
            }
        });
        removed
    }

    /// Removes `pipe` from the topic of `slot`. Calls `gone` with the topic and with true if `pipe`
    /// was the last one.
    fn remove_from_topic(&mut self, slot: u32, pipe: PipeId, gone: impl FnOnce(&[u8], bool)) {
        let Some((topic, subscribers)) = self.topics.entry(slot) else { return };
        subscribers.single.remove(pipe);
        subscribers.all -= 1;
        if subscribers.all > 0 {
            gone(topic, false);
        } else if let Some((topic, _)) = self.topics.remove(slot) {
            gone(&topic, true);
        }
    }

    /// Takes `pipe` out of its group before its topics change. The pipe may enter another group
    /// later (`regroup`).
    pub(crate) fn ungroup(&mut self, pipe: PipeId, mut each: impl FnMut(Membership)) {
        if !self.changed.contains(&pipe) {
            self.changed.push(pipe);
        }
        let Some(group) = self.groups.group_of(pipe) else { return };
        let key: TopicSet = self.groups.key(group).into();
        match self.groups.leave(pipe) {
            GroupChange::Shrunk(_) => {
                self.set_single(pipe, true);
                each(Membership::Left(group, pipe));
            }
            GroupChange::Dissolved(_, last) => {
                for slot in key {
                    if let Some((_, subscribers)) = self.topics.entry(slot) {
                        subscribers.groups.remove(group);
                    }
                }
                for pipe in [pipe, last] {
                    self.set_single(pipe, true);
                    each(Membership::Left(group, pipe));
                }
            }
            _ => {}
        }
    }

    /// True if `regroup` has work to do.
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Puts the pipes whose topics have changed into groups, if `may` allows it.
    pub(crate) fn regroup(&mut self, mut may: impl FnMut(PipeId) -> bool, mut each: impl FnMut(Membership)) {
        for pipe in std::mem::take(&mut self.changed) {
            let Some(key) = self.key_of(pipe).filter(|_| may(pipe)) else { continue };
            let slots = key.clone();
            match self.groups.enter(pipe, key) {
                GroupChange::Formed(group, pipes) => {
                    for slot in slots {
                        if let Some((_, subscribers)) = self.topics.entry(slot) {
                            subscribers.groups.insert(group);
                        }
                    }
                    for pipe in pipes {
                        self.set_single(pipe, false);
                        each(Membership::Joined(group, pipe));
                    }
                }
                GroupChange::Grown(group) => {
                    self.set_single(pipe, false);
                    each(Membership::Joined(group, pipe));
                }
                _ => {}
            }
        }
    }

    /// The key of a pipe: pipes with equal keys get the same messages. `None` if the pipe has no
    /// topics, or too many for a group.
    fn key_of(&self, pipe: PipeId) -> Option<TopicSet> {
        let slots = &self.pipes.get(pipe.0 as usize)?.slots;
        match self.topics.slot(b"") {
            _ if slots.is_empty() || slots.len() > GROUPED_TOPICS => None,
            // The empty topic matches every message, so the other topics have no effect.
            Some(slot) if slots.contains(&slot) => Some(TopicSet::from([slot])),
            _ => Some(slots.iter().copied().collect()),
        }
    }

    /// Sets if the lists of the pipe's topics contain the pipe itself, and not its group.
    fn set_single(&mut self, pipe: PipeId, single: bool) {
        let PeerSubscriptions { topics, pipes, .. } = self;
        for &slot in pipes.get(pipe.0 as usize).iter().flat_map(|wanted| &wanted.slots) {
            if let Some((_, subscribers)) = topics.entry(slot) {
                if single {
                    subscribers.single.insert(pipe);
                } else {
                    subscribers.single.remove(pipe);
                }
            }
        }
    }

    /// Dissolves all groups. The next `regroup` forms them again.
    pub(crate) fn ungroup_all(&mut self, mut each: impl FnMut(Membership)) {
        for number in 0..self.pipes.len() {
            let pipe = PipeId(number as u32);
            if self.groups.group_of(pipe).is_some() {
                self.ungroup(pipe, &mut each);
            }
        }
    }

    /// Notes that `pipe`, which must be in no group (`ungroup`), has ended.
    /// [`PeerSubscriptions::remove_some_leaving`] removes its topics from now on, in byte order if
    /// `in_order` is set.
    pub(crate) fn leave(&mut self, pipe: PipeId, in_order: bool) {
        self.changed.retain(|&changed| changed != pipe);
        if let Some(wanted) = self.pipes.get_mut(pipe.0 as usize)
            && !wanted.slots.is_empty()
        {
            wanted.bytes = 0;
            self.leaving.push(LeavingPipe { pipe, order: in_order.then(TopicOrder::default) });
        }
    }

    /// True if `pipe` has ended and still has topics here.
    pub(crate) fn is_leaving(&self, pipe: PipeId) -> bool {
        self.leaving.iter().any(|leaving| leaving.pipe == pipe)
    }

    /// True if `remove_some_leaving` has no work to do.
    pub(crate) fn is_clean(&self) -> bool {
        self.leaving.is_empty() && self.topics.is_clean()
    }

    /// Removes some topics of each ended pipe, or only of this one. Calls `gone` with the pipe, the
    /// topic, and true if the pipe was the last one with the topic.
    pub(crate) fn remove_some_leaving(
        &mut self,
        only: Option<PipeId>,
        mut gone: impl FnMut(PipeId, &[u8], bool),
    ) {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.retain_mut(|one| {
            only.is_some_and(|only| only != one.pipe) || self.take_some_out_of(one, &mut gone)
        });
        self.leaving = leaving;
        self.topics.clean_up(STEP);
    }

    /// Returns true if the pipe has more topics.
    fn take_some_out_of(
        &mut self,
        one: &mut LeavingPipe,
        gone: &mut impl FnMut(PipeId, &[u8], bool),
    ) -> bool {
        let (pipe, number) = (one.pipe, one.pipe.0 as usize);
        let Some(wanted) = self.pipes.get_mut(number) else { return false };
        if let Some(order) = &mut one.order
            && !order.sort(&wanted.slots, &self.topics, STEP)
        {
            return true;
        }
        for _ in 0..STEP {
            let slots = &mut self.pipes[number].slots;
            let slot = match &mut one.order {
                Some(order) => order.take(slots, &self.topics),
                None => slots.pop_first(),
            };
            let Some(slot) = slot else { return false };
            self.remove_from_topic(slot, pipe, |topic, last| gone(pipe, topic, last));
        }
        !self.pipes[number].slots.is_empty()
    }

    /// Removes all ended pipes from this topic, because another pipe has just subscribed to it or
    /// cancelled it. So the notices of a topic stay in order.
    pub(crate) fn remove_leaving_from(&mut self, topic: &[u8], mut gone: impl FnMut(PipeId, &[u8], bool)) {
        if self.leaving.is_empty() {
            return;
        }
        let Some(slot) = self.topics.slot(topic) else { return };
        for index in 0..self.leaving.len() {
            let pipe = self.leaving[index].pipe;
            if self.pipes.get_mut(pipe.0 as usize).is_some_and(|wanted| wanted.slots.remove(&slot)) {
                self.remove_from_topic(slot, pipe, |topic, last| gone(pipe, topic, last));
            }
        }
    }

    /// The pipe or group that gets every message, if all other pipes get none.
    pub(crate) fn sole(&mut self) -> SoleTarget {
        let everything = self.topics.slot(b"").filter(|_| self.topics.len() == 1);
        let Some((_, subscribers)) = everything.and_then(|slot| self.topics.entry(slot)) else {
            return SoleTarget::Nobody;
        };
        match (subscribers.single(), subscribers.groups()) {
            (&[id], []) => SoleTarget::Pipe(id),
            ([], &[group]) => SoleTarget::Group(group),
            _ => SoleTarget::Nobody,
        }
    }

    /// Calls `found` with the subscribers of each topic that matches. A pipe or group with several
    /// matching topics occurs more than once.
    #[inline]
    pub(crate) fn for_each_match(&self, subject: &[u8], mut found: impl FnMut(&Subscribers)) {
        self.topics.for_each_match(subject, |subscribers| {
            found(subscribers);
            true
        });
    }

    /// The pipes that have exactly this topic. No pipe may be in a group.
    #[inline]
    pub(crate) fn exact_subscribers(&self, topic: &[u8]) -> &[PipeId] {
        let subscribers = self.topics.slot(topic).and_then(|slot| self.topics.value(slot));
        subscribers.map_or(&[], Subscribers::single)
    }
}

/// A socket's own subscriptions, counted: the last of several equal ones ends the topic.
#[derive(Debug, Default)]
pub(crate) struct OwnSubscriptions {
    topics: Topics<usize>,
}

impl OwnSubscriptions {
    /// Number of distinct topics.
    pub(crate) fn len(&self) -> usize {
        self.topics.len()
    }

    /// Makes room for `add`.
    pub(crate) fn make_room(&mut self, topic: &[u8]) -> Result<(), NoMemory> {
        self.topics.make_room(topic)
    }

    /// Adds one subscription to `topic`.
    pub(crate) fn add(&mut self, topic: &[u8]) {
        let slot = self.topics.insert(topic);
        if let Some((_, count)) = self.topics.entry(slot) {
            *count += 1;
        }
        // These are the program's own subscriptions, so do all clean-up steps at once.
        self.topics.clean_up(usize::MAX);
    }

    /// Removes one subscription to `topic`. Returns true if it was the last one.
    pub(crate) fn remove(&mut self, topic: &[u8]) -> bool {
        let Some(slot) = self.topics.slot(topic) else { return false };
        let Some((_, count)) = self.topics.entry(slot) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.topics.remove(slot);
            self.topics.clean_up(usize::MAX);
        }
        last
    }

    /// The distinct topics.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.topics.iter().map(|(topic, _)| topic)
    }

    /// True if every message matches.
    #[inline]
    pub(crate) fn match_all(&self) -> bool {
        self.topics.has_empty()
    }

    /// True if a message matches. Its first part is `head` followed by `tail`.
    #[inline]
    pub(crate) fn matches(&self, head: &[u8], tail: &[u8]) -> bool {
        let longest = self.topics.longest();
        if tail.is_empty() || head.len() >= longest {
            return self.topics.matches(head);
        }
        let tail = &tail[..tail.len().min(longest - head.len())];
        self.topics.matches(&[head, tail].concat())
    }
}
