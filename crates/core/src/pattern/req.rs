//! REQ (RFC 28): sends a request to one of its peers in turn, then receives the reply of that peer,
//! strictly alternating.
//!
//! An empty delimiter precedes a request. With ZMQ_REQ_CORRELATE a four-byte request id precedes
//! the delimiter. A reply must begin with the same parts and come from the peer that was asked;
//! other messages are dropped. ZMQ_REQ_RELAXED allows a new send while waiting: the old request is
//! abandoned. Messages that arrive while no reply is awaited are dropped. (If a peer's messages do
//! not have the form of replies, the connection expels it, see `tautline_proto::ReplyForm`.)

use super::greeting::probe;
use super::hash::SeededHash;
use super::rotation::{FairQueue, Rotation, discard, drop_part};
use super::{Pattern, Received, Sent};
use crate::error::{Error, NoMemory};
use crate::pipe::{DiscardReason, Part, Pipe, PipeId, Pipes, Target};
use std::hash::BuildHasher;
use tautline_proto::frame;

#[cfg(test)]
mod tests;

/// State of the alternation of requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReqState {
    /// A request may be sent.
    Idle,
    /// Parts of a request were sent, but not the last one.
    Sending,
    /// The request was sent; its reply has not arrived.
    Waiting,
    /// The parts before the reply were taken; the reply is being received.
    Receiving,
}

/// The behaviour of a REQ socket.
#[derive(Debug)]
pub(crate) struct Req {
    outgoing: Rotation,
    incoming: FairQueue,
    state: ReqState,
    /// The peer that got the request. `None` if that peer has left: then any reply is accepted.
    asked: Option<PipeId>,
    /// The id of the last request.
    request_id: u32,
    /// True if the last request carried its id.
    correlated: bool,
}

impl Default for Req {
    fn default() -> Self {
        Req {
            outgoing: Rotation::default(),
            incoming: FairQueue::default(),
            state: ReqState::Idle,
            asked: None,
            // A random start, so that a reply to a former socket is not mistaken for a reply to
            // this one.
            request_id: SeededHash::default().hash_one(0_u32) as u32,
            correlated: false,
        }
    }
}

impl Req {
    /// Writes the parts before the request.
    fn begin_request(&mut self, pipe: &mut Pipe) -> Result<(), NoMemory> {
        if self.correlated {
            self.request_id = self.request_id.wrapping_add(1);
            pipe.send(&mut Part::copied(&self.request_id.to_ne_bytes(), true))?;
        }
        pipe.send(&mut Part::copied(b"", true))
    }

    /// Chooses a peer and writes the parts before the request.
    fn start_request(&mut self, pipes: &mut Pipes) -> Result<(), Error> {
        let id = self.outgoing.start(pipes).ok_or(Error::Again)?;
        self.asked = Some(id);
        self.correlated = pipes.options.req_correlate;
        if let Some(pipe) = pipes.get(id)
            && let Err(error) = self.begin_request(pipe)
        {
            pipe.outgoing.rollback();
            self.outgoing.cancel();
            self.asked = None;
            return Err(error.into());
        }
        self.state = ReqState::Sending;
        // Drop the messages that are already queued: they cannot be the reply to this request, and
        // one of them could be mistaken for the reply to a later request.
        while !self.incoming.is_known_empty(pipes) && self.incoming.select(pipes).is_some() {
            self.incoming.skip_message(pipes);
            pipes.shared.discards.count_discarded(DiscardReason::StaleReply);
        }
        Ok(())
    }

    /// Finds the reply and takes the parts before it. Returns false if the reply has not arrived.
    fn open_reply(&mut self, pipes: &mut Pipes) -> Result<bool, NoMemory> {
        while let Some(id) = self.incoming.select(pipes) {
            let Some(pipe) = pipes.get(id) else { return Ok(false) };
            let from_asked = self.asked.is_none_or(|asked| asked == id);
            if from_asked
                && (!self.correlated || take_part(pipe, &self.request_id.to_ne_bytes())?)
                && (pipe.incoming.skip_delimiter() || take_part(pipe, b"")?)
            {
                pipes.receiving = true;
                self.state = ReqState::Receiving;
                return Ok(true);
            }
            let reason = match from_asked && !self.correlated {
                true => DiscardReason::NoReplyDelimiter,
                false => DiscardReason::StaleReply,
            };
            self.incoming.skip_message(pipes);
            pipes.shared.discards.count_discarded(reason);
        }
        Ok(false)
    }
}

/// Takes the next part if its body is `expected` and more parts follow. Leaves any other part.
fn take_part(pipe: &mut Pipe, expected: &[u8]) -> Result<bool, NoMemory> {
    if pipe.incoming.head().is_none_or(|head| head.flags & frame::MORE == 0 || head.len != expected.len()) {
        return Ok(false);
    }
    let Some([first, second]) = pipe.incoming.peek()? else { return Ok(false) };
    let (front, back) = expected.split_at(first.len().min(expected.len()));
    Ok(first == front && second == back && drop_part(pipe))
}

impl Pattern for Req {
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        probe(pipes, pipe);
        self.outgoing.attach(pipe);
        self.incoming.attach(pipe);
    }

    fn handle_readable(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.mark_readable(pipe);
        if matches!(self.state, ReqState::Idle | ReqState::Sending) {
            // No reply is awaited. The message would only be queued until the next request drops
            // it, and the end of its peer could not be noticed.
            discard(pipes, pipe, DiscardReason::StaleReply);
        }
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if self.asked == Some(pipe) {
            self.asked = None;
        }
        self.outgoing.detach(pipe);
        self.incoming.detach(pipes, pipe);
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        if matches!(self.state, ReqState::Waiting | ReqState::Receiving) {
            if !pipes.options.req_relaxed {
                return Err(pipes.shared.refuse_out_of_turn());
            }
            if pipes.receiving {
                self.incoming.skip_message(pipes);
            }
            self.state = ReqState::Idle;
        }
        if self.state == ReqState::Idle {
            self.start_request(pipes)?;
        }
        let sent = self.outgoing.send(pipes, part)?;
        if !part.more {
            self.state = ReqState::Waiting;
        }
        Ok(sent)
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if matches!(self.state, ReqState::Idle | ReqState::Sending) {
            return Err(pipes.shared.refuse_out_of_turn());
        }
        if self.state == ReqState::Waiting && !self.open_reply(pipes)? {
            return Err(Error::Again);
        }
        let received = self.incoming.recv(pipes, target)?;
        if !received.more {
            self.state = ReqState::Idle;
        }
        Ok(received)
    }

    fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        match self.state {
            ReqState::Sending => true,
            ReqState::Waiting | ReqState::Receiving if !pipes.options.req_relaxed => false,
            _ => self.outgoing.can_send(pipes),
        }
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        match self.state {
            ReqState::Idle | ReqState::Sending => false,
            // If there is no memory for it, a receive fails at once and does not block.
            ReqState::Waiting => self.open_reply(pipes).unwrap_or(true),
            ReqState::Receiving => true,
        }
    }
}
