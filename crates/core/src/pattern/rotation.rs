//! Taking turns: [`Rotation`] distributes outgoing messages over the pipes (PUSH, DEALER, REQ,
//! PAIR), [`FairQueue`] takes incoming ones from all pipes equally (RFC 28, 30). Both keep a
//! multipart message together even if its pipe ends. The remaining parts of a message being sent
//! are dropped. The remaining parts of a message being received are set aside.

use super::{Received, Sent};
use crate::error::{Error, NoMemory};
use crate::pipe::{DiscardReason, OnFull, Part, Pipe, PipeId, Pipes, Target};
use smallvec::SmallVec;
use std::collections::VecDeque;
use tautline_proto::frame;
use tautline_queue::message::Message;

#[cfg(test)]
mod tests;

/// Round robin over the pipes that can take a message.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    pipes: Vec<PipeId>,
    /// Index of the pipe whose turn it is.
    current: usize,
    /// True if the current pipe has parts of an unfinished message.
    in_message: bool,
    /// True if the pipe of an unfinished message is gone; the remaining parts are dropped.
    dropping: bool,
    /// True if messages have one part.
    single: bool,
}

impl Rotation {
    /// Creates a rotation for socket types without multipart messages, which refuses such messages.
    pub(crate) fn single() -> Self {
        Rotation { single: true, ..Rotation::default() }
    }

    /// Adds a pipe, behind all others.
    pub(crate) fn attach(&mut self, pipe: PipeId) {
        self.pipes.push(pipe);
    }

    /// Removes a pipe.
    pub(crate) fn detach(&mut self, pipe: PipeId) {
        let Some(index) = self.pipes.iter().position(|&id| id == pipe) else { return };
        self.pipes.remove(index);
        if index == self.current && self.in_message {
            self.in_message = false;
            self.dropping = true;
        }
        if index < self.current {
            self.current -= 1;
        }
        if self.current >= self.pipes.len() {
            self.current = 0;
        }
    }

    #[inline]
    fn advance(&mut self) {
        self.current += 1;
        if self.current >= self.pipes.len() {
            self.current = 0;
        }
    }

    /// Sends one part. The first part of a message goes to the next pipe with room, and the other
    /// parts to the same pipe. Fails with `Again` if no pipe has room. The caller sets the route.
    #[inline]
    pub(crate) fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        // The common case: a message of one part, and room in the current pipe.
        if !(part.more | self.in_message | self.dropping)
            && let Some(&id) = self.pipes.get(self.current)
            && let Some(pipe) = pipes.get(id)
            && pipe.outgoing.has_room(OnFull::SlowPath)
        {
            pipe.send(part)?;
            self.advance();
            return Ok(Sent::to(id));
        }
        self.send_by_turns(pipes, part)
    }

    #[inline(never)]
    fn send_by_turns(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        if part.more && self.single {
            return Err(Error::Invalid);
        }
        if self.in_message || self.dropping {
            return self.send_remaining(pipes, part);
        }
        for _ in 0..self.pipes.len() {
            let id = self.pipes[self.current];
            if let Some(pipe) = pipes.get(id)
                && pipe.outgoing.has_room(OnFull::Wait)
            {
                pipe.send(part)?;
                if part.more {
                    self.in_message = true;
                } else {
                    self.advance();
                }
                return Ok(Sent::to(id));
            }
            self.advance();
        }
        Err(Error::Again)
    }

    /// Sends a part that is not the first one of its message.
    fn send_remaining(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        let begun = match self.pipes.get(self.current) {
            Some(&id) if !self.dropping => pipes.get_begun(id).map(|pipe| (id, pipe)),
            _ => None,
        };
        let Some((id, pipe)) = begun else {
            self.in_message = false;
            self.dropping = part.more;
            part.consume();
            return Ok(Sent::UNADDRESSED);
        };
        pipe.send(part)?;
        if !part.more {
            self.in_message = false;
            self.advance();
        }
        Ok(Sent::to(id))
    }

    /// Chooses the pipe of the next message before it is sent, so that the caller can write its own
    /// parts first (with more to follow). `send` then continues with that pipe. Returns `None` if
    /// no pipe has room. Not allowed within a message.
    pub(crate) fn start(&mut self, pipes: &mut Pipes) -> Option<PipeId> {
        for _ in 0..self.pipes.len() {
            let id = self.pipes[self.current];
            if pipes.get(id).is_some_and(|pipe| pipe.outgoing.has_room(OnFull::Wait)) {
                self.in_message = true;
                self.dropping = false;
                return Some(id);
            }
            self.advance();
        }
        None
    }

    /// Undoes a `start`. No part of the message was written.
    pub(crate) fn cancel(&mut self) {
        self.in_message = false;
    }

    /// The pipe to which all messages go. `None` if there are several pipes, or if a message has
    /// been begun.
    #[inline]
    pub(crate) fn sole(&self) -> Option<PipeId> {
        match self.pipes[..] {
            [id] if !self.in_message && !self.dropping => Some(id),
            _ => None,
        }
    }

    /// True if `send` would accept a part now.
    pub(crate) fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        if self.in_message || self.dropping {
            return true;
        }
        for _ in 0..self.pipes.len() {
            if pipes.get(self.pipes[self.current]).is_some_and(|pipe| pipe.outgoing.has_room(OnFull::Wait)) {
                return true;
            }
            self.advance();
        }
        false
    }
}

