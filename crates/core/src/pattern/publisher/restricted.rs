//! A publisher whose peers have limited subscription permissions.

use super::super::subscription_permissions::{Granted, Requester};
use super::Publisher;
use crate::error::Error;
use crate::pipe::{PipeId, Pipes};
use tautline_queue::message::Message;

/// True if the owner does not know yet that the peer has completed its handshake. (Inproc peers
/// belong to the program itself.)
pub(super) fn awaits_handshake(pipes: &mut Pipes, id: PipeId) -> bool {
    pipes.get(id).is_some_and(|pipe| !pipe.is_inproc() && pipe.peer.info().is_none())
}

impl Publisher {
    /// Handles a subscription or cancellation of a peer.
    pub(super) fn take_subscription(
        &mut self,
        pipes: &mut Pipes,
        id: PipeId,
        frame: &Message,
        subscribe: bool,
        topic: &[u8],
    ) {
        if self.permits.is_some() {
            self.apply_granted(pipes, id, frame, subscribe, topic);
        } else {
            self.apply(pipes, id, frame, subscribe, topic);
        }
    }

    /// Applies a peer's subscription or cancellation, limited to the granted topics.
    #[cold]
    fn apply_granted(
        &mut self,
        pipes: &mut Pipes,
        id: PipeId,
        frame: &Message,
        subscribe: bool,
        topic: &[u8],
    ) {
        let Some(permits) = &mut self.permits else { return };
        match permits.grant(pipes, id, Requester::Peer, subscribe, topic) {
            Granted::Unchanged => self.apply_one(pipes, id, frame, subscribe, topic),
            Granted::Narrowed(topics) => {
                for topic in topics {
                    self.apply_one(pipes, id, frame, subscribe, &topic);
                }
            }
        }
    }

    /// Applies one topic. Ignores the cancellation of a refused subscription.
    fn apply_one(&mut self, pipes: &mut Pipes, id: PipeId, frame: &Message, subscribe: bool, topic: &[u8]) {
        let manual = pipes.options.xpub_manual;
        let topics = if manual { &self.requested } else { &self.subscriptions };
        if self.distribution.contains(id) && (subscribe || topics.has(topic, id)) {
            self.apply(pipes, id, frame, subscribe, topic);
        }
    }

    /// Subscribes or unsubscribes the peer that the program has heard of last (ZMQ_XPUB_MANUAL),
    /// limited to the granted topics.
    #[cold]
    pub(super) fn apply_manual_granted(
        &mut self,
        pipes: &mut Pipes,
        topic: &[u8],
        subscribe: bool,
    ) -> Result<(), Error> {
        let (Some(permits), Some(last)) = (&mut self.permits, self.last) else { return Ok(()) };
        match permits.grant(pipes, last, Requester::Program, subscribe, topic) {
            Granted::Unchanged => self.apply_manual(pipes, topic, subscribe),
            Granted::Narrowed(topics) => {
                topics.iter().try_for_each(|topic| self.apply_manual(pipes, topic, subscribe))
            }
        }
    }

    /// Handles the connect or reconnect of a peer. If its permissions have changed, its earlier
    /// subscriptions are void, because it sends them again.
    #[cold]
    pub(super) fn update_permissions(&mut self, pipes: &mut Pipes, id: PipeId) {
        let Some(permits) = &mut self.permits else { return };
        if !permits.update_peer(pipes, id) {
            return;
        }
        let frame = Message::new();
        if pipes.options.xpub_manual {
            for topic in self.requested.topics_of(id) {
                self.apply(pipes, id, &frame, false, &topic);
            }
            for topic in self.subscriptions.topics_of(id) {
                self.ungroup(pipes, id, false, &topic);
                self.subscriptions.remove(&topic, id);
            }
        } else {
            for topic in self.subscriptions.topics_of(id) {
                self.apply(pipes, id, &frame, false, &topic);
            }
        }
    }
}
