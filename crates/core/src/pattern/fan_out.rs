//! One message to many pipes: how PUB and XPUB distribute, and how XSUB sends its own messages upstream (RFC 29).
//!
//! For each message the pattern marks the pipes it goes to, then passes the parts. A pipe at its high-water mark, or gone, misses the
//! whole message; the others are not held up. Nobody is ever waited for.

use crate::message::Message;
use crate::pipe::{Body, Part, PipeId, Pipes};

#[cfg(test)]
mod tests;

/// Bodies of this size and more are shared between the pipes, instead of being copied for each.
const SHARE_FROM: usize = 8 * 1024;

/// All pipes, and which of them the current message goes to.
#[derive(Debug, Default)]
pub(crate) struct FanOut {
    pipes: Vec<PipeId>,
    /// The pipes of the current message, each once.
    matched: Vec<PipeId>,
    /// By number of the pipe: the message it was last marked for.
    marks: Vec<u32>,
    /// Number of the current message, for `marks`.
    message: u32,
    /// The current message is not finished.
    in_message: bool,
}

impl FanOut {
    /// Adds a pipe. It takes part from the next message on.
    pub(crate) fn attach(&mut self, pipe: PipeId) {
        if !self.contains(pipe) {
            let number = pipe.0 as usize;
            if number >= self.marks.len() {
                self.marks.resize(number + 1, 0);
            }
            self.pipes.push(pipe);
        }
    }

    /// Forgets a pipe, also for the rest of the current message.
    pub(crate) fn detach(&mut self, pipe: PipeId) {
        self.pipes.retain(|&id| id != pipe);
        self.matched.retain(|&id| id != pipe);
    }

    /// Whether the pipe is one of these.
    pub(crate) fn contains(&self, pipe: PipeId) -> bool {
        self.pipes.contains(&pipe)
    }

    /// All pipes.
    pub(crate) fn pipes(&self) -> &[PipeId] {
        &self.pipes
    }

    /// Whether parts of an unfinished message have been sent.
    #[inline]
    pub(crate) fn in_message(&self) -> bool {
        self.in_message
    }

    /// A new message: it goes to nobody yet.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.matched.clear();
        self.message = self.message.wrapping_add(1);
        if self.message == 0 {
            self.marks.fill(0);
            self.message = 1;
        }
    }

    /// The message goes to this pipe too. The pipe must have been attached.
    #[inline]
    pub(crate) fn mark(&mut self, pipe: PipeId) {
        if let Some(mark) = self.marks.get_mut(pipe.0 as usize)
            && *mark != self.message
        {
            *mark = self.message;
            self.matched.push(pipe);
        }
    }

    /// The message goes to all pipes.
    pub(crate) fn mark_all(&mut self) {
        self.matched.clone_from(&self.pipes);
    }

    /// The message goes to exactly the pipes it did not go to.
    pub(crate) fn invert(&mut self) {
        let FanOut { pipes, matched, marks, message, .. } = self;
        matched.clear();
        matched.extend(pipes.iter().filter(|id| marks[id.0 as usize] != *message));
    }

    /// Whether every pipe of this message has room for it (see `Pipe::takes`).
    pub(crate) fn has_room(&mut self, pipes: &mut Pipes, patient: bool) -> bool {
        self.matched.iter().all(|&id| pipes.get(id).is_none_or(|pipe| pipe.takes(patient)))
    }

    /// Sends one part of the message to the pipes it goes to; the body is consumed.
    #[inline]
    pub(crate) fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) {
        if self.in_message || part.more {
            self.send_part(pipes, part);
        } else if let &[id] = &self.matched[..] {
            if let Some(pipe) = pipes.get(id)
                && pipe.takes_or_drops()
            {
                pipe.send(part);
            }
        } else if part.bytes().len() < SHARE_FROM {
            for &id in &self.matched {
                if let Some(pipe) = pipes.get(id)
                    && pipe.takes_or_drops()
                {
                    pipe.send(&mut Part::copied(part.bytes(), false));
                }
            }
        } else {
            self.send_part(pipes, part);
        }
        part.consume();
    }

    /// A part of a multi-part message, or a long body: room is asked for once, before the first part.
    fn send_part(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) {
        if !self.in_message {
            self.matched.retain(|&id| pipes.get(id).is_some_and(|pipe| pipe.takes_or_drops()));
        }
        self.in_message = part.more;
        if part.bytes().len() >= SHARE_FROM && self.matched.len() > 1 {
            return self.send_shared(pipes, part);
        }
        for &id in &self.matched {
            if let Some(pipe) = pipes.get(id) {
                pipe.send(&mut Part::copied(part.bytes(), part.more));
            }
        }
    }

    /// Sends a long body to several pipes as references to one copy.
    fn send_shared(&self, pipes: &mut Pipes, part: &mut Part<'_>) {
        let mut copy;
        let body = match &mut part.body {
            Body::Owned(message) => &mut **message,
            Body::Borrowed(bytes) => {
                copy = Message::from_slice(bytes);
                &mut copy
            }
        };
        for &id in &self.matched {
            if let Some(pipe) = pipes.get(id) {
                pipe.send(&mut Part {
                    body: Body::Owned(&mut body.share()),
                    more: part.more,
                    patient: false,
                });
            }
        }
    }
}
