//! Who wants which topics: the store of PUB and XPUB (topics of each pipe) and that of SUB and XSUB (a count per topic).

use super::groups::{Change, Groups, Key};
use super::topics::Topics;
use crate::pipe::PipeId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// With more topics than this a pipe is in no group: coming and going would cost too much.
const GROUPED_TOPICS: usize = 16;

/// Most bytes that the topics of one peer may take, each with [`TOPIC_COST`]: four million topics of 64 bytes. There is no limit in libzmq;
/// this one is where a peer is after our memory, not our messages.
pub(crate) const MOST_HELD: u64 = if cfg!(test) { 1 << 20 } else { 512 << 20 };
/// What a topic takes besides its bytes, roughly.
pub(crate) const TOPIC_COST: u64 = 64;

/// Who has a topic.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    /// The pipes, in ascending order; never empty.
    all: Vec<PipeId>,
    /// Those that are in no group, in ascending order.
    pub(crate) single: Vec<PipeId>,
    /// The groups whose members have the topic.
    pub(crate) groups: Vec<u32>,
}

/// Subscriptions of peers. A pipe holds a topic once, however often it has subscribed to it.
#[derive(Debug, Default)]
pub(crate) struct PeerSubscriptions {
    topics: Topics<Subscribers>,
    /// The topics (slots) of each pipe, by the number of the pipe.
    by_pipe: Vec<BTreeSet<u32>>,
    /// What the topics of each pipe take, by the number of the pipe.
    held: Vec<u64>,
    groups: Groups,
    /// Pipes whose topics have changed and that may belong to a group.
    changed: Vec<PipeId>,
}

/// A pipe comes to a group or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Regrouped {
    /// It gets its messages by the group.
    Joined(u32, PipeId),
    /// It gets them by itself again.
    Left(u32, PipeId),
}

fn insert_sorted(pipes: &mut Vec<PipeId>, pipe: PipeId) {
    if let Err(position) = pipes.binary_search(&pipe) {
        pipes.insert(position, pipe);
    }
}

fn remove_sorted(pipes: &mut Vec<PipeId>, pipe: PipeId) {
    if let Ok(position) = pipes.binary_search(&pipe) {
        pipes.remove(position);
    }
}

/// Whom every message goes to, whatever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sole {
    /// That has not been found out.
    Unknown,
    /// It depends.
    Nobody,
    /// To this pipe alone, which is in no group.
    Pipe(PipeId),
    /// To the members of this group alone.
    Group(u32),
}

/// What a removal meant for a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The pipe did not have the topic.
    Unknown,
    /// Others still have the topic.
    Remains,
    /// Nobody has the topic any more.
    Last,
}

impl PeerSubscriptions {
    /// Number of distinct topics.
    pub(crate) fn len(&self) -> usize {
        self.topics.len()
    }

    /// Whether the topics of `pipe` take more than is sensible.
    pub(crate) fn holds_too_much(&self, pipe: PipeId) -> bool {
        self.held.get(pipe.0 as usize).is_some_and(|&held| held > MOST_HELD)
    }

    /// Whether `pipe` has the topic.
    pub(crate) fn has(&self, topic: &[u8], pipe: PipeId) -> bool {
        let slots = self.by_pipe.get(pipe.0 as usize);
        self.topics.slot(topic).is_some_and(|slot| slots.is_some_and(|slots| slots.contains(&slot)))
    }

    /// Subscribes `pipe`, which is in no group (`ungroup`) unless it has the topic already; true if nobody had the topic before.
    pub(crate) fn add(&mut self, topic: &[u8], pipe: PipeId) -> bool {
        let slot = self.topics.insert(topic);
        let number = pipe.0 as usize;
        if number >= self.by_pipe.len() {
            self.by_pipe.resize_with(number + 1, BTreeSet::new);
            self.held.resize(number + 1, 0);
        }
        if !self.by_pipe[number].insert(slot) {
            return false;
        }
        self.held[number] += topic.len() as u64 + TOPIC_COST;
        let Some((_, subscribers)) = self.topics.entry(slot) else { return false };
        let first = subscribers.all.is_empty();
        insert_sorted(&mut subscribers.all, pipe);
        insert_sorted(&mut subscribers.single, pipe);
        first
    }

    /// Unsubscribes `pipe`, which is in no group (`ungroup`).
    pub(crate) fn remove(&mut self, topic: &[u8], pipe: PipeId) -> Removed {
        let Some(slot) = self.topics.slot(topic) else { return Removed::Unknown };
        if !self.by_pipe.get_mut(pipe.0 as usize).is_some_and(|slots| slots.remove(&slot)) {
            return Removed::Unknown;
        }
        self.held[pipe.0 as usize] -= topic.len() as u64 + TOPIC_COST;
        if self.take_out(slot, pipe) { Removed::Last } else { Removed::Remains }
    }

