//! Permissions of publishers, as SUB and XSUB check them. There are two implementations; the usual
//! one allows everything and checks no message.

use crate::conn::PeerInfo;
use crate::pipe::{Keeper, Pipe, PipeId, Pipes};
use crate::sync::Arc;
use tautline_policy::{Act, Topics};

/// Decides on a message by its publisher.
pub(crate) trait Sieve: Send + 'static {
    /// The permissions of a publisher.
    type May;
    /// True if it may check messages even for sockets that want all messages.
    const OF_ALL: bool;

    /// True if messages must be checked.
    fn looks(&self) -> bool;

    /// Returns the permissions of a publisher.
    fn may(&self, pipe: &Pipe) -> Self::May;

    /// Returns the topic if the publisher may not publish it. The first part of the message is
    /// `head` followed by `tail`.
    fn refused(&self, may: &Self::May, head: &[u8], tail: &[u8]) -> Option<Vec<u8>>;

    /// Counts and reports a dropped message with this topic.
    fn tell(&mut self, pipes: &mut Pipes, id: PipeId, topic: &[u8]);

    /// Handles the connect of a publisher.
    fn met(&mut self, id: PipeId, pipe: &Pipe);

    /// Handles the end of a publisher.
    fn left(&mut self, id: PipeId);
}

/// Any publisher may publish any topic.
#[derive(Debug)]
pub(crate) struct Open;

impl Sieve for Open {
    type May = ();
    const OF_ALL: bool = false;

    #[inline(always)]
    fn looks(&self) -> bool {
        false
    }

    #[inline(always)]
    fn may(&self, _: &Pipe) {}

    #[inline(always)]
    fn refused(&self, (): &(), _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn tell(&mut self, _: &mut Pipes, _: PipeId, _: &[u8]) {}

    fn met(&mut self, _: PipeId, _: &Pipe) {}

    fn left(&mut self, _: PipeId) {}
}

/// Publishers may publish the topics that the policy and the program allow.
pub(crate) struct Kept {
    keeper: Arc<dyn Keeper>,
    /// True if the policy limits a publisher, or has limited one.
    looks: bool,
    /// Publishers for which a refusal was already reported.
    told: Vec<PipeId>,
}

/// The permissions of a publisher.
pub(crate) struct May {
    topics: Option<Arc<Topics>>,
    /// The publisher, for requests to the keeper. `None` if the keeper is not asked.
    peer: Option<PeerInfo>,
}

impl Kept {
    pub(crate) fn new(keeper: Arc<dyn Keeper>) -> Self {
        Kept { looks: keeper.asks(), keeper, told: Vec::new() }
    }
}

impl Sieve for Kept {
    type May = May;
    const OF_ALL: bool = true;

    fn looks(&self) -> bool {
        self.looks
    }

    fn may(&self, pipe: &Pipe) -> May {
        // Both ends of inproc belong to one program.
        let peer = pipe.peer.info().filter(|_| !pipe.is_inproc());
        May {
            topics: peer.and_then(|peer| peer.topics.clone()),
            peer: peer.filter(|_| self.keeper.asks()).cloned(),
        }
    }

    fn refused(&self, May { topics, peer }: &May, head: &[u8], tail: &[u8]) -> Option<Vec<u8>> {
        if topics.is_none() && peer.is_none() {
            return None;
        }
        let topic = [head, tail].concat();
        let may = topics.as_ref().is_none_or(|topics| topics.has(&topic))
            && peer.as_ref().is_none_or(|peer| self.keeper.lets(peer, Act::Publish, &topic));
        (!may).then_some(topic)
    }

    fn tell(&mut self, pipes: &mut Pipes, id: PipeId, topic: &[u8]) {
        pipes.left.count_topic_refused();
        if let Some(peer) = pipes.get(id).and_then(|pipe| pipe.peer.info())
            && !self.told.contains(&id)
        {
            self.told.push(id);
            self.keeper.refused(peer, Act::Publish, topic);
        }
    }

    fn met(&mut self, id: PipeId, pipe: &Pipe) {
        self.left(id);
        self.looks |= pipe.peer.info().is_some_and(|peer| peer.topics.is_some());
    }

    fn left(&mut self, id: PipeId) {
        self.told.retain(|told| *told != id);
    }
}
