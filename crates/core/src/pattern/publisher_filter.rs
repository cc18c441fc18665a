//! Permissions of publishers, as SUB and XSUB check them. There are two implementations; the usual
//! one allows everything and checks no message.

use crate::conn::PeerInfo;
use crate::host::topics::{AllowedTopics, TopicAction};
use crate::pipe::{Pipe, PipeId, Pipes, TopicAccess};
use tautline_queue::sync::Arc;

/// Decides on a message by its publisher.
pub(crate) trait PublisherFilter: Send + 'static {
    /// The permissions of a publisher.
    type Permissions;
    /// True if it may check messages even for sockets that want all messages.
    const CHECKS_UNFILTERED: bool;

    /// True if messages must be checked.
    fn must_check(&self) -> bool;

    /// Returns the permissions of a publisher.
    fn permissions_of(&self, pipe: &Pipe) -> Self::Permissions;

    /// Returns the topic if the publisher may not publish it. The first part of the message is
    /// `head` followed by `tail`.
    fn refused_topic(&self, may: &Self::Permissions, head: &[u8], tail: &[u8]) -> Option<Vec<u8>>;

    /// Counts and reports a dropped message with this topic.
    fn report_refusal(&mut self, pipes: &mut Pipes, id: PipeId, topic: &[u8]);

    /// Handles the connect of a publisher.
    fn add_peer(&mut self, id: PipeId, pipe: &Pipe);

    /// Handles the end of a publisher.
    fn remove_peer(&mut self, id: PipeId);
}

/// Filter that allows any publisher to publish any topic.
#[derive(Debug)]
pub(crate) struct Unrestricted;

impl PublisherFilter for Unrestricted {
    type Permissions = ();
    const CHECKS_UNFILTERED: bool = false;

    #[inline(always)]
    fn must_check(&self) -> bool {
        false
    }

    #[inline(always)]
    fn permissions_of(&self, _: &Pipe) {}

    #[inline(always)]
    fn refused_topic(&self, (): &(), _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn report_refusal(&mut self, _: &mut Pipes, _: PipeId, _: &[u8]) {}

    fn add_peer(&mut self, _: PipeId, _: &Pipe) {}

    fn remove_peer(&mut self, _: PipeId) {}
}

/// Filter that allows the topics that the policy and the program allow.
pub(crate) struct Restricted {
    keeper: Arc<dyn TopicAccess>,
    /// True if the policy limits a publisher, or has limited one.
    must_check: bool,
    /// Publishers for which a refusal was already reported.
    reported: Vec<PipeId>,
}

/// The permissions of a publisher.
pub(crate) struct PublisherPermissions {
    topics: Option<Arc<AllowedTopics>>,
    /// The publisher, for calls of [`TopicAccess`]. `None` if no such call is needed.
    peer: Option<PeerInfo>,
}

impl Restricted {
    pub(crate) fn new(keeper: Arc<dyn TopicAccess>) -> Self {
        Restricted { must_check: keeper.may_refuse(), keeper, reported: Vec::new() }
    }
}

impl PublisherFilter for Restricted {
    type Permissions = PublisherPermissions;
    const CHECKS_UNFILTERED: bool = true;

    fn must_check(&self) -> bool {
        self.must_check
    }

    fn permissions_of(&self, pipe: &Pipe) -> PublisherPermissions {
        // Both ends of inproc belong to one program.
        let peer = pipe.peer.info().filter(|_| !pipe.is_inproc());
        PublisherPermissions {
            topics: peer.and_then(|peer| peer.topics.clone()),
            peer: peer.filter(|_| self.keeper.may_refuse()).cloned(),
        }
    }

    fn refused_topic(
        &self,
        PublisherPermissions { topics, peer }: &PublisherPermissions,
        head: &[u8],
        tail: &[u8],
    ) -> Option<Vec<u8>> {
        if topics.is_none() && peer.is_none() {
            return None;
        }
        let topic = [head, tail].concat();
        let may = topics.as_ref().is_none_or(|topics| topics.allows(&topic))
            && peer.as_ref().is_none_or(|peer| self.keeper.allows(peer, TopicAction::Publish, &topic));
        (!may).then_some(topic)
    }

    fn report_refusal(&mut self, pipes: &mut Pipes, id: PipeId, topic: &[u8]) {
        pipes.shared.count_topic_refused();
        if let Some(peer) = pipes.get(id).and_then(|pipe| pipe.peer.info())
            && !self.reported.contains(&id)
        {
            self.reported.push(id);
            self.keeper.report_refusal(peer, TopicAction::Publish, topic);
        }
    }

    fn add_peer(&mut self, id: PipeId, pipe: &Pipe) {
        self.remove_peer(id);
        self.must_check |= pipe.peer.info().is_some_and(|peer| peer.topics.is_some());
    }

    fn remove_peer(&mut self, id: PipeId) {
        self.reported.retain(|told| *told != id);
    }
}
