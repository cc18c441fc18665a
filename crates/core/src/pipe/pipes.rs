//! The pipes of one socket, by their names: the half of a socket that its pattern works on.

mod socket;

use super::broadcasts::Broadcasts;
use super::cork::Cork;
use super::errands::Left;
use super::looks::Looks;
use super::names::{self, Key, Names};
use super::slots::Slots;
use super::{Else, Pipe, PipeId, Received, Target, Traffic};
use crate::ablation::{Rule, without};
use crate::conn::IoSide;
use crate::conn::inproc::InprocEnd;
use crate::error::{Error, NoMemory};
use crate::message::Message;
use crate::options::Options;
use crate::queue::Head;
use crate::sync::{Arc, lock};
use crate::timing::crowd;
use std::ops::{Deref, DerefMut};
use tautline_io::net::Stream;

pub(crate) use socket::SocketPipes;

/// A socket with more connections than these keeps no memory ready for those that are idle; nor
/// does one of many sockets.
const FEW: usize = 8;

/// In `Pipes::closing` while each part is looked at.
const NONE: PipeId = PipeId(u32::MAX);

/// What is known of the pipes that are gone.
#[derive(Default)]
struct Past {
    traffic: Traffic,
    /// Messages dropped by them, and messages lost in them.
    dropped: u64,
    lost: u64,
}

/// All pipes of one socket, and its options.
pub(crate) struct Pipes {
    pub(super) slots: Slots,
    pub(super) broadcasts: Broadcasts,
    /// The names of the pipes that a pattern addresses by name.
    pub(crate) names: Names,
    /// A message has been begun to be received: the next part is of it.
    pub(crate) receiving: bool,
    /// Something was received with `recv_any`.
    pub(crate) heard: bool,
    vacant: Vec<u32>,
    /// Names that no other pipe may get, whether theirs is still here or not.
    held: Vec<PipeId>,
    closing: Vec<PipeId>,
    past: Option<Box<Past>>,
    /// What the pipes count together, and what they have left to be done.
    pub(crate) left: Arc<Left>,
    /// How many are inproc, and how many are not.
    inproc: usize,
    wires: usize,
    /// There are, or were, pipes whose queues hold no memory while they are empty.
    lean: bool,
    /// What the I/O thread does for this socket, if there is one.
    pub(crate) io: Option<Arc<dyn IoSide>>,
    /// What the owner looks at before it sends.
    pub(crate) looks: Looks,
    /// The socket's options as they are now, shared with its connections until one of them changes.
    pub(crate) options: Arc<Options>,
}

impl Pipes {
    /// No pipes yet.
    fn new(options: Arc<Options>) -> Self {
        Pipes {
            slots: Slots::default(),
            broadcasts: Vec::new(),
            names: Names::new(),
            receiving: false,
            heard: false,
            vacant: Vec::new(),
            held: Vec::new(),
            closing: Vec::new(),
            left: Arc::default(),
            inproc: 0,
            wires: 0,
            lean: false,
            io: None,
            past: None,
            looks: Looks::new(),
            options,
        }
    }

    /// The pipe of this name, if it is there.
    #[inline]
    pub(crate) fn get(&mut self, id: PipeId) -> Option<&mut Pipe> {
        self.slots.get(id)
    }

    /// The pipe of a message that was begun, for its other parts. `None` if the pipe or its peer is
    /// gone: the first parts are forgotten then, so the other parts must be dropped, too.
    #[inline]
    pub(crate) fn get_begun(&mut self, id: PipeId) -> Option<&mut Pipe> {
        self.get(id).filter(|pipe| !pipe.has_ended())
    }

    /// The pipe of this name: the expected one, or else the one that `table` knows, which is
    /// expected from now on. Those likely to be addressed after it are brought into the cache, as
    /// far as a message will touch them. (One to one of thousands of pipes costs little more than
    /// the time that memory takes.)
    #[inline]
    pub(crate) fn find(&mut self, name: &[u8], table: impl FnOnce() -> Option<PipeId>) -> Option<PipeId> {
        self.find_by_key(Key::of(name), name).or_else(|| {
            let pipe = table()?;
            self.names.addressed(pipe);
            Some(pipe)
        })
    }

