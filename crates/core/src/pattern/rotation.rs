//! Taking turns: [`Rotation`] spreads outgoing messages over the pipes (PUSH, DEALER, REQ, PAIR),
//! [`FairQueue`] takes incoming ones from all pipes alike (RFC 28, 30). Both keep a multi-part
//! message together, whatever happens to its pipe meanwhile: the remaining parts of a message that
//! is being sent are dropped, those of one that is being received are put aside.

use super::short::Short;
use crate::error::{Error, NoMemory};
use crate::message::Message;
use crate::pipe::{Else, Part, Pipe, PipeId, Pipes, Received, Target};
use std::collections::VecDeque;
use tautline_proto::frame;

#[cfg(test)]
mod tests;

/// Round robin over the pipes that can take a message.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    pipes: Vec<PipeId>,
    /// Index of the pipe whose turn it is.
    current: usize,
    /// The current pipe has parts of an unfinished message.
    in_message: bool,
    /// The pipe of an unfinished message is gone; the remaining parts are dropped.
    dropping: bool,
    /// Messages have one part.
    single: bool,
}

impl Rotation {
    /// For socket types without multi-part messages: those are refused.
    pub(crate) fn single() -> Self {
        Rotation { single: true, ..Rotation::default() }
    }

    /// Adds a pipe, behind all others.
    pub(crate) fn attach(&mut self, pipe: PipeId) {
        self.pipes.push(pipe);
    }

    /// Forgets a pipe.
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

    /// Sends one part: the first one to the next pipe with room, the others after it. Again: no
    /// pipe has room.
    #[inline]
    pub(crate) fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error> {
        // The usual case: a message of one part, and room where it is to go.
        if !(part.more | self.in_message | self.dropping)
            && let Some(&id) = self.pipes.get(self.current)
            && let Some(pipe) = pipes.get(id)
            && pipe.has_room(Else::Ask)
        {
            pipe.send(part)?;
            self.advance();
            return Ok(());
        }
        self.send_by_turns(pipes, part)
    }

    #[inline(never)]
    fn send_by_turns(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error> {
        if part.more && self.single {
            return Err(Error::Invalid);
        }
        if self.in_message || self.dropping {
            return self.go_on(pipes, part);
        }
        for _ in 0..self.pipes.len() {
            if let Some(pipe) = pipes.get(self.pipes[self.current])
                && pipe.has_room(Else::Wait)
            {
                pipe.send(part)?;
                if part.more {
                    self.in_message = true;
                } else {
                    self.advance();
                }
                return Ok(());
            }
            self.advance();
        }
        Err(Error::Again)
    }

    /// A part that is not the first one of its message.
    fn go_on(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error> {
        let pipe = match self.pipes.get(self.current) {
            Some(&id) if !self.dropping => pipes.get_begun(id),
            _ => None,
        };
        let Some(pipe) = pipe else {
            self.in_message = false;
            self.dropping = part.more;
            part.consume();
            return Ok(());
        };
        pipe.send(part)?;
        if !part.more {
            self.in_message = false;
            self.advance();
        }
        Ok(())
    }

    /// Chooses the pipe of the next message before it is sent, so that the caller can put parts of
    /// its own in front (with more to follow); `send` then goes on with that pipe. `None`: no pipe
    /// has room. Not within a message.
    pub(crate) fn start(&mut self, pipes: &mut Pipes) -> Option<PipeId> {
        for _ in 0..self.pipes.len() {
            let id = self.pipes[self.current];
            if pipes.get(id).is_some_and(|pipe| pipe.has_room(Else::Wait)) {
                self.in_message = true;
                self.dropping = false;
                return Some(id);
            }
            self.advance();
        }
        None
    }

    /// Takes a `start` back: nothing is there of the message.
    pub(crate) fn cancel(&mut self) {
        self.in_message = false;
    }

    /// The pipe to which all messages go. `None`: there are more, or a message has been begun.
    #[inline]
    pub(crate) fn sole(&self) -> Option<PipeId> {
        match self.pipes[..] {
            [id] if !self.in_message && !self.dropping => Some(id),
            _ => None,
        }
    }

    /// Whether `send` would take a part now.
    pub(crate) fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        if self.in_message || self.dropping {
            return true;
        }
        for _ in 0..self.pipes.len() {
            if pipes.get(self.pipes[self.current]).is_some_and(|pipe| pipe.has_room(Else::Wait)) {
                return true;
            }
            self.advance();
        }
        false
    }
}

/// Whether the fair queue looks at a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Watch {
    /// Not one of its pipes.
    #[default]
    Absent,
    /// Found empty; `readable` brings it back.
    Idle,
    /// In the active list.
    Active,
}