/// State of a pipe in the fair queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum PipeActivity {
    /// The pipe is not in this queue.
    #[default]
    Absent,
    /// The pipe was found empty; `readable` activates it again.
    Idle,
    /// The pipe is in the active list.
    Active,
}

/// Takes one message from each pipe in turn.
///
/// A pipe that announces its messages leaves the active list when it is found empty, so a large
/// number of idle pipes adds no cost. A pipe that does not announce them (inproc) is polled in each
/// turn.
#[derive(Debug, Default)]
pub(crate) struct FairQueue {
    active: Vec<PipeId>,
    /// Index in `active` of the pipe whose turn it is.
    current: usize,
    /// State of each pipe, indexed by the number of the pipe. No larger than a `Vec` on a 64-bit
    /// system.
    activity: SmallVec<[PipeActivity; 16]>,
    /// The remaining parts of the begun message, if its pipe is gone. Empty if there was no memory
    /// for them. (`Pipes::receiving` is true while a message has been begun. If this is `None`, its
    /// remaining parts are in the current pipe.)
    #[allow(clippy::box_collection)] // Few ever have one.
    remaining: Option<Box<VecDeque<Message>>>,
    /// True if messages have one part.
    single: bool,
}

impl FairQueue {
    /// Creates a queue for socket types without multipart messages, which drops such messages.
    pub(crate) fn single() -> Self {
        FairQueue { single: true, ..FairQueue::default() }
    }

    /// Adds a pipe, to be read soon.
    pub(crate) fn attach(&mut self, pipe: PipeId) {
        let number = pipe.0 as usize;
        if number >= self.activity.len() {
            self.activity.resize(number + 1, PipeActivity::Absent);
        }
        if self.activity[number] != PipeActivity::Active {
            self.activity[number] = PipeActivity::Active;
            self.active.push(pipe);
        }
    }

    /// Notes that the pipe may have messages. Ignores pipes that were not attached.
    #[inline]
    pub(crate) fn mark_readable(&mut self, pipe: PipeId) {
        if let Some(watch) = self.activity.get_mut(pipe.0 as usize)
            && *watch == PipeActivity::Idle
        {
            *watch = PipeActivity::Active;
            self.active.push(pipe);
        }
    }

