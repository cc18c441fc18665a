//! REP (RFC 28): receives a request from any peer, then sends the reply to that peer, strictly
//! alternating.
//!
//! The envelope of a request is all parts up to and including the first empty one. We queue the
//! envelope for the way back at once, as the first parts of a message that is unfinished until the
//! reply is sent. If a peer has left, or has no room, it does not get the reply.

use super::rotation::FairQueue;
use super::{Pattern, Received, Sent};
use crate::error::{Error, NoMemory};
use crate::pipe::{Body, DiscardReason, OnFull, Part, Pipe, PipeId, Pipes, Route, Target};
use tautline_proto::frame;
use tautline_queue::message::Message;

#[cfg(test)]
mod tests;

/// State of the alternation of requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum RepState {
    /// No request is in progress.
    #[default]
    Idle,
    /// The envelope of this pipe's request is being taken. The state lasts between calls if there
    /// was no memory for a part of the envelope.
    Opening(PipeId),
    /// The envelope was taken; its delimiter still has to be written before the reply.
    Opened(PipeId),
    /// The envelope of a request was taken; the request is being received.
    Receiving,
    /// The request was received; its reply is due.
    Replying,
}

/// The behaviour of a REP socket.
#[derive(Debug, Default)]
pub(crate) struct Rep {
    incoming: FairQueue,
    state: RepState,
    /// Destination of the reply. `None` means that the reply is dropped.
    reply_to: Option<PipeId>,
    /// A part of the envelope that still has to be written before the reply. Empty if there is no
    /// such part.
    label: Message,
}

impl Rep {
    /// Finds a request and sends its envelope back. Returns false if there is no request.
    fn open_request(&mut self, pipes: &mut Pipes) -> Result<bool, NoMemory> {
        while let Some(id) = self.incoming.select(pipes) {
            let Some(pipe) = pipes.get(id) else { return Ok(false) };
            if self.state == RepState::Idle {
                self.reply_to = pipe.outgoing.has_room(OnFull::Drop).then_some(id);
                self.state = RepState::Opening(id);
            }
            let with_reply = self.reply_to.is_some();
            if self.state == RepState::Opening(id) {
                if !return_envelope(pipe, with_reply, &mut self.label)? {
                    // There is no delimiter, or no part follows it: this is not a request.
                    if with_reply {
                        pipe.outgoing.rollback();
                    }
                    self.incoming.skip_message(pipes);
                    pipes.shared.discards.count_discarded(DiscardReason::NoDelimiter);
                    self.reset();
                    continue;
                }
                self.state = RepState::Opened(id);
            }
            if with_reply {
                pipe.send(&mut Part::copied(b"", true))?;
            }
            pipes.receiving = true;
            self.state = RepState::Receiving;
            return Ok(true);
        }
        Ok(false)
    }

    fn reset(&mut self) {
        self.state = RepState::Idle;
        self.reply_to = None;
        self.label.clear();
    }
}

/// Takes the parts up to and including the first empty one. Returns false if the message has no
/// empty part, or ends with it; one part is left then. If there is no memory for a part, here or
/// before the reply, the caller must call again with the same label.
fn return_envelope(pipe: &mut Pipe, with_reply: bool, label: &mut Message) -> Result<bool, NoMemory> {
    while !(label.is_empty() && pipe.incoming.skip_delimiter()) {
        if label.is_empty() {
            if pipe.incoming.head().is_none_or(|head| head.flags & frame::MORE == 0) {
                return Ok(false);
            }
            pipe.recv(&mut Target::Message(label))?;
            if label.is_empty() {
                break;
            }
        }
        if with_reply {
            pipe.send(&mut Part { body: Body::Owned(label), more: true, patient: false })?;
        }
        label.clear();
    }
    Ok(true)
}

impl Pattern for Rep {
    fn attach(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.attach(pipe);
    }

    fn handle_readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.mark_readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if [RepState::Opening(pipe), RepState::Opened(pipe)].contains(&self.state) {
            self.reset();
        } else if self.reply_to == Some(pipe) {
            self.reply_to = None;
        }
        self.incoming.detach(pipes, pipe);
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        if self.state != RepState::Replying {
            return Err(pipes.shared.refuse_out_of_turn());
        }
        let to = self.reply_to;
        let sent = match to.and_then(|id| pipes.get_begun(id)) {
            Some(pipe) => {
                pipe.send(part)?;
                Sent { to, route: Route::NONE }
            }
            None => {
                part.consume();
                Sent::UNADDRESSED
            }
        };
        if !part.more {
            self.state = RepState::Idle;
            self.reply_to = None;
        }
        Ok(sent)
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if self.state == RepState::Replying {
            return Err(pipes.shared.refuse_out_of_turn());
        }
        if self.state != RepState::Receiving && !self.open_request(pipes)? {
            return Err(Error::Again);
        }
        let received = self.incoming.recv(pipes, target)?;
        if !received.more {
            self.state = RepState::Replying;
        }
        Ok(received)
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        self.state == RepState::Replying
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        match self.state {
            RepState::Replying => false,
            // If there is no memory for the envelope, a receive fails at once and does not block.
            RepState::Idle | RepState::Opening(_) | RepState::Opened(_) => {
                self.open_request(pipes).unwrap_or(true)
            }
            RepState::Receiving => true,
        }
    }
}