/// One message from each pipe in turn.
///
/// A pipe that announces its messages leaves the active list when it is found empty, so that many
/// idle pipes cost nothing; one that does not (inproc) is looked at whenever its turn comes.
#[derive(Debug, Default)]
pub(crate) struct FairQueue {
    active: Vec<PipeId>,
    /// Index in `active` of the pipe whose turn it is.
    current: usize,
    /// By number of the pipe.
    watch: Short<Watch, 14>,
    /// The rest of the begun message, when its pipe is gone; nothing if there was no memory for it.
    /// (That a message has been begun stands in `Pipes::receiving`; else its rest is on the current
    /// pipe.)
    #[allow(clippy::box_collection)] // Few ever have one.
    rest: Option<Box<VecDeque<Message>>>,
    /// Messages have one part.
    single: bool,
}

impl FairQueue {
    /// For socket types without multi-part messages: those are dropped.
    pub(crate) fn single() -> Self {
        FairQueue { single: true, ..FairQueue::default() }
    }

    /// Adds a pipe and looks at it soon.
    pub(crate) fn attach(&mut self, pipe: PipeId) {
        let number = pipe.0 as usize;
        if number >= self.watch.len() {
            (self.watch.len()..=number).for_each(|_| self.watch.push(Watch::Absent));
        }
        if self.watch[number] != Watch::Active {
            self.watch[number] = Watch::Active;
            self.active.push(pipe);
        }
    }

    /// The pipe may have something to read. Pipes that were not attached are ignored.
    #[inline]
    pub(crate) fn readable(&mut self, pipe: PipeId) {
        if let Some(watch) = self.watch.get_mut(pipe.0 as usize)
            && *watch == Watch::Idle
        {
            *watch = Watch::Active;
            self.active.push(pipe);
        }
    }

