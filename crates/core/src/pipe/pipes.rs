//! The pipes of one socket, by their names: the half of a socket that its pattern works on.

mod broadcast;
mod socket;

use super::address_cache::{self, AddressCache, IdKey};
use super::flush::Cork;
use super::{Delivered, OnFull, Pipe, PipeId, PipesShared, Target, Traffic};
use crate::conn::IoSide;
use crate::conn::inproc::InprocEnd;
use crate::error::{Error, NoMemory};
use crate::options::Options;
use std::ops::{Deref, DerefMut};
use tautline_io::net::Stream;
use tautline_queue::FrameHead;
use tautline_queue::message::Message;
use tautline_queue::sync::{Arc, lock};
use tautline_timing::RARE_INTERVAL;
use tautline_timing::rules::{Rule, is_disabled};

pub(crate) use broadcast::Broadcast;
pub(crate) use socket::SocketPipes;

/// A socket with more connections than this keeps no memory ready for idle ones. A socket that is
/// one of many does not keep such memory either.
const FEW: usize = 8;

/// Counters of the removed pipes.
#[derive(Default)]
struct Past {
    traffic: Traffic,
    /// Messages dropped by them, and messages lost in them.
    dropped: u64,
    lost: u64,
}

/// All pipes of one socket, and its options.
pub(crate) struct Pipes {
    /// The pipes by number. The slot of a removed pipe is empty.
    pub(super) slots: Vec<Option<Pipe>>,
    /// The broadcasts by number. A broadcast exists while it has members.
    broadcasts: Vec<Option<Box<Broadcast>>>,
    /// The names of the pipes that a pattern addresses by name.
    pub(crate) address_cache: AddressCache,
    /// True while a message is partly received: the next part belongs to it.
    pub(crate) receiving: bool,
    /// True if a frame was received with `recv_any`.
    pub(crate) has_read_commands: bool,
    vacant: Vec<u32>,
    /// Numbers that no other pipe may get, even if their pipe is already removed.
    reserved: Vec<PipeId>,
    closing: Vec<PipeId>,
    past: Option<Box<Past>>,
    /// Counters shared by the pipes, and the work that they have left to do.
    pub(crate) shared: Arc<PipesShared>,
    /// Number of inproc pipes, and number of other pipes.
    inproc: usize,
    wires: usize,
    /// True if there are, or were, pipes whose queues hold no memory while they are empty.
    lean: bool,
    /// Services of the I/O thread for this socket, if there is one.
    pub(crate) io: Option<Arc<dyn IoSide>>,
    /// Number of messages before which the owner still reads the input of peers.
    due_reads: u32,
    /// The current options of the socket, shared with its connections until an option changes.
    pub(crate) options: Arc<Options>,
}

impl Pipes {
    /// Returns a set without pipes.
    fn new(options: Arc<Options>) -> Self {
        Pipes {
            slots: Vec::new(),
            broadcasts: Vec::new(),
            address_cache: AddressCache::new(),
            receiving: false,
            has_read_commands: false,
            vacant: Vec::new(),
            reserved: Vec::new(),
            closing: Vec::new(),
            shared: Arc::default(),
            inproc: 0,
            wires: 0,
            lean: false,
            io: None,
            past: None,
            due_reads: 0,
            options,
        }
    }

    /// Returns the pipe of this name, if it exists.
    #[inline]
    pub(crate) fn get(&mut self, id: PipeId) -> Option<&mut Pipe> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// Returns the pipe of a begun message, for its other parts. `None` if the pipe or its peer is
    /// gone. The first parts are then forgotten, so the other parts must be dropped as well.
    #[inline]
    pub(crate) fn get_begun(&mut self, id: PipeId) -> Option<&mut Pipe> {
        self.get(id).filter(|pipe| !pipe.has_ended())
    }

    /// Returns the pipe of this name: the expected pipe, or else the pipe that `table` returns,
    /// which is expected from now on. Prefetches the memory of the pipes that will probably follow,
    /// as far as a message touches it. (A message to one of thousands of pipes costs little more
    /// than the memory accesses.)
    #[inline]
    pub(crate) fn find(&mut self, name: &[u8], table: impl FnOnce() -> Option<PipeId>) -> Option<PipeId> {
        self.find_by_key(IdKey::of(name), name).or_else(|| {
            let pipe = table()?;
            self.address_cache.record_addressed(pipe);
            Some(pipe)
        })
    }

    /// Returns the pipe of the name with this key, if it was found twice in a row and certainly has
    /// room.
    #[inline(always)]
    pub(super) fn find_repeated(&mut self, key: IdKey) -> Option<PipeId> {
        let id = self.address_cache.find_repeated(key)?;
        let pipe = self.get(id)?;
        pipe.outgoing.has_room(OnFull::SlowPath).then_some(id)
    }