    /// Removes a pipe. If a message from it is half read, the other parts can still be received.
    pub(crate) fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        match self.activity.get_mut(pipe.0 as usize) {
            None | Some(PipeActivity::Absent) => return,
            Some(watch) => *watch = PipeActivity::Absent,
        }
        let Some(index) = self.active.iter().position(|&id| id == pipe) else { return };
        if pipes.receiving && self.remaining.is_none() && index == self.current {
            self.save_remaining(pipes, pipe);
        }
        self.active.swap_remove(index);
        if self.current == self.active.len() {
            // The current pipe was the last one: it has moved into the gap, or it is the pipe that
            // was removed.
            self.current = if index < self.active.len() { index } else { 0 };
        }
    }

    fn save_remaining(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        let rest = self.remaining.insert(Box::default());
        match pipes.get(pipe).map_or(Ok(false), |pipe| move_message(pipe, rest)) {
            Ok(true) => {}
            // Pipes show whole messages only, so this code is not reached. The receiver must see an
            // end in any case.
            Ok(false) => rest.push_back(Message::new()),
            // If there is no memory for all parts, keep no part.
            Err(NoMemory) => rest.clear(),
        }
    }

    #[inline]
    fn advance(&mut self) {
        self.current += 1;
        if self.current >= self.active.len() {
            self.current = 0;
        }
    }

    /// Moves on from the current pipe, which was found empty. If `stays` is set, the pipe stays in
    /// the active list and is polled again.
    fn skip_current(&mut self, stays: bool) {
        if stays {
            return self.advance();
        }
        let pipe = self.active.swap_remove(self.current);
        self.activity[pipe.0 as usize] = PipeActivity::Idle;
        if self.current >= self.active.len() {
            self.current = 0;
        }
    }

    /// The pipe from which all parts come, until another one has news. `None` if there are several.
    #[inline]
    pub(crate) fn sole(&self) -> Option<PipeId> {
        match self.active[..] {
            [id] if self.remaining.is_none() => Some(id),
            _ => None,
        }
    }

    /// Receives the next part, of the begun message if there is one. The caller sets the route.
    #[inline]
    pub(crate) fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        // The common case: a message of one part is available in the current pipe.
        if !pipes.receiving
            && let Some(&id) = self.active.get(self.current)
            && let Some(pipe) = pipes.get(id)
            && let Some(part) = pipe.recv_last(target)
        {
            self.advance();
            return Ok(Received::new(Some(id), part));
        }
        self.recv_by_turns(pipes, target)
    }

    #[inline(never)]
    fn recv_by_turns(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if pipes.receiving {
            return self.recv_remaining(pipes, target);
        }
        let mut untried = self.active.len();
        while untried > 0 {
            untried -= 1;
            let id = self.active[self.current];
            let Some(pipe) = pipes.get(id) else {
                self.skip_current(false);
                continue;
            };
            if let Some(part) = pipe.recv(target)? {
                if !part.more {
                    self.advance();
                } else if self.single {
                    self.skip_message(pipes);
                    pipes.shared.discards.count_discarded(DiscardReason::TooManyParts);
                    untried = self.active.len();
                    continue;
                } else {
                    pipes.receiving = true;
                }
                return Ok(Received::new(Some(id), part));
            }
            let stays = pipe.is_inproc();
            self.skip_current(stays);
        }
        Err(Error::Again)
    }

    /// Receives the next part of the begun message.
    pub(crate) fn recv_remaining(
        &mut self,
        pipes: &mut Pipes,
        target: &mut Target<'_>,
    ) -> Result<Received, Error> {
        if self.remaining.is_none()
            && let Some(&id) = self.active.get(self.current)
            && let Some(pipe) = pipes.get(id)
            && let Some(part) = pipe.recv_last(target)
        {
            pipes.receiving = false;
            self.advance();
            return Ok(Received::new(Some(id), part));
        }
        if let Some(rest) = &mut self.remaining {
            let part = rest.pop_front();
            pipes.receiving = part.as_ref().is_some_and(Message::more);
            if !pipes.receiving {
                self.remaining = None;
            }
            return Ok(Received::new(None, target.put_message(part.ok_or(Error::NoMemory)?)));
        }
        let from = self.active.get(self.current).copied();
        let part = match from.and_then(|id| pipes.get(id)) {
            Some(pipe) => pipe.recv(target)?,
            None => None,
        };
        let Some(part) = part else {
            pipes.receiving = false;
            return Err(Error::Again);
        };
        if !part.more {
            pipes.receiving = false;
            self.advance();
        }
        Ok(Received::new(from, part))
    }

    /// True if `select` would certainly find no message, by a quick check of each pipe. After
    /// `false` it may still find none.
    #[inline]
    pub(crate) fn is_known_empty(&self, pipes: &mut Pipes) -> bool {
        self.active.iter().all(|&id| pipes.get(id).is_some_and(|pipe| pipe.is_known_empty()))
    }

    /// Chooses the pipe of the next message, which `recv` then takes. Returns `None` if there is no
    /// message. Not allowed within a message.
    #[inline]
    pub(crate) fn select(&mut self, pipes: &mut Pipes) -> Option<PipeId> {
        let mut untried = self.active.len();
        while untried > 0 {
            untried -= 1;
            let id = self.active[self.current];
            let Some(pipe) = pipes.get(id) else {
                self.skip_current(false);
                continue;
            };
            if pipe.can_recv() {
                if self.single && pipe.incoming.head().is_some_and(|head| head.flags & frame::MORE != 0) {
                    self.skip_message(pipes);
                    pipes.shared.discards.count_discarded(DiscardReason::TooManyParts);
                    untried = self.active.len();
                    continue;
                }
                return Some(id);
            }
            let stays = pipe.is_inproc();
            self.skip_current(stays);
        }
        None
    }

    /// Drops the remaining parts of the begun message, or the whole message of the selected pipe.
    pub(crate) fn skip_message(&mut self, pipes: &mut Pipes) {
        pipes.receiving = false;
        if self.remaining.take().is_none() {
            if let Some(pipe) = self.active.get(self.current).and_then(|&id| pipes.get(id)) {
                pipe.skip_message();
            }
            self.advance();
        }
    }

    /// True if `recv` would deliver a part now.
    pub(crate) fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        pipes.receiving || self.select(pipes).is_some()
    }
}

/// Reads and drops all messages from a peer, so that they cannot pile up. Counts them with this
/// reason, unless it is `None`: a peer that should not send any (to PUSH).
pub(crate) fn discard(pipes: &mut Pipes, id: PipeId, reason: DiscardReason) {
    while let Some(pipe) = pipes.get(id)
        && let Ok(Some(part)) = pipe.recv(&mut Target::Buffer(&mut []))
    {
        if !part.more && reason != DiscardReason::None {
            pipes.shared.discards.count_discarded(reason);
        }
    }
}

/// Drops the next part. Returns false if there is no whole message.
pub(super) fn drop_part(pipe: &mut Pipe) -> bool {
    matches!(pipe.recv(&mut Target::Buffer(&mut [])), Ok(Some(_)))
}

/// Moves the next message of `pipe`, or its remaining parts, to `parts`. Returns true if there was
/// a message. If memory is short, some of its parts are still in the pipe.
pub(super) fn move_message(pipe: &mut Pipe, parts: &mut VecDeque<Message>) -> Result<bool, NoMemory> {
    let mut part = Message::new();
    loop {
        parts.try_reserve(1)?;
        let Some(received) = pipe.recv(&mut Target::Message(&mut part))? else { return Ok(false) };
        parts.push_back(std::mem::take(&mut part));
        if !received.more {
            return Ok(true);
        }
    }
}
