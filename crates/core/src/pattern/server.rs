//! SERVER (RFC 47) and PEER (RFC 51): every peer has a number. Received messages carry it, and the
//! program sets it to address a message (`Message::routing_id`). Messages have one part.
//!
//! A peer has its number from `attach` on, so that zmq_connect_peer can return it. The peer keeps
//! the number as long as its pipe lives, even while its connection is lost. A number is reused only
//! after all others have been used.

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::greeting::greet;
use super::hash::SeededHash;
use super::rotation::FairQueue;
use super::{Pattern, Received, Sent};
use crate::error::Error;
use crate::pipe::{Body, OnFull, Part, PipeId, Pipes, Target};

/// The behaviour of a SERVER or PEER socket.
#[derive(Debug)]
pub(crate) struct Server {
    incoming: FairQueue,
    pipes: HashMap<u32, PipeId, SeededHash>,
    /// Routing id of each peer, indexed by the number of its pipe. 0 for no peer.
    routing_ids: Vec<u32>,
    /// The last peer that a message went to or came from. Most messages go to the same peer as the
    /// one before.
    last: (u32, Option<PipeId>),
    next: u32,
    /// The full peer that caused a message to be refused.
    refused: Option<PipeId>,
}

impl Default for Server {
    fn default() -> Self {
        let hash = SeededHash::default();
        // Numbers start at a random value, so that an old number does not name a peer of the next
        // socket.
        let next = hash.hash_one(0_u32) as u32;
        Server {
            incoming: FairQueue::single(),
            pipes: HashMap::with_hasher(hash),
            routing_ids: Vec::new(),
            last: (0, None),
            next,
            refused: None,
        }
    }
}

impl Server {
    /// Returns an unused number, never 0.
    fn make(&mut self) -> u32 {
        loop {
            let routing_id = self.next;
            self.next = self.next.wrapping_add(1);
            if routing_id != 0 && !self.pipes.contains_key(&routing_id) {
                return routing_id;
            }
        }
    }

    #[inline]
    fn find(&mut self, routing_id: u32) -> Option<PipeId> {
        if let (last, Some(pipe)) = self.last
            && last == routing_id
        {
            return Some(pipe);
        }
        let pipe = *self.pipes.get(&routing_id)?;
        self.last = (routing_id, Some(pipe));
        Some(pipe)
    }

    #[inline]
    fn routing_id(&self, pipe: PipeId) -> u32 {
        self.routing_ids.get(pipe.0 as usize).copied().unwrap_or(0)
    }
}

impl Pattern for Server {
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        greet(pipes, pipe);
        let routing_id = self.make();
        self.pipes.insert(routing_id, pipe);
        let number = pipe.0 as usize;
        if number >= self.routing_ids.len() {
            self.routing_ids.resize(number + 1, 0);
        }
        self.routing_ids[number] = routing_id;
        self.incoming.attach(pipe);
    }

    fn handle_readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.mark_readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        let routing_id = self.routing_id(pipe);
        if self.pipes.get(&routing_id) != Some(&pipe) {
            return;
        }
        self.pipes.remove(&routing_id);
        self.routing_ids[pipe.0 as usize] = 0;
        self.last = (0, None);
        if self.refused == Some(pipe) {
            self.refused = None;
        }
        self.incoming.detach(pipes, pipe);
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        if part.more {
            return Err(Error::Invalid);
        }
        let routing_id = match &part.body {
            Body::Owned(message) => message.routing_id(),
            Body::Borrowed(_) => 0,
        };
        let id = self.find(routing_id).ok_or(Error::HostUnreachable)?;
        let pipe = pipes.get(id).filter(|pipe| !pipe.has_ended()).ok_or(Error::HostUnreachable)?;
        if !pipe.outgoing.has_room(OnFull::Refuse { patient: part.patient }) {
            self.refused = Some(id);
            return Err(Error::Again);
        }
        pipe.send(part)?;
        Ok(Sent::to(id))
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        let id = self.incoming.select(pipes).ok_or(Error::Again)?;
        let received = self.incoming.recv(pipes, target)?;
        let routing_id = self.routing_id(id);
        self.last = (routing_id, Some(id));
        if let Target::Message(message) = target {
            message.set_routing_id(routing_id);
        }
        Ok(received)
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        // The answer depends on the destination of the message.
        true
    }

    fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        self.refused
            .and_then(|id| pipes.get(id))
            .is_none_or(|pipe| pipe.outgoing.has_room(OnFull::Wait) || pipe.has_ended())
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        self.incoming.can_recv(pipes)
    }

    fn peer_number(&self, pipe: PipeId) -> Option<u32> {
        Some(self.routing_id(pipe)).filter(|&routing_id| routing_id != 0)
    }

    fn pipe_by_number(&self, number: u32) -> Option<PipeId> {
        self.pipes.get(&number).copied()
    }
}

#[cfg(test)]
mod tests;