    /// The pipe of the name with this key, if it was found twice in a row and certainly has room.
    #[inline(always)]
    pub(super) fn addressed_again(&mut self, key: Key) -> Option<PipeId> {
        let id = self.names.known(key)?;
        let pipe = self.slots.get_unnoted(id)?;
        pipe.has_room(Else::Ask).then_some(id)
    }

    /// The pipe of this name, if it is the expected one and certainly has room. Apart, so that it
    /// costs the others no registers.
    #[inline(never)]
    pub(super) fn addressed_in_turn(&mut self, key: Key, name: &[u8]) -> Option<PipeId> {
        let id = self.find_by_key(key, name)?;
        self.get(id)?.has_room(Else::Ask).then_some(id)
    }

    #[inline(always)]
    fn find_by_key(&mut self, key: Key, name: &[u8]) -> Option<PipeId> {
        if name.is_empty() {
            return None;
        }
        let found = self.names.find(key)?;
        if !key.is_whole() && self.get(found.pipe)?.peer.routing_id != name {
            return None;
        }
        if !found.again
            && let Some([second, third]) = self.names.upcoming(found.pipe)
        {
            if let Some(slot) = self.slots.place(third) {
                Pipe::prefetch(slot);
            }
            if let Some(Some(pipe)) = self.slots.place(second) {
                pipe.prefetch_queue();
            }
        }
        Some(found.pipe)
    }

    /// Begins to receive a message of this pipe: delivers the name of the peer as a first part,
    /// with the properties of the peer. The next message is likely to go there. Again: the pipe is
    /// not there.
    #[inline(always)]
    pub(crate) fn introduce(&mut self, id: PipeId, target: &mut Target<'_>) -> Result<Received, Error> {
        let Some(Some(pipe)) = self.slots.place(id) else { return Err(Error::Again) };
        let mut room = [0; names::WHOLE];
        let name = self.names.get(id, &mut room).unwrap_or(&pipe.peer.routing_id);
        let received = pipe.peer.introduce(name, target)?;
        self.names.heard(id);
        self.receiving = true;
        Ok(received)
    }

    /// Receives the next frame of a pipe whatever it is: a message part or a SUBSCRIBE or CANCEL
    /// command (`Head::flags` tells). It may say what the peer wants, so that the route of what is
    /// sent ends (`pattern::Routed`).
    pub(crate) fn recv_any(&mut self, id: PipeId, message: &mut Message) -> Result<Option<Head>, NoMemory> {
        self.heard = true;
        self.get(id).map_or(Ok(None), |pipe| pipe.recv_any(message))
    }

    /// Asks the socket to end this pipe, without `Pattern::detach`: the pattern forgets it on its
    /// own.
    pub(crate) fn close(&mut self, id: PipeId) {
        self.closing.push(id);
    }

    /// The same for a peer that takes more than it may, or than there is: its stream ends at once,
    /// and a monitor is told why.
    pub(crate) fn expel(&mut self, id: PipeId, errno: i32) {
        if let Some(connection) = self.get(id).and_then(|pipe| pipe.connection()) {
            connection.lose(errno);
        }
        self.close(id);
    }

    /// No other pipe gets the name of this one, which is about to be taken out, before it is
    /// released.
    pub(crate) fn hold(&mut self, id: PipeId) {
        self.held.push(id);
    }

    /// Another pipe may get this name.
    pub(crate) fn release(&mut self, id: PipeId) {
        if let Some(index) = self.held.iter().position(|&other| other == id) {
            self.held.swap_remove(index);
            if self.slots.place(id).is_some_and(Option::is_none) {
                self.vacant.push(id.0);
            }
        }
    }

    /// What the subscriptions of a pipe's peer may take, in bytes: what the program says now, or
    /// what the policy has said of the endpoint, if that is less. `None` is any.
    pub(crate) fn most_subscriptions(&mut self, id: PipeId) -> Option<u64> {
        let own = self.options.max_subscriptions;
        let connection = self.get(id).and_then(|pipe| pipe.connection());
        match (own, connection.and_then(|connection| connection.options.by_policy.most_subscriptions)) {
            (Some(own), Some(limit)) => Some(own.min(limit)),
            (own, limit) => own.or(limit),
        }
    }
}
