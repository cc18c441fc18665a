//! The pipes of one socket, by their names: the half of a socket that its pattern works on.

use super::broadcasts::Broadcasts;
use super::cork::Cork;
use super::errands::Left;
use super::looks::Looks;
use super::names::{self, Key, Names};
use super::{Else, Part, Pipe, PipeId, Received, Target, Traffic};
use crate::ablation::{Rule, without};
use crate::conn::IoSide;
use crate::conn::inproc::InprocEnd;
use crate::error::NoMemory;
use crate::message::Message;
use crate::options::Options;
use crate::queue::Head;
use crate::sync::{Arc, lock};
use crate::timing::crowd;
use std::ops::ControlFlow;
use tautline_io::net::Stream;

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
    pub(super) slots: Vec<Option<Pipe>>,
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
    pub(super) left: Arc<Left>,
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
    pub(crate) fn new(options: Arc<Options>) -> Self {
        Pipes {
            slots: Vec::new(),
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
        self.looks.asked = id;
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// The pipe of this name, if it is the expected one. Those likely to be addressed after it are
    /// brought into the cache, as far as a message will touch them. (One to one of thousands of
    /// pipes costs little more than the time that memory takes.)
    #[inline]
    pub(crate) fn find_expected(&mut self, name: &[u8]) -> Option<PipeId> {
        self.find_by_key(Key::of(name), name)
    }

    /// The pipe of the name with this key, if it was found twice in a row and certainly has room.
    #[inline(always)]
    pub(super) fn addressed_again(&mut self, key: Key) -> Option<PipeId> {
        let id = self.names.known(key)?;
        let pipe = self.slots.get_mut(id.0 as usize)?.as_mut()?;
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
            if let Some(slot) = self.slots.get(third.0 as usize) {
                Pipe::prefetch(slot);
            }
            if let Some(Some(pipe)) = self.slots.get(second.0 as usize) {
                pipe.prefetch_queue();
            }
        }
        Some(found.pipe)
    }

    /// Delivers the name of this pipe's peer as a first part, with the properties of the peer, if
    /// the pipe is there.
    #[inline]
    pub(crate) fn introduce(
        &self,
        id: PipeId,
        target: &mut Target<'_>,
    ) -> Result<Option<Received>, NoMemory> {
        let Some(Some(pipe)) = self.slots.get(id.0 as usize) else { return Ok(None) };
        let mut room = [0; names::WHOLE];
        let name = self.names.get(id, &mut room).unwrap_or(&pipe.peer.routing_id);
        pipe.peer.introduce(name, target).map(Some)
    }

    /// Receives the next frame of a pipe whatever it is: a message part or a SUBSCRIBE or CANCEL
    /// command (`Head::flags` tells). It may say what the peer wants, so that the route of what is
    /// sent ends (`pattern::Routed`).
    pub(crate) fn recv_any(&mut self, id: PipeId, message: &mut Message) -> Result<Option<Head>, NoMemory> {
        self.heard = true;
        self.get(id).map_or(Ok(None), |pipe| pipe.recv_any(message))
    }

    /// The socket's options, to change one.
    pub(crate) fn options_mut(&mut self) -> &mut Options {
        Arc::make_mut(&mut self.options)
    }

    /// The names of all pipes.
    pub(crate) fn ids(&self) -> impl Iterator<Item = PipeId> + '_ {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.is_some())
            .map(|(index, _)| PipeId(index as u32))
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

    /// ZMQ_HELLO_MSG for a peer that we connect to over inproc, before anything else. A bound
    /// socket greets when it is found (`Offer::greet`), and other connections do so by themselves,
    /// at the start of each session.
    pub(crate) fn greet(&mut self, id: PipeId) {
        let hello = self.options.hello();
        if hello.is_empty() {
            return;
        }
        if let Some(pipe) = self.slots.get_mut(id.0 as usize).and_then(Option::as_mut)
            && pipe.peer.connected_here
            && pipe.inproc_end().is_some()
            && pipe.has_room(Else::Lose)
        {
            pipe.send_or_drop(&mut Part::copied(hello, false));
        }
    }

    /// From now on each part takes the long way, where the owner can look at it, or not any more:
    /// `Looks::listens` and `has_closing` are always true then.
    pub(crate) fn set_tapped(&mut self, tapped: bool) {
        self.closing.retain(|id| *id != NONE);
        self.looks.set_tapped(tapped);
        if tapped {
            self.closing.push(NONE);
        }
    }

    /// Adds a pipe.
    pub(crate) fn insert(&mut self, mut pipe: Pipe) -> PipeId {
        if pipe.inproc_end().is_some() {
            self.inproc += 1;
        } else {
            self.wires += 1;
            if self.wires == FEW + 1 && !without(Rule::Lean) {
                self.slots.iter_mut().flatten().for_each(Pipe::set_lean);
            }
            if !without(Rule::Lean)
                && (self.wires > FEW || self.io.as_ref().is_some_and(|io| io.serves_many()))
            {
                pipe.set_lean();
                self.lean = true;
            }
        }
        let id = PipeId(self.vacant.pop().unwrap_or(self.slots.len() as u32));
        pipe.outgoing.errands.attach(id, self.left.clone());
        match self.slots.get_mut(id.0 as usize) {
            Some(slot) => *slot = Some(pipe),
            None => {
                if self.slots.is_empty() {
                    // Most sockets have one.
                    self.slots.reserve_exact(1);
                }
                self.slots.push(Some(pipe));
            }
        }
        id
    }

    /// Takes a pipe out.
    pub(crate) fn remove(&mut self, id: PipeId) -> Option<Pipe> {
        let pipe = self.slots.get_mut(id.0 as usize)?.take()?;
        if pipe.inproc_end().is_some() {
            self.inproc -= 1;
        } else {
            self.wires -= 1;
        }
        if !self.held.contains(&id) {
            self.vacant.push(id.0);
        }
        let past = self.past.get_or_insert_default();
        past.traffic.add(pipe.traffic());
        past.dropped += pipe.outgoing.dropped();
        if pipe.has_ended() {
            past.lost += pipe.outgoing.queued();
        }
        Some(pipe)
    }

    /// No other pipe gets the name of this one, which is about to be taken out, before it is
    /// released.
    pub(crate) fn hold(&mut self, id: PipeId) {
        self.held.push(id);
    }

    /// Another pipe may get this name. It may not have been held.
    pub(crate) fn release(&mut self, id: PipeId) {
        let before = self.held.len();
        self.held.retain(|&other| other != id);
        if self.held.len() < before && self.slots.get(id.0 as usize).is_some_and(Option::is_none) {
            self.vacant.push(id.0);
        }
    }

    /// The peer is gone. What was received stays readable, and behind it comes ZMQ_DISCONNECT_MSG,
    /// unless this socket has connected to the peer.
    pub(crate) fn end(&mut self, id: PipeId) {
        let Some(pipe) = self.slots.get_mut(id.0 as usize).and_then(Option::as_mut) else { return };
        if pipe.outgoing.ended {
            return;
        }
        pipe.end();
        let farewell = self.options.farewell();
        if !farewell.is_empty() && !pipe.peer.connected_here {
            pipe.note(farewell);
        }
    }

    /// Reads once what the peer of this pipe has sent by now, also if it was not announced yet. A
    /// pipe whose peer is found to have gone ends. Returns whether anything came.
    pub(crate) fn read_now(&mut self, id: PipeId) -> bool {
        let Some(pipe) = self.get(id).filter(|pipe| !pipe.outgoing.ended) else { return false };
        let Some(connection) = pipe.connection().cloned() else { return false };
        match connection.read_now() {
            ControlFlow::Continue(came) => came,
            ControlFlow::Break(()) => {
                // A peer that this socket has connected to may come back.
                if !pipe.peer.connected_here {
                    self.end(id);
                }
                true
            }
        }
    }

    /// The names of all pipes, apart from the pipes.
    pub(crate) fn all(&self) -> Vec<PipeId> {
        self.ids().collect()
    }

    /// Everything that has gone through the pipes, these and former ones.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut all = self.past.as_ref().map_or_else(Traffic::default, |past| past.traffic);
        self.slots.iter().flatten().for_each(|pipe| all.add(pipe.traffic()));
        all
    }

    /// Messages dropped for want of room.
    pub(crate) fn dropped(&self) -> u64 {
        let now: u64 = self.slots.iter().flatten().map(|pipe| pipe.outgoing.dropped()).sum();
        now + self.past.as_ref().map_or(0, |past| past.dropped)
    }

    /// Messages lost with their connections.
    pub(crate) fn lost(&self) -> u64 {
        self.past.as_ref().map_or(0, |past| past.lost)
    }

    /// A number that changes with each message that comes, where there are few pipes.
    pub(crate) fn arrived(&self) -> u64 {
        let few = self.slots.iter().take(FEW);
        few.flatten().map(|pipe| pipe.incoming.arrived()).fold(0, u64::wrapping_add)
    }

    /// How many pipes there are, and how many messages wait in them: outgoing and incoming.
    pub(crate) fn depths(&mut self) -> (u64, u64, u64) {
        self.slots.iter_mut().flatten().fold((0, 0, 0), |(pipes, out, incoming), pipe| {
            (pipes + 1, out + pipe.outgoing.queued(), incoming + pipe.incoming.queued())
        })
    }

    /// ZMQ_SNDHWM or ZMQ_RCVHWM has changed: it takes effect on the pipes that exist.
    pub(crate) fn apply_limits(&mut self) {
        let (send, receive) = (self.options.send_hwm, self.options.receive_hwm);
        self.slots.iter_mut().flatten().for_each(|pipe| pipe.set_limits(send, receive));
    }

    /// Flushes what the flush rule has left.
    pub(crate) fn flush(&mut self) {
        if self.lean {
            self.rest();
        }
        if self.wires > 1
            && crowd::is_on()
            && let Some(io) = &self.io
        {
            io.hurry_sweep();
        }
        self.for_each_left(|pipe| pipe.outgoing.flush(&pipe.link));
    }

    /// Flushes what was left because of a cork, unless it is part of a stream.
    pub(crate) fn end_batch(&mut self) {
        self.for_each_left(|pipe| pipe.outgoing.end_batch(&pipe.link));
    }

    /// The pipes for which `flush` answers true stay left.
    fn for_each_left(&mut self, flush: impl Fn(&mut Pipe) -> bool) {
        let mut left = {
            let mut left = lock(&self.left.unflushed);
            if left.is_empty() {
                return;
            }
            std::mem::take(&mut *left)
        };
        left.retain(|&id| self.get(id).is_some_and(&flush));
        // Back comes the memory, too.
        *lock(&self.left.unflushed) = left;
    }

    /// Gives up the memory of queues that the sweep has written. As long as it is at work, they
    /// wait.
    fn rest(&mut self) {
        let swept = {
            let mut unrested = lock(&self.left.unrested);
            if unrested.is_empty() || !self.io.as_ref().is_some_and(|io| io.sweeper_is_idle()) {
                return;
            }
            std::mem::take(&mut *unrested)
        };
        for id in swept {
            if let Some(pipe) = self.get(id) {
                pipe.outgoing.rest(&pipe.link);
            }
        }
    }

    /// Holds back what the calling thread sends from now on, until the cork is dropped; a flush
    /// must follow.
    pub(crate) fn cork(&self) -> Cork {
        Cork::new(&self.left)
    }

    /// Streams of pipes that are full; inproc peers of full pipes are asked to wake the owner.
    pub(crate) fn full_streams(&mut self) -> Vec<Arc<Stream>> {
        self.slots
            .iter_mut()
            .flatten()
            .filter(|pipe| !pipe.outgoing.ended)
            .filter_map(|pipe| if pipe.outgoing.is_full() { pipe.wait_for_room() } else { None })
            .collect()
    }

    /// Has the inproc peers of full pipes tell when there is room. Whether there are any: pipes
    /// that are full just now.
    pub(crate) fn ask_inproc_for_room(&mut self) -> bool {
        let mut asked = false;
        for pipe in self.slots.iter_mut().flatten() {
            if !pipe.outgoing.ended && pipe.inproc_end().is_some() && pipe.outgoing.is_full() {
                pipe.wait_for_room();
                asked = true;
            }
        }
        asked
    }

    /// Whether a pipe is inproc.
    pub(crate) fn has_inproc(&self) -> bool {
        self.inproc > 0
    }

    /// Whether some inproc peer may wake this socket by a look alone, for which a sleep must be
    /// announced with the heavy barrier. Not so if all of them are publishers with other receivers
    /// too, which ring.
    pub(crate) fn is_watched(&self) -> bool {
        let rung = |pipe: &Pipe| pipe.inproc_end().is_none_or(InprocEnd::is_rung);
        self.inproc > 0 && (self.slots.len() > FEW || !self.slots.iter().flatten().all(rung))
    }

    /// Whether a message was refused only because it was one too many in a burst. Tells it once.
    pub(crate) fn take_burst_refused(&mut self) -> bool {
        self.slots.iter_mut().flatten().any(|pipe| pipe.outgoing.mark.take_burst_refused())
    }

    /// Whether the pattern wants to end some pipes, or parts are looked at.
    #[inline]
    pub(crate) fn has_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    /// Whether the pattern wants to end this pipe.
    pub(crate) fn is_closing(&self, id: PipeId) -> bool {
        self.closing.contains(&id)
    }

    /// The pipes that the pattern wants to end.
    pub(crate) fn take_closing(&mut self) -> Vec<PipeId> {
        let tapped = self.looks.is_tapped();
        let mut closing = std::mem::take(&mut self.closing);
        if tapped {
            closing.retain(|id| *id != NONE);
            self.closing.push(NONE);
        }
        closing
    }
}
