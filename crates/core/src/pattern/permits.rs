//! Permissions of subscribers, as PUB and XPUB check them.
//!
//! A subscription covers all topics that begin with it. If the policy grants the peer all of them,
//! the subscription is accepted unchanged. If it asks for more, as the empty subscription usually
//! does, it is narrowed: it is replaced by the policy's prefixes that begin with it. So a peer
//! receives only messages that it may see, and a program that does not know the policy gets all
//! that it may have. A subscription without any granted topic is refused.

use crate::pipe::{Keeper, PipeId, Pipes};
use crate::sync::Arc;
use tautline_policy::{Act, Topics};

/// The subscription permissions of the peers of a socket.
pub(super) struct Permits {
    keeper: Arc<dyn Keeper>,
    /// By pipe number.
    peers: Vec<Permit>,
}

/// The permissions of one peer.
#[derive(Default)]
struct Permit {
    topics: Option<Arc<Topics>>,
    /// Requested topics that were narrowed to granted prefixes. Each is a beginning of a granted
    /// prefix, so their number is bounded.
    asked: Vec<Vec<u8>>,
    /// Topics of the same kind that the program has subscribed the peer to (ZMQ_XPUB_MANUAL).
    given: Vec<Vec<u8>>,
    /// True if a refusal of this peer was already reported.
    told: bool,
}

/// Result of a subscription or cancellation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Granted {
    /// It is accepted unchanged.
    Whole,
    /// These topics replace it. Empty if there is no change.
    These(Vec<Vec<u8>>),
}

/// The party that subscribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The peer.
    Peer,
    /// The program, for the peer (ZMQ_XPUB_MANUAL).
    Program,
}

impl Permits {
    pub(super) fn new(keeper: Arc<dyn Keeper>) -> Self {
        Permits { keeper, peers: Vec::new() }
    }

    /// Handles the connect or reconnect of a peer. Returns true if its permissions differ from
    /// before.
    pub(super) fn met(&mut self, pipes: &mut Pipes, id: PipeId) -> bool {
        let topics = pipes.get(id).and_then(|pipe| pipe.peer.info()?.topics.clone());
        let permit = permit_of(&mut self.peers, id);
        permit.told = false;
        let differs = permit.topics != topics;
        if differs {
            *permit = Permit { topics, ..Permit::default() };
        }
        differs
    }

    /// Removes a peer that is gone.
    pub(super) fn left(&mut self, id: PipeId) {
        *permit_of(&mut self.peers, id) = Permit::default();
    }

    /// Decides on a subscription to a topic, or on its cancellation.
    pub(super) fn grant(
        &mut self,
        pipes: &mut Pipes,
        id: PipeId,
        by: By,
        subscribe: bool,
        topic: &[u8],
    ) -> Granted {
        // Both ends of inproc belong to one program.
        let Some(pipe) = pipes.get(id).filter(|pipe| !pipe.is_inproc()) else {
            return Granted::Whole;
        };
        let Some(peer) = pipe.peer.info() else { return Granted::Whole };
        let permit = permit_of(&mut self.peers, id);
        let lets = !subscribe || by == By::Program || self.keeper.lets(peer, Act::Subscribe, topic);
        let granted = if lets { permit.grant(by, subscribe, topic) } else { None };
        if let Some(granted) = granted {
            return granted;
        }
        if subscribe {
            if !std::mem::replace(&mut permit.told, true) {
                self.keeper.refused(peer, Act::Subscribe, topic);
            }
            pipes.left.count_topic_refused();
        }
        Granted::These(Vec::new())
    }

    /// True if the peer may see a message (for ZMQ_INVERT_MATCHING, where subscriptions do not
    /// limit the messages).
    pub(super) fn may_see(&self, id: PipeId, subject: &[u8]) -> bool {
        let topics = self.peers.get(id.0 as usize).and_then(|permit| permit.topics.as_ref());
        topics.is_none_or(|topics| topics.has(subject))
    }
}

fn permit_of(peers: &mut Vec<Permit>, id: PipeId) -> &mut Permit {
    let number = id.0 as usize;
    if number >= peers.len() {
        peers.resize_with(number + 1, Permit::default);
    }
    &mut peers[number]
}

impl Permit {
    /// Returns `None` if the subscription is refused.
    fn grant(&mut self, by: By, subscribe: bool, topic: &[u8]) -> Option<Granted> {
        let Some(topics) = &self.topics else { return Some(Granted::Whole) };
        let mut within: Vec<_> = topics.within(topic).map(<[u8]>::to_vec).collect();
        if within.is_empty() {
            return topics.has(topic).then_some(Granted::Whole);
        }
        let asked = if by == By::Peer { &mut self.asked } else { &mut self.given };
        let known = asked.iter().position(|other| other == topic);
        if subscribe {
            if known.is_none() {
                asked.push(topic.to_vec());
            }
        } else if let Some(known) = known {
            asked.swap_remove(known);
            // Keep the prefixes that another narrowed topic still needs.
            within.retain(|prefix| !asked.iter().any(|other| prefix.starts_with(other)));
        } else {
            within.clear();
        }
        Some(Granted::These(within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit(prefixes: &[&str]) -> Permit {
        let topics = Topics::new(prefixes.iter().map(|prefix| prefix.as_bytes().to_vec()), "x");
        Permit { topics: Some(Arc::new(topics)), ..Permit::default() }
    }

    fn these(topics: &[&str]) -> Option<Granted> {
        Some(Granted::These(topics.iter().map(|topic| topic.as_bytes().to_vec()).collect()))
    }

    #[test]
    fn a_subscription_is_narrowed_to_what_is_granted() {
        let mut one = permit(&["a/", "b/x", "b/y"]);
        let mut on = |topic: &str| one.grant(By::Peer, true, topic.as_bytes());
        assert_eq!(on("a/1"), Some(Granted::Whole));
        assert_eq!(on("c"), None);
        assert_eq!(on("b/z"), None);
        assert_eq!(on("b/"), these(&["b/x", "b/y"]));
        assert_eq!(on(""), these(&["a/", "b/x", "b/y"]));
        assert_eq!(on("b/x"), these(&["b/x"]));
        let mut off = |topic: &str| one.grant(By::Peer, false, topic.as_bytes());
        assert_eq!(off(""), these(&["a/"]), "`b/` and `b/x` ask for the others");
        assert_eq!(off(""), these(&[]));
        assert_eq!(off("b/"), these(&["b/y"]));
        assert_eq!(off("b/x"), these(&["b/x"]));
        assert_eq!(off("a/1"), Some(Granted::Whole));
        assert_eq!(off("c"), None);
        assert!(one.asked.is_empty());
    }

    #[test]
    fn what_the_program_gives_is_counted_by_itself() {
        let mut one = permit(&["a/"]);
        assert_eq!(one.grant(By::Peer, true, b""), these(&["a/"]));
        assert_eq!(one.grant(By::Program, true, b"a"), these(&["a/"]));
        assert_eq!(one.grant(By::Program, false, b"a"), these(&["a/"]));
        assert_eq!(one.grant(By::Peer, false, b""), these(&["a/"]));
        assert_eq!(permit(&[]).grant(By::Peer, true, b""), None);
    }
}
