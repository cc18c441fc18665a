//! Internal functions for the fuzzer; see `fuzz/` at the root of the repository. Not part of the
//! engine.

use crate::endpoint::{Endpoint, UdpEndpoint};
use crate::error::Error;
use crate::pattern::{Membership, OwnSubscriptions, PeerSubscriptions, Removal, SoleTarget};
use crate::pipe::PipeId;
use std::collections::{BTreeMap, BTreeSet};

/// Stops threads that have not kept a free block of memory yet from doing so. Then the counted
/// memory is the used memory, and a sanitizer detects a use after free.
pub fn keep_no_blocks() {
    tautline_mem::blocks::disable();
}

/// Parses an endpoint. Returns its canonical text, and two booleans: it can be bound, and it can be
/// connected to.
pub fn endpoint(text: &str) -> Result<(String, bool, bool), Error> {
    let endpoint = Endpoint::parse(text)?;
    if let Endpoint::Datagram(address) = &endpoint {
        UdpEndpoint::parse(address)?;
    }
    Ok((endpoint.to_string(), endpoint.check_bind().is_ok(), endpoint.check_connect().is_ok()))
}

/// The subscriptions of a subscriber.
#[derive(Default)]
pub struct Subscriber(OwnSubscriptions);

impl Subscriber {
    /// Adds one subscription to `topic`.
    pub fn add(&mut self, topic: &[u8]) {
        self.0.add(topic);
    }

    /// Removes one subscription to `topic`. Returns true if it was the last one.
    pub fn remove(&mut self, topic: &[u8]) -> bool {
        self.0.remove(topic)
    }

    /// The distinct topics, in no particular order.
    pub fn topics(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(<[u8]>::to_vec).collect()
    }

    /// True if a message matches. Its first part is `head` followed by `tail`.
    pub fn matches(&self, head: &[u8], tail: &[u8]) -> bool {
        self.0.matches(head, tail)
    }
}

/// The subscriptions of a publisher's peers. A peer is a number.
#[derive(Default)]
pub struct Publisher {
    subscriptions: PeerSubscriptions,
    /// The peers of each group, by the number of the group.
    groups: BTreeMap<u32, BTreeSet<u32>>,
}

impl Publisher {
    /// Subscribes `peer`. Returns true if no peer had the topic before.
    pub fn add(&mut self, topic: &[u8], peer: u32) -> bool {
        if !self.subscriptions.has(topic, PipeId(peer)) {
            self.ungroup(peer);
        }
        self.subscriptions.add(topic, PipeId(peer))
    }

    /// Unsubscribes `peer`. Returns true if it was the last peer with the topic, and `None` if it
    /// did not have it.
    pub fn remove(&mut self, topic: &[u8], peer: u32) -> Option<bool> {
        if self.subscriptions.has(topic, PipeId(peer)) {
            self.ungroup(peer);
        }
        match self.subscriptions.remove(topic, PipeId(peer)) {
            Removal::Unknown => None,
            removed => Some(removed == Removal::Last),
        }
    }

    /// Removes `peer`. Returns the topics without any peer left, in the order of the notices.
    pub fn end(&mut self, peer: u32) -> Vec<Vec<u8>> {
        self.ungroup(peer);
        let (pipe, mut told) = (PipeId(peer), Vec::new());
        self.subscriptions.leave(pipe, true);
        while self.subscriptions.is_leaving(pipe) {
            self.subscriptions.remove_some_leaving(Some(pipe), |_, topic, last| {
                if last {
                    told.push(topic.to_vec());
                }
            });
        }
        told
    }

    fn ungroup(&mut self, peer: u32) {
        let Publisher { subscriptions, groups } = self;
        subscriptions.ungroup(PipeId(peer), |change| regrouped(groups, change));
    }

    /// Groups the peers with the same subscriptions.
    pub fn regroup(&mut self) {
        let Publisher { subscriptions, groups } = self;
        subscriptions.regroup(|_| true, |change| regrouped(groups, change));
    }

    /// Number of distinct topics.
    pub fn topics(&self) -> usize {
        self.subscriptions.len()
    }

    /// The peers that get a message with this subject, in ascending order. A peer occurs twice if
    /// it gets the message both by a group and singly.
    pub fn matching(&self, subject: &[u8]) -> Vec<u32> {
        let (mut single, mut grouped) = (BTreeSet::new(), BTreeSet::new());
        self.subscriptions.for_each_match(subject, |subscribers| {
            single.extend(subscribers.single().iter().map(|pipe| pipe.0));
            grouped.extend(subscribers.groups().iter().flat_map(|group| &self.groups[group]));
        });
        let mut all: Vec<u32> = single.into_iter().chain(grouped).collect();
        all.sort_unstable();
        all
    }

    /// The peer or group that gets every message, if it is known to be the only one.
    pub fn sole(&mut self) -> Option<Vec<u32>> {
        match self.subscriptions.sole() {
            SoleTarget::Pipe(pipe) => Some(vec![pipe.0]),
            SoleTarget::Group(group) => Some(self.groups[&group].iter().copied().collect()),
            SoleTarget::Nobody | SoleTarget::Unknown => None,
        }
    }
}

fn regrouped(groups: &mut BTreeMap<u32, BTreeSet<u32>>, change: Membership) {
    match change {
        Membership::Joined(group, pipe) => drop(groups.entry(group).or_default().insert(pipe.0)),
        Membership::Left(group, pipe) => drop(groups.entry(group).or_default().remove(&pipe.0)),
    }
}
