//! Which publishers may publish what, as SUB and XSUB look at it: two kinds of subscribers, of
//! which the usual one does not look.

use crate::conn::PeerInfo;
use crate::pipe::{Keeper, Pipe, PipeId, Pipes};
use crate::sync::Arc;
use tautline_policy::{Act, Topics};

/// Decides by where a message comes from.
pub(crate) trait Sieve: Send + 'static {
    /// What is known of a publisher.
    type May;
    /// It may look at the messages of sockets that want all.
    const OF_ALL: bool;

    /// Whether messages must be looked at.
    fn looks(&self) -> bool;

    /// What a publisher may do.
    fn may(&self, pipe: &Pipe) -> Self::May;

    /// The topic, if it may not publish a message whose first part is `head` followed by `tail`.
    fn refused(&self, may: &Self::May, head: &[u8], tail: &[u8]) -> Option<Vec<u8>>;

    /// A message with this topic is dropped.
    fn tell(&mut self, pipes: &mut Pipes, id: PipeId, topic: &[u8]);

    /// The publisher is there.
    fn met(&mut self, id: PipeId, pipe: &Pipe);

    /// It has gone.
    fn left(&mut self, id: PipeId);
}

/// Any publisher may publish anything.
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

/// Publishers may publish what the policy and the program let them.
pub(crate) struct Kept {
    keeper: Arc<dyn Keeper>,
    /// The policy has something to say about one of them, or had.
    looks: bool,
    /// Of these something was told already.
    told: Vec<PipeId>,
}

/// What a publisher may do.
pub(crate) struct May {
    topics: Option<Arc<Topics>>,
    /// What the keeper is asked with, where it is.
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
        // Both ends of inproc are one program.
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
