//! REP (RFC 28): receives a request from any peer, then sends the reply to that peer, strictly
//! alternating.
//!
//! The envelope of a request (all parts up to and including the first empty one) is put on its way
//! back at once, as the first parts of a message that is not finished until the reply is sent. A
//! peer that has gone, or has no room, does not get the reply.

use super::Pattern;
use super::rotation::FairQueue;
use crate::error::Error;
use crate::message::Message;
use crate::pipe::{Body, Part, Pipe, PipeId, Pipes, Received, Target};
use tautline_proto::frame;

#[cfg(test)]
mod tests;

/// Where the alternation of requests and replies stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// No request has been begun.
    #[default]
    Idle,
    /// The envelope of a request was taken; the request is being received.
    Receiving,
    /// The request was received; its reply is due.
    Replying,
}

/// The behaviour of a REP socket.
#[derive(Debug, Default)]
pub(crate) struct Rep {
    incoming: FairQueue,
    state: State,
    /// Where the reply goes; `None`: it is dropped.
    reply_to: Option<PipeId>,
}

impl Rep {
    /// Finds a request and sends its envelope back; false if there is none.
    fn open_request(&mut self, pipes: &mut Pipes) -> bool {
        while let Some(id) = self.incoming.select(pipes) {
            let Some(pipe) = pipes.get(id) else { return false };
            let with_reply = pipe.takes_or_drops();
            if return_envelope(pipe, with_reply) {
                self.reply_to = with_reply.then_some(id);
                pipes.receiving = true;
                self.state = State::Receiving;
                return true;
            }
            // No delimiter, or nothing behind it: not a request; or one that cannot be answered.
            if with_reply {
                pipe.rollback();
            }
            self.incoming.skip_message(pipes);
        }
        false
    }
}

/// Takes the parts up to and including the first empty one; false if the message has none, or ends
/// with it, or there is no memory for them before the reply. A part is left then.
fn return_envelope(pipe: &mut Pipe, with_reply: bool) -> bool {
    let mut label = Message::new();
    while !pipe.skip_delimiter() {
        let Some((head, ..)) = pipe.peek() else { return false };
        if head.flags & frame::MORE == 0 {
            return false;
        }
        pipe.recv(&mut Target::Message(&mut label));
        if head.len == 0 {
            break;
        }
        if with_reply
            && pipe.send(&mut Part { body: Body::Owned(&mut label), more: true, patient: false }).is_err()
        {
            return false;
        }
    }
    !with_reply || pipe.send(&mut Part::copied(b"", true)).is_ok()
}

impl Pattern for Rep {
    fn attach(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.attach(pipe);
    }

    fn readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if self.reply_to == Some(pipe) {
            self.reply_to = None;
        }
        self.incoming.detach(pipes, pipe);
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error> {
        if self.state != State::Replying {
            return Err(Error::State);
        }
        match self.reply_to.and_then(|id| pipes.get(id)) {
            Some(pipe) => pipe.send(part)?,
            None => part.consume(),
        }
        if !part.more {
            self.state = State::Idle;
            self.reply_to = None;
        }
        Ok(())
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if self.state == State::Replying {
            return Err(Error::State);
        }
        if self.state == State::Idle && !self.open_request(pipes) {
            return Err(Error::Again);
        }
        let received = self.incoming.recv(pipes, target)?;
        if !received.more {
            self.state = State::Replying;
        }
        Ok(received)
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        self.state == State::Replying
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        match self.state {
            State::Replying => false,
            State::Idle => self.open_request(pipes),
            State::Receiving => true,
        }
    }
}