    /// Forgets a pipe. If a message from it is half read, the other parts can still be received.
    pub(crate) fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        match self.watch.get_mut(pipe.0 as usize) {
            None | Some(Watch::Absent) => return,
            Some(watch) => *watch = Watch::Absent,
        }
        let Some(index) = self.active.iter().position(|&id| id == pipe) else { return };
        if pipes.receiving && self.rest.is_none() && index == self.current {
            self.put_rest_aside(pipes, pipe);
        }
        self.active.swap_remove(index);
        if self.current == self.active.len() {
            // The current one was the last: it has moved into the gap, or it is the one that left.
            self.current = if index < self.active.len() { index } else { 0 };
        }
    }

    fn put_rest_aside(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        let rest = self.rest.insert(Box::default());
        match pipes.get(pipe).map_or(Ok(false), |pipe| keep_message(pipe, rest)) {
            Ok(true) => {}
            // Pipes show whole messages only, so this is not reached; the receiver must see an end
            // in any case.
            Ok(false) => rest.push_back(Message::new()),
            // What cannot be kept whole is not kept.
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

    /// The current pipe was found empty. `stays`: it must be looked at again.
    fn pass_by(&mut self, stays: bool) {
        if stays {
            return self.advance();
        }
        let pipe = self.active.swap_remove(self.current);
        self.watch[pipe.0 as usize] = Watch::Idle;
        if self.current >= self.active.len() {
            self.current = 0;
        }
    }

    /// The pipe from which all parts come, until another one has news. `None`: there are more.
    #[inline]
    pub(crate) fn sole(&self) -> Option<PipeId> {
        match self.active[..] {
            [id] if self.rest.is_none() => Some(id),
            _ => None,
        }
    }

    /// Receives the next part, of the begun message if there is one.
    #[inline]
    pub(crate) fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        // The usual case: a message of one part, at hand where it is to come from.
        if !pipes.receiving
            && let Some(&id) = self.active.get(self.current)
            && let Some(pipe) = pipes.get(id)
            && let Some(received) = pipe.recv_last(target)
        {
            self.advance();
            return Ok(received);
        }
        self.recv_by_turns(pipes, target)
    }

    #[inline(never)]
    fn recv_by_turns(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if pipes.receiving {
            return self.go_on(pipes, target);
        }
        let mut untried = self.active.len();
        while untried > 0 {
            untried -= 1;
            let Some(pipe) = pipes.get(self.active[self.current]) else {
                self.pass_by(false);
                continue;
            };
            if let Some(received) = pipe.recv(target)? {
                if !received.more {
                    self.advance();
                } else if self.single {
                    self.skip_message(pipes);
                    untried = self.active.len();
                    continue;
                } else {
                    pipes.receiving = true;
                }
                return Ok(received);
            }
            let stays = pipe.is_inproc();
            self.pass_by(stays);
        }
        Err(Error::Again)
    }

    /// Receives the next part of the begun message.
    pub(crate) fn go_on(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if self.rest.is_none()
            && let Some(&id) = self.active.get(self.current)
            && let Some(pipe) = pipes.get(id)
            && let Some(received) = pipe.recv_last(target)
        {
            pipes.receiving = false;
            self.advance();
            return Ok(received);
        }
        if let Some(rest) = &mut self.rest {
            let part = rest.pop_front();
            pipes.receiving = part.as_ref().is_some_and(Message::more);
            if !pipes.receiving {
                self.rest = None;
            }
            return Ok(target.put_message(part.ok_or(Error::NoMemory)?));
        }
        let received = match self.active.get(self.current).and_then(|&id| pipes.get(id)) {
            Some(pipe) => pipe.recv(target)?,
            None => None,
        };
        let Some(received) = received else {
            pipes.receiving = false;
            return Err(Error::Again);
        };
        if !received.more {
            pipes.receiving = false;
            self.advance();
        }
        Ok(received)
    }

    /// Whether there is nothing that `select` would find, as far as a look at each pipe tells;
    /// `false` says nothing.
    #[inline]
    pub(crate) fn is_silent(&self, pipes: &mut Pipes) -> bool {
        self.active.iter().all(|&id| pipes.get(id).is_some_and(|pipe| pipe.is_silent()))
    }

    /// Chooses the pipe of the next message, which `recv` then takes. `None`: nothing to receive.
    /// Not within a message.
    #[inline]
    pub(crate) fn select(&mut self, pipes: &mut Pipes) -> Option<PipeId> {
        let mut untried = self.active.len();
        while untried > 0 {
            untried -= 1;
            let id = self.active[self.current];
            let Some(pipe) = pipes.get(id) else {
                self.pass_by(false);
                continue;
            };
            if pipe.can_recv() {
                if self.single && pipe.head().is_some_and(|head| head.flags & frame::MORE != 0) {
                    self.skip_message(pipes);
                    untried = self.active.len();
                    continue;
                }
                return Some(id);
            }
            let stays = pipe.is_inproc();
            self.pass_by(stays);
        }
        None
    }

    /// Drops the remaining parts of the begun message, or the whole message of the selected pipe.
    pub(crate) fn skip_message(&mut self, pipes: &mut Pipes) {
        pipes.receiving = false;
        if self.rest.take().is_none() {
            if let Some(pipe) = self.active.get(self.current).and_then(|&id| pipes.get(id)) {
                pipe.skip_message();
            }
            self.advance();
        }
    }

    /// Whether `recv` would deliver a part now.
    pub(crate) fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        pipes.receiving || self.select(pipes).is_some()
    }
}

/// Reads and drops all that has come from a peer that has nothing to say (to PUSH), so that it
/// cannot pile up.
pub(crate) fn discard(pipes: &mut Pipes, id: PipeId) {
    if let Some(pipe) = pipes.get(id) {
        while drop_part(pipe) {}
    }
}

/// Drops the next part; false if no whole message is there.
pub(super) fn drop_part(pipe: &mut Pipe) -> bool {
    matches!(pipe.recv(&mut Target::Buffer(&mut [])), Ok(Some(_)))
}

/// Moves the next message of `pipe`, or what is left of it, to `parts`. Whether there was one.
/// Without memory for it, some of its parts are still in the pipe.
pub(super) fn keep_message(pipe: &mut Pipe, parts: &mut VecDeque<Message>) -> Result<bool, NoMemory> {
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
