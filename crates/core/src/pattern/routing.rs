//! Peers by name: what ROUTER and STREAM have in common (RFC 28).
//!
//! [`RoutingIds`] finds the pipe of a routing id and makes ids for peers that bring none. Programs that have something for each of many
//! peers mostly have it in the same order every time, so it remembers who came after whom: then a message costs no look at the hash
//! table, and the next peers' memory is on its way to the cache while this one's message is written. [`Notices`] holds the notifications that
//! a peer has come or gone, each two parts: the routing id and an empty one.

use super::hash::SeededHash;
use crate::message::{Message, Metadata};
use crate::pipe::{Pipe, PipeId, Pipes, Received, Target};
use crate::sync::Arc;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;

/// The names of the pipes that can be addressed. `Pipe::routing_id` holds the name of each.
#[derive(Debug)]
pub(crate) struct RoutingIds {
    pipes: HashMap<Vec<u8>, PipeId, SeededHash>,
    /// By number of the pipe.
    places: Vec<Place>,
    /// The pipe last used: most messages go where the one before went, or came from.
    last: Option<PipeId>,
    /// Number of the next id to make.
    next: u32,
}

/// Longest routing id that is compared in place.
const SHORT: usize = 27;

/// What is known of a pipe without a look at it: half a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Place {
    /// Its routing id; empty if it has none, or a long one.
    name: [u8; SHORT],
    length: u8,
    /// The pipe that was addressed after it.
    next: PipeId,
}

impl Place {
    const NOBODY: Place = Place { name: [0; SHORT], length: 0, next: PipeId(u32::MAX) };

    fn name(&self) -> &[u8] {
        &self.name[..usize::from(self.length)]
    }
}

/// A pipe that was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// The pipe.
    pub(crate) pipe: PipeId,
    /// Who is likely to be addressed next, and after that.
    pub(crate) upcoming: Option<[PipeId; 2]>,
    /// It was the last one before, too.
    pub(crate) again: bool,
}

impl Default for RoutingIds {
    fn default() -> Self {
        let hash = SeededHash::default();
        // Ids start anywhere, so that one that outlives this socket does not name a peer of the next.
        let next = hash.hash_one(0_u32) as u32;
        RoutingIds { pipes: HashMap::with_hasher(hash), places: Vec::new(), last: None, next }
    }
}

impl RoutingIds {
    /// Makes an id that no pipe has: a zero byte, which no peer may choose as the first one, and a number.
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

    /// The pipe of this routing id.
    #[inline]
    pub(crate) fn find(&mut self, routing_id: &[u8]) -> Option<Found> {
        let place = self.last.and_then(|last| self.places.get(last.0 as usize));
        if let (Some(place), Some(pipe)) = (place, self.last) {
            if place.name() == routing_id && !routing_id.is_empty() {
                return Some(Found { pipe, upcoming: None, again: true });
            }
            let pipe = place.next;
            if let Some(found) = self.places.get(pipe.0 as usize)
                && found.name() == routing_id
                && !routing_id.is_empty()
            {
                self.last = Some(pipe);
                let after = self.places.get(found.next.0 as usize).map(|next| [found.next, next.next]);
                return Some(Found { pipe, upcoming: after, again: false });
            }
        }
        self.look_up(routing_id)
    }

    fn look_up(&mut self, routing_id: &[u8]) -> Option<Found> {
        let pipe = *self.pipes.get(routing_id)?;
        if let Some(last) = self.last
            && let Some(place) = self.places.get_mut(last.0 as usize)
        {
            place.next = pipe;
        }
        self.last = Some(pipe);
        Some(Found { pipe, upcoming: None, again: false })
    }

    /// The routing id of a pipe, if it has a short one.
    #[inline]
    pub(crate) fn short_name(&self, pipe: PipeId) -> Option<&[u8]> {
        self.places.get(pipe.0 as usize).map(Place::name).filter(|name| !name.is_empty())
    }

    /// Something came from this pipe, which has a name: the next message is likely to go there.
    #[inline]
    pub(crate) fn used(&mut self, pipe: PipeId) {
        self.last = Some(pipe);
    }

    /// The pipe of this routing id, looked up without remembering it.
    pub(crate) fn holder(&self, routing_id: &[u8]) -> Option<PipeId> {
        self.pipes.get(routing_id).copied()
    }

    /// Names a pipe. The name must be free.
    pub(crate) fn insert(&mut self, pipe: &mut Pipe, id: PipeId, routing_id: Vec<u8>) {
        let number = id.0 as usize;
        if number >= self.places.len() {
            self.places.resize(number + 1, Place::NOBODY);
        }
        let mut place = Place::NOBODY;
        if let Some(name) = place.name.get_mut(..routing_id.len()) {
            name.copy_from_slice(&routing_id);
            place.length = routing_id.len() as u8;
        }
        self.places[number] = place;
        pipe.routing_id.clone_from(&routing_id);
        self.pipes.insert(routing_id, id);
    }

    /// Takes the name of a pipe back, if it has one.
    pub(crate) fn remove(&mut self, pipes: &mut Pipes, id: PipeId) -> Option<Vec<u8>> {
        if self.last == Some(id) {
            self.last = None;
        }
        let routing_id = std::mem::take(&mut pipes.get(id)?.routing_id);
        if self.holder(&routing_id) != Some(id) {
            return None;
        }
        self.pipes.remove(&routing_id);
        if let Some(place) = self.places.get_mut(id.0 as usize) {
            *place = Place::NOBODY;
        }
        Some(routing_id)
    }

    /// The pipes that can be addressed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PipeId> {
        self.pipes.values().copied()
    }
}

/// Delivers the routing id of `pipe`, which is `id`, as a first part, with the properties of its peer.
#[inline]
pub(crate) fn put_routing_id(ids: &RoutingIds, pipe: &Pipe, id: PipeId, target: &mut Target<'_>) -> Received {
    pipe.introduce(ids.short_name(id).unwrap_or(&pipe.routing_id), target)
}

/// Notifications that peers have come or gone, in order.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    queue: VecDeque<(Vec<u8>, Option<Arc<Metadata>>)>,
    /// The routing id of the first one was delivered, its empty part was not.
    in_message: bool,
}

impl Notices {
    /// A notification about `pipe`, whose name is `routing_id`.
    pub(crate) fn push(&mut self, pipe: &Pipe, routing_id: &[u8]) {
        let metadata = pipe.peer().map(|peer| Arc::clone(&peer.metadata));
        self.queue.push_back((routing_id.to_vec(), metadata));
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Delivers the next part.
    pub(crate) fn recv(&mut self, target: &mut Target<'_>) -> Option<Received> {
        let (routing_id, metadata) = self.queue.front()?;
        let mut part = if self.in_message { Message::new() } else { Message::from_slice(routing_id) };
        part.set_more(!self.in_message);
        part.set_metadata(metadata.clone());
        if self.in_message {
            self.queue.pop_front();
        }
        self.in_message = !self.in_message;
        Some(target.put_message(part))
    }
}
