//! Peers by routing id: the common part of ROUTER and STREAM (RFC 28).
//!
//! [`RoutingIds`] finds the pipe of a routing id. The table is used only if the id is not the
//! expected one (`Pipes::address_cache`). [`RoutingIds`] also generates ids for peers without one.
//! [`PeerNotices`] holds the messages that are received before any message from the peers:
//! notifications of connects and disconnects, and the messages of peers that have lost their ids.

use super::hash::SeededHash;
use super::rotation::move_message;
use crate::error::NoMemory;
use crate::pipe::{Delivered, Pipe, PipeId, Pipes, Target};
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use tautline_queue::message::Message;

/// The routing ids of the addressable pipes. `Peer::routing_id` holds the id of each pipe, and
/// `Pipes::address_cache` the part of it that is compared first.
#[derive(Debug)]
pub(crate) struct RoutingIds {
    pipes: HashMap<Vec<u8>, PipeId, SeededHash>,
    /// Number of the next generated id.
    next: u32,
}

impl Default for RoutingIds {
    fn default() -> Self {
        let hash = SeededHash::default();
        // Ids start at a random number, so that an old id does not name a peer of the next socket.
        let next = hash.hash_one(0_u32) as u32;
        RoutingIds { pipes: HashMap::with_hasher(hash), next }
    }
}

impl RoutingIds {
    /// Generates an unused id: a zero byte, which may not begin a peer's own id, and a number.
    pub(crate) fn make(&mut self) -> Vec<u8> {
        loop {
            let mut id = vec![0];
            id.extend_from_slice(&self.next.to_be_bytes());
            self.next = self.next.wrapping_add(1);
            if !self.pipes.contains_key(&id) {
                return id;
            }
        }
    }

    /// The pipe of this routing id, for sending a message.
    #[inline]
    pub(crate) fn find(&self, pipes: &mut Pipes, routing_id: &[u8]) -> Option<PipeId> {
        pipes.find(routing_id, || self.holder(routing_id))
    }

    /// The pipe of this routing id, looked up without remembering it.
    pub(crate) fn holder(&self, routing_id: &[u8]) -> Option<PipeId> {
        self.pipes.get(routing_id).copied()
    }

    /// Gives a routing id to a pipe. The id must be free.
    pub(crate) fn insert(&mut self, pipes: &mut Pipes, id: PipeId, routing_id: Vec<u8>) {
        let Some(pipe) = pipes.get(id) else { return };
        pipe.peer.routing_id.clone_from(&routing_id);
        pipes.address_cache.insert(id, &routing_id);
        self.pipes.insert(routing_id, id);
    }

    /// Takes the routing id from a pipe, if it has one.
    pub(crate) fn remove(&mut self, pipes: &mut Pipes, id: PipeId) -> Option<Vec<u8>> {
        let routing_id = std::mem::take(&mut pipes.get(id)?.peer.routing_id);
        if self.holder(&routing_id) != Some(id) {
            return None;
        }
        self.pipes.remove(&routing_id);
        pipes.address_cache.remove(id);
        Some(routing_id)
    }

    /// The addressable pipes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PipeId> {
        self.pipes.values().copied()
    }
}

/// Messages that are received before any message from the peers, in order: notifications of a
/// connect or disconnect (a routing id and an empty part), and messages of peers that have lost
/// their ids.
#[derive(Debug, Default)]
pub(crate) struct PeerNotices {
    parts: VecDeque<Message>,
}

impl PeerNotices {
    /// Adds a notification about `pipe`, whose id is `routing_id`. Drops it if there is no memory.
    pub(crate) fn push(&mut self, pipe: &Pipe, routing_id: &[u8]) {
        if self.push_routing_id(pipe, routing_id).is_ok() {
            let mut part = Message::new();
            part.set_metadata(pipe.peer.metadata());
            self.parts.push_back(part);
        }
    }

    /// Adds the first part of a message, and reserves room for a second one.
    fn push_routing_id(&mut self, pipe: &Pipe, routing_id: &[u8]) -> Result<(), NoMemory> {
        let mut part = Message::try_from_slice(routing_id).ok_or(NoMemory)?;
        self.parts.try_reserve(2)?;
        part.set_more(true);
        part.set_metadata(pipe.peer.metadata());
        self.parts.push_back(part);
        Ok(())
    }

    /// Moves the next message of `pipe` here, under `routing_id`. Drops the message if there is no
    /// memory. Returns false if there is no message.
    pub(crate) fn take(&mut self, pipe: &mut Pipe, routing_id: &[u8]) -> bool {
        if !pipe.can_recv() {
            return false;
        }
        let before = self.parts.len();
        let kept = self.push_routing_id(pipe, routing_id).and_then(|()| move_message(pipe, &mut self.parts));
        if kept != Ok(true) {
            self.parts.truncate(before);
        }
        kept.unwrap_or_else(|_| {
            pipe.skip_message();
            pipe.outgoing.drop_message();
            pipe.can_recv()
        })
    }

    /// True if there are no messages here.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Delivers the next part.
    pub(crate) fn recv(&mut self, target: &mut Target<'_>) -> Option<Delivered> {
        self.parts.pop_front().map(|part| target.put_message(part))
    }
}