    /// Takes `pipe` out of the topic of `slot`; true if it was the last one and the topic is gone.
    fn take_out(&mut self, slot: u32, pipe: PipeId) -> bool {
        let Some((_, subscribers)) = self.topics.entry(slot) else { return false };
        remove_sorted(&mut subscribers.all, pipe);
        remove_sorted(&mut subscribers.single, pipe);
        let last = subscribers.all.is_empty();
        if last {
            self.topics.remove(slot);
        }
        last
    }

    /// Takes `pipe` out of its group before its topics change. Afterwards it may find another one (`regroup`).
    pub(crate) fn ungroup(&mut self, pipe: PipeId, mut each: impl FnMut(Regrouped)) {
        if !self.changed.contains(&pipe) {
            self.changed.push(pipe);
        }
        let Some(group) = self.groups.of(pipe) else { return };
        let key: Key = self.groups.key(group).into();
        match self.groups.leave(pipe) {
            Change::Shrunk(_) => {
                self.set_single(pipe, true);
                each(Regrouped::Left(group, pipe));
            }
            Change::Dissolved(_, last) => {
                for slot in key {
                    if let Some((_, subscribers)) = self.topics.entry(slot) {
                        subscribers.groups.retain(|&other| other != group);
                    }
                }
                for pipe in [pipe, last] {
                    self.set_single(pipe, true);
                    each(Regrouped::Left(group, pipe));
                }
            }
            _ => {}
        }
    }

    /// Whether `regroup` has something to do.
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Groups the pipes whose topics have changed, if `may` be.
    pub(crate) fn regroup(&mut self, mut may: impl FnMut(PipeId) -> bool, mut each: impl FnMut(Regrouped)) {
        for pipe in std::mem::take(&mut self.changed) {
            let Some(key) = self.key_of(pipe).filter(|_| may(pipe)) else { continue };
            let slots = key.clone();
            match self.groups.enter(pipe, key) {
                Change::Formed(group, pipes) => {
                    for slot in slots {
                        if let Some((_, subscribers)) = self.topics.entry(slot) {
                            subscribers.groups.push(group);
                        }
                    }
                    for pipe in pipes {
                        self.set_single(pipe, false);
                        each(Regrouped::Joined(group, pipe));
                    }
                }
                Change::Grown(group) => {
                    self.set_single(pipe, false);
                    each(Regrouped::Joined(group, pipe));
                }
                _ => {}
            }
        }
    }

    /// What tells whether two pipes get the same messages; `None` if the pipe has too many topics for that, or none.
    fn key_of(&self, pipe: PipeId) -> Option<Key> {
        let slots = self.by_pipe.get(pipe.0 as usize)?;
        match self.topics.slot(b"") {
            // Everything matches: the other topics mean nothing.
            Some(slot) if slots.contains(&slot) => Some(Key::from([slot])),
            _ if slots.is_empty() || slots.len() > GROUPED_TOPICS => None,
            _ => Some(slots.iter().copied().collect()),
        }
    }

    /// Whether the lists of its topics name the pipe itself.
    fn set_single(&mut self, pipe: PipeId, single: bool) {
        let PeerSubscriptions { topics, by_pipe, .. } = self;
        for &slot in by_pipe.get(pipe.0 as usize).into_iter().flatten() {
            if let Some((_, subscribers)) = topics.entry(slot) {
                if single {
                    insert_sorted(&mut subscribers.single, pipe);
                } else {
                    remove_sorted(&mut subscribers.single, pipe);
                }
            }
        }
    }

    /// Dissolves all groups, and forms them anew at the next occasion.
    pub(crate) fn ungroup_all(&mut self, mut each: impl FnMut(Regrouped)) {
        for number in 0..self.by_pipe.len() {
            let pipe = PipeId(number as u32);
            if self.groups.of(pipe).is_some() {
                self.ungroup(pipe, &mut each);
            }
        }
    }

    /// Forgets `pipe`, which is in no group (`ungroup`). The topics it had, in byte order, each with whether it is gone now.
    pub(crate) fn remove_pipe(&mut self, pipe: PipeId) -> Vec<(Arc<[u8]>, bool)> {
        self.changed.retain(|&changed| changed != pipe);
        let Some(slots) = self.by_pipe.get_mut(pipe.0 as usize) else { return Vec::new() };
        self.held[pipe.0 as usize] = 0;
        let mut removed = Vec::with_capacity(slots.len());
        for slot in std::mem::take(slots) {
            if let Some(topic) = self.topics.entry(slot).map(|(topic, _)| Arc::clone(topic)) {
                removed.push((topic, self.take_out(slot, pipe)));
            }
        }
        removed.sort_unstable();
        removed
    }

    /// The pipe or group that gets every message, if nobody else gets any.
    pub(crate) fn sole(&mut self) -> Sole {
        let everything = self.topics.slot(b"").filter(|_| self.topics.len() == 1);
        let Some((_, subscribers)) = everything.and_then(|slot| self.topics.entry(slot)) else {
            return Sole::Nobody;
        };
        match (&subscribers.single[..], &subscribers.groups[..]) {
            (&[id], []) => Sole::Pipe(id),
            ([], &[group]) => Sole::Group(group),
            _ => Sole::Nobody,
        }
    }

