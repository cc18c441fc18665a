//! Which subscribers may subscribe to what, as PUB and XPUB look at it.
//!
//! A subscription to all that begins with a topic is granted as it is, if the policy grants the
//! peer all of that. One that asks for more, as the empty one mostly does, is narrowed: in its
//! place stand those prefixes of the policy that begin with it. So only what may be seen is ever
//! sent, and a program that knows nothing of the policy gets all that it may have. One that has
//! nothing in common with what is granted is refused.

use crate::pipe::{Keeper, PipeId, Pipes};
use crate::sync::Arc;
use tautline_policy::{Act, Topics};

/// What the peers of a socket may subscribe to.
pub(super) struct Permits {
    keeper: Arc<dyn Keeper>,
    /// By number of the pipe.
    peers: Vec<Permit>,
}

/// What one peer may subscribe to.
#[derive(Default)]
struct Permit {
    topics: Option<Arc<Topics>>,
    /// The topics that it has asked for of which granted prefixes stand for it: no more than these
    /// have beginnings.
    asked: Vec<Vec<u8>>,
    /// What the program has subscribed it to, of the same kind (ZMQ_XPUB_MANUAL).
    given: Vec<Vec<u8>>,
    /// Something was told of it already.
    told: bool,
}

/// What becomes of a subscription or its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Granted {
    /// It counts as it is.
    Whole,
    /// These count in its place; none, if nothing changes.
    These(Vec<Vec<u8>>),
}

/// Whose subscription it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The peer has told it.
    Peer,
    /// The program has set it for the peer (ZMQ_XPUB_MANUAL).
    Program,
}

impl Permits {
    pub(super) fn new(keeper: Arc<dyn Keeper>) -> Self {
        Permits { keeper, peers: Vec::new() }
    }

    /// The peer is there, again perhaps; whether it may subscribe to something else than before.
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

    /// It has gone.
    pub(super) fn left(&mut self, id: PipeId) {
        *permit_of(&mut self.peers, id) = Permit::default();
    }

    /// What becomes of a subscription to a topic, or of its end.
    pub(super) fn grant(
        &mut self,
        pipes: &mut Pipes,
        id: PipeId,
        by: By,
        subscribe: bool,
        topic: &[u8],
    ) -> Granted {
        // Both ends of inproc are one program.
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

    /// Whether the peer may see a message (ZMQ_INVERT_MATCHING, where subscriptions do not say so).
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
    /// `None`: it is refused.
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
            // What another one asks for stays.
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