    /// Returns the pipe of this name, if it is the expected one and certainly has room. A separate
    /// function, so that it costs the other paths no registers.
    #[inline(never)]
    pub(super) fn find_predicted(&mut self, key: IdKey, name: &[u8]) -> Option<PipeId> {
        let id = self.find_by_key(key, name)?;
        self.get(id)?.outgoing.has_room(OnFull::SlowPath).then_some(id)
    }

    #[inline(always)]
    fn find_by_key(&mut self, key: IdKey, name: &[u8]) -> Option<PipeId> {
        if name.is_empty() {
            return None;
        }
        let found = self.address_cache.find(key)?;
        if !key.is_exact() && self.get(found.pipe)?.peer.routing_id != name {
            return None;
        }
        if !found.repeated
            && let Some([second, third]) = self.address_cache.predict_next(found.pipe)
        {
            if let Some(slot) = self.slots.get(third.0 as usize) {
                Pipe::prefetch(slot);
            }
            if let Some(Some(pipe)) = self.slots.get(second.0 as usize) {
                pipe.prefetch_queue();
            }
        }
        Some(found.pipe)
    }

    /// Begins to receive a message of this pipe: delivers the name of the peer as a first part,
    /// with the properties of the peer. The next message will probably go there. Returns `Again` if
    /// the pipe does not exist.
    #[inline(always)]
    pub(crate) fn deliver_routing_id(
        &mut self,
        id: PipeId,
        target: &mut Target<'_>,
    ) -> Result<Delivered, Error> {
        let Some(Some(pipe)) = self.slots.get(id.0 as usize) else { return Err(Error::Again) };
        let mut room = [0; address_cache::MAX_EXACT];
        let name = self.address_cache.get(id, &mut room).unwrap_or(&pipe.peer.routing_id);
        let received = pipe.peer.deliver_routing_id(name, target)?;
        self.address_cache.record_received(id);
        self.receiving = true;
        Ok(received)
    }

    /// Receives the next frame of a pipe, of any kind: a message part or a SUBSCRIBE or CANCEL
    /// command (see `FrameHead::flags`). The frame may change the peer's subscriptions, so the
    /// route for sending ends (`pattern::Routed`).
    pub(crate) fn recv_any(
        &mut self,
        id: PipeId,
        message: &mut Message,
    ) -> Result<Option<FrameHead>, NoMemory> {
        self.has_read_commands = true;
        self.get(id).map_or(Ok(None), |pipe| pipe.recv_any(message))
    }

    /// Called when a peer has come that is about to send its subscriptions. The owner reads the
    /// available input itself before it sends the next messages. The input may still be in the
    /// kernel, waiting for an I/O thread that has no processor yet, when the owner is given a
    /// message that the peer sent later.
    pub(crate) fn expect_input(&mut self) {
        self.due_reads = RARE_INTERVAL;
    }

    /// True if the owner still reads input before it sends the next message.
    pub(crate) fn expects_input(&self) -> bool {
        self.due_reads > 0
    }

    /// Asks the socket to end this pipe, without `Pattern::detach`. The pattern itself removes the
    /// pipe from its state.
    pub(crate) fn close(&mut self, id: PipeId) {
        self.closing.push(id);
    }

    /// Asks the socket to end the pipe of a peer that uses more resources than allowed or
    /// available. The peer's stream ends at once, and the monitor reports `errno` as the reason.
    pub(crate) fn evict(&mut self, id: PipeId, errno: i32) {
        if let Some(connection) = self.get(id).and_then(|pipe| pipe.connection()) {
            connection.lose(errno);
        }
        self.close(id);
    }

    /// Reserves the number of this pipe, which is about to be removed, until `release`.
    pub(crate) fn reserve_id(&mut self, id: PipeId) {
        self.reserved.push(id);
    }

    /// Allows another pipe to get this number.
    pub(crate) fn release_id(&mut self, id: PipeId) {
        if let Some(index) = self.reserved.iter().position(|&other| other == id) {
            self.reserved.swap_remove(index);
            if self.slots.get(id.0 as usize).is_some_and(Option::is_none) {
                self.vacant.push(id.0);
            }
        }
    }

    /// Returns the limit in bytes for the subscriptions of a pipe's peer: the program's current
    /// option, or the policy's limit for the endpoint if that is smaller. `None` for unlimited.
    pub(crate) fn most_subscriptions(&mut self, id: PipeId) -> Option<u64> {
        let own = self.options.max_subscriptions;
        let connection = self.get(id).and_then(|pipe| pipe.connection());
        match (own, connection.and_then(|connection| connection.options.policy_settings.most_subscriptions)) {
            (Some(own), Some(limit)) => Some(own.min(limit)),
            (own, limit) => own.or(limit),
        }
    }
}