    /// Calls `found` with the subscribers of each topic that matches; a pipe or group with several such topics comes more than once.
    #[inline]
    pub(crate) fn each_match(&self, subject: &[u8], mut found: impl FnMut(&Subscribers)) {
        self.topics.each_match(subject, |subscribers| {
            found(subscribers);
            true
        });
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

    /// One more subscription to `topic`.
    pub(crate) fn add(&mut self, topic: &[u8]) {
        let slot = self.topics.insert(topic);
        if let Some((_, count)) = self.topics.entry(slot) {
            *count += 1;
        }
    }

    /// One subscription to `topic` less; true if it was the last one.
    pub(crate) fn remove(&mut self, topic: &[u8]) -> bool {
        let Some(slot) = self.topics.slot(topic) else { return false };
        let Some((_, count)) = self.topics.entry(slot) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.topics.remove(slot);
        }
        last
    }

    /// The distinct topics.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.topics.iter().map(|(topic, _)| topic)
    }

    /// Whether every message matches.
    #[inline]
    pub(crate) fn match_all(&self) -> bool {
        self.topics.has_empty()
    }

    /// Whether a message matches whose first part is `head` followed by `tail`.
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

#[cfg(test)]
mod tests {
    use super::*;

    const A: PipeId = PipeId(0);
    const B: PipeId = PipeId(9);

    fn subscribers(subscriptions: &PeerSubscriptions, subject: &[u8]) -> Vec<PipeId> {
        let mut found = Vec::new();
        subscriptions.each_match(subject, |subscribers| found.extend_from_slice(&subscribers.all));
        found.sort_unstable();
        found
    }

    #[test]
    fn peers_hold_a_topic_once() {
        let mut peers = PeerSubscriptions::default();
        assert!(peers.add(b"t", B));
        assert!(!peers.add(b"t", B));
        assert!(!peers.add(b"t", A));
        assert_eq!(subscribers(&peers, b"topic"), [A, B]);
        assert_eq!(peers.len(), 1);
        assert_eq!(peers.remove(b"t", A), Removed::Remains);
        assert_eq!(peers.remove(b"t", A), Removed::Unknown);
        assert_eq!(peers.remove(b"u", A), Removed::Unknown);
        assert_eq!(peers.remove(b"t", PipeId(77)), Removed::Unknown);
        assert_eq!(peers.remove(b"t", B), Removed::Last);
        assert_eq!(peers.remove(b"t", B), Removed::Unknown);
        assert_eq!(peers.len(), 0);
        assert!(subscribers(&peers, b"topic").is_empty());
    }

    #[test]
    fn who_subscribes_again_stays_in_its_group() {
        let mut peers = PeerSubscriptions::default();
        let mut joined = 0;
        for pipe in [A, B] {
            peers.ungroup(pipe, |_| ());
            peers.add(b"t", pipe);
        }
        peers.regroup(|_| true, |_| joined += 1);
        assert_eq!(joined, 2);
        assert!(!peers.add(b"t", A));
        peers.each_match(b"t", |subscribers| {
            assert_eq!((subscribers.single.len(), subscribers.groups.len()), (0, 1))
        });
    }

    #[test]
    fn a_pipe_leaves_with_all_its_topics() {
        let mut peers = PeerSubscriptions::default();
        for topic in [&b"z"[..], b"b", b"", b"ab"] {
            peers.add(topic, A);
        }
        peers.add(b"b", B);
        let gone = peers.remove_pipe(A);
        let gone: Vec<(&[u8], bool)> = gone.iter().map(|(topic, last)| (&**topic, *last)).collect();
        assert_eq!(gone, [(&b""[..], true), (b"ab", true), (b"b", false), (b"z", true)]);
        assert!(peers.remove_pipe(A).is_empty());
        assert!(peers.remove_pipe(PipeId(500)).is_empty());
        assert_eq!(subscribers(&peers, b"bc"), [B]);
        assert_eq!(peers.len(), 1);
    }

    #[test]
    fn own_subscriptions_count() {
        let mut own = OwnSubscriptions::default();
        own.add(b"a");
        own.add(b"a");
        assert_eq!(own.len(), 1);
        assert!(!own.remove(b"a"));
        assert!(own.matches(b"abc", b""));
        assert!(own.remove(b"a"));
        assert!(!own.remove(b"a"));
        assert!(!own.matches(b"abc", b""));
        assert_eq!(own.iter().count(), 0);
    }

    #[test]
    fn a_subject_in_two_pieces_matches_like_a_whole_one() {
        let mut own = OwnSubscriptions::default();
        own.add(b"topic");
        for cut in 0..=8 {
            let (head, tail) = b"topic.ab".split_at(cut);
            assert!(own.matches(head, tail), "{cut}");
            let (head, tail) = b"topiX.ab".split_at(cut);
            assert!(!own.matches(head, tail), "{cut}");
        }
        assert!(!own.matches(b"top", b"i"));
        assert!(!own.match_all());
        own.add(b"");
        assert!(own.match_all() && own.matches(b"", b""));
    }
}
