//! Permissions of subscribers, as PUB and XPUB check them.
//!
//! A subscription covers all topics that begin with it. If the policy grants the peer all of them,
//! the subscription is accepted unchanged. If the subscription asks for more, as the empty one
//! usually does, it is narrowed: the policy's prefixes that begin with its topic replace it. So a
//! peer receives only messages that it may see, and a program that does not know the policy gets
//! all that it may have. A subscription without any granted topic is refused.

use crate::host::topics::{AllowedTopics, TopicAction};
use crate::pipe::{PipeId, Pipes, TopicAccess};
use tautline_queue::sync::Arc;

/// The subscription permissions of the peers of a socket.
pub(super) struct SubscriptionPermissions {
    keeper: Arc<dyn TopicAccess>,
    /// The permissions of each peer, indexed by the number of its pipe.
    peers: Vec<PeerPermissions>,
}

/// The permissions of one peer.
#[derive(Default)]
struct PeerPermissions {
    topics: Option<Arc<AllowedTopics>>,
    /// Requested topics that were narrowed to granted prefixes. Each is a beginning of a granted
    /// prefix, so their number is bounded.
    narrowed_for_peer: Vec<Vec<u8>>,
    /// Topics that the program has subscribed the peer to (ZMQ_XPUB_MANUAL) and that were narrowed
    /// in the same way.
    narrowed_for_program: Vec<Vec<u8>>,
    /// True if a refusal of this peer was already reported.
    refusal_reported: bool,
}

/// Result of a subscription or cancellation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Granted {
    /// The subscription or cancellation is accepted unchanged.
    Unchanged,
    /// These topics replace the requested topic. Empty if there is no change.
    Narrowed(Vec<Vec<u8>>),
}

/// The party that subscribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requester {
    /// The peer.
    Peer,
    /// The program, for the peer (ZMQ_XPUB_MANUAL).
    Program,
}

impl SubscriptionPermissions {
    pub(super) fn new(keeper: Arc<dyn TopicAccess>) -> Self {
        SubscriptionPermissions { keeper, peers: Vec::new() }
    }

    /// Handles the connect or reconnect of a peer. Returns true if its permissions differ from
    /// before.
    pub(super) fn update_peer(&mut self, pipes: &mut Pipes, id: PipeId) -> bool {
        let topics = pipes.get(id).and_then(|pipe| pipe.peer.info()?.topics.clone());
        let permit = permit_of(&mut self.peers, id);
        permit.refusal_reported = false;
        let differs = permit.topics != topics;
        if differs {
            *permit = PeerPermissions { topics, ..PeerPermissions::default() };
        }
        differs
    }

    /// Removes a peer that is gone.
    pub(super) fn remove_peer(&mut self, id: PipeId) {
        *permit_of(&mut self.peers, id) = PeerPermissions::default();
    }

    /// Decides on a subscription to a topic, or on its cancellation.
    pub(super) fn grant(
        &mut self,
        pipes: &mut Pipes,
        id: PipeId,
        by: Requester,
        subscribe: bool,
        topic: &[u8],
    ) -> Granted {
        // Both ends of inproc belong to one program.
        let Some(pipe) = pipes.get(id).filter(|pipe| !pipe.is_inproc()) else {
            return Granted::Unchanged;
        };
        let Some(peer) = pipe.peer.info() else { return Granted::Unchanged };
        let permit = permit_of(&mut self.peers, id);
        let lets =
            !subscribe || by == Requester::Program || self.keeper.allows(peer, TopicAction::Subscribe, topic);
        let granted = if lets { permit.grant(by, subscribe, topic) } else { None };
        if let Some(granted) = granted {
            return granted;
        }
        if subscribe {
            if !std::mem::replace(&mut permit.refusal_reported, true) {
                self.keeper.report_refusal(peer, TopicAction::Subscribe, topic);
            }
            pipes.shared.count_topic_refused();
        }
        Granted::Narrowed(Vec::new())
    }

    /// True if the peer may see a message (for ZMQ_INVERT_MATCHING, where subscriptions do not
    /// limit the messages).
    pub(super) fn may_see(&self, id: PipeId, subject: &[u8]) -> bool {
        let topics = self.peers.get(id.0 as usize).and_then(|permit| permit.topics.as_ref());
        topics.is_none_or(|topics| topics.allows(subject))
    }
}

fn permit_of(peers: &mut Vec<PeerPermissions>, id: PipeId) -> &mut PeerPermissions {
    let number = id.0 as usize;
    if number >= peers.len() {
        peers.resize_with(number + 1, PeerPermissions::default);
    }
    &mut peers[number]
}

impl PeerPermissions {
    /// Returns `None` if the subscription is refused.
    fn grant(&mut self, by: Requester, subscribe: bool, topic: &[u8]) -> Option<Granted> {
        let Some(topics) = &self.topics else { return Some(Granted::Unchanged) };
        let mut within: Vec<_> = topics.within(topic).map(<[u8]>::to_vec).collect();
        if within.is_empty() {
            return topics.allows(topic).then_some(Granted::Unchanged);
        }
        let asked =
            if by == Requester::Peer { &mut self.narrowed_for_peer } else { &mut self.narrowed_for_program };
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
        Some(Granted::Narrowed(within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit(prefixes: &[&str]) -> PeerPermissions {
        let topics = AllowedTopics::new(prefixes.iter().map(|prefix| prefix.as_bytes().to_vec()), "x");
        PeerPermissions { topics: Some(Arc::new(topics)), ..PeerPermissions::default() }
    }

    fn these(topics: &[&str]) -> Option<Granted> {
        Some(Granted::Narrowed(topics.iter().map(|topic| topic.as_bytes().to_vec()).collect()))
    }

    #[test]
    fn subscription_is_narrowed_to_granted_topics() {
        let mut one = permit(&["a/", "b/x", "b/y"]);
        let mut on = |topic: &str| one.grant(Requester::Peer, true, topic.as_bytes());
        assert_eq!(on("a/1"), Some(Granted::Unchanged));
        assert_eq!(on("c"), None);
        assert_eq!(on("b/z"), None);
        assert_eq!(on("b/"), these(&["b/x", "b/y"]));
        assert_eq!(on(""), these(&["a/", "b/x", "b/y"]));
        assert_eq!(on("b/x"), these(&["b/x"]));
        let mut off = |topic: &str| one.grant(Requester::Peer, false, topic.as_bytes());
        assert_eq!(off(""), these(&["a/"]), "`b/` and `b/x` ask for the others");
        assert_eq!(off(""), these(&[]));
        assert_eq!(off("b/"), these(&["b/y"]));
        assert_eq!(off("b/x"), these(&["b/x"]));
        assert_eq!(off("a/1"), Some(Granted::Unchanged));
        assert_eq!(off("c"), None);
        assert!(one.narrowed_for_peer.is_empty());
    }

    #[test]
    fn program_and_peer_subscriptions_are_separate() {
        let mut one = permit(&["a/"]);
        assert_eq!(one.grant(Requester::Peer, true, b""), these(&["a/"]));
        assert_eq!(one.grant(Requester::Program, true, b"a"), these(&["a/"]));
        assert_eq!(one.grant(Requester::Program, false, b"a"), these(&["a/"]));
        assert_eq!(one.grant(Requester::Peer, false, b""), these(&["a/"]));
        assert_eq!(permit(&[]).grant(Requester::Peer, true, b""), None);
    }
}
