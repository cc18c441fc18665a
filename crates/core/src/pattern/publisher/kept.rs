//! A publisher whose peers may not all subscribe to everything.

use super::super::permits::{By, Granted};
use super::Publisher;
use crate::error::Error;
use crate::message::Message;
use crate::pipe::{PipeId, Pipes};

/// Whether a peer has not shaken hands as far as the owner knows. (What comes over inproc is the
/// program's own.)
pub(super) fn is_unknown(pipes: &mut Pipes, id: PipeId) -> bool {
    pipes.get(id).is_some_and(|pipe| !pipe.is_inproc() && pipe.peer.info().is_none())
}

impl Publisher {
    /// A peer tells that it wants a topic or does not want it any more.
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

    /// As `apply`, as far as it is granted.
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
        match permits.grant(pipes, id, By::Peer, subscribe, topic) {
            Granted::Whole => self.apply_one(pipes, id, frame, subscribe, topic),
            Granted::These(topics) => {
                for topic in topics {
                    self.apply_one(pipes, id, frame, subscribe, &topic);
                }
            }
        }
    }

    /// The end of a subscription that was refused is none.
    fn apply_one(&mut self, pipes: &mut Pipes, id: PipeId, frame: &Message, subscribe: bool, topic: &[u8]) {
        let manual = pipes.options.xpub_manual;
        let topics = if manual { &self.requested } else { &self.subscriptions };
        if self.distribution.contains(id) && (subscribe || topics.has(topic, id)) {
            self.apply(pipes, id, frame, subscribe, topic);
        }
    }

    /// As `give`, as far as it is granted.
    #[cold]
    pub(super) fn give_granted(
        &mut self,
        pipes: &mut Pipes,
        topic: &[u8],
        subscribe: bool,
    ) -> Result<(), Error> {
        let (Some(permits), Some(last)) = (&mut self.permits, self.last) else { return Ok(()) };
        match permits.grant(pipes, last, By::Program, subscribe, topic) {
            Granted::Whole => self.give(pipes, topic, subscribe),
            Granted::These(topics) => topics.iter().try_for_each(|topic| self.give(pipes, topic, subscribe)),
        }
    }

    /// A peer is there, again perhaps. If it may do something else than before, what it has told
    /// before does not count: it tells it again.
    #[cold]
    pub(super) fn met_again(&mut self, pipes: &mut Pipes, id: PipeId) {
        let Some(permits) = &mut self.permits else { return };
        if !permits.met(pipes, id) {
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
