//! DGRAM: datagrams to and from any address. A message has two parts, the other end's address
//! (`host:port`) and the body.

use super::rotation::FairQueue;
use super::{Pattern, Received, Sent};
use crate::error::Error;
use crate::pipe::{OnFull, Part, PipeId, Pipes, Route, Target};

/// The behaviour of a DGRAM socket.
#[derive(Debug, Default)]
pub(crate) struct Dgram {
    /// The pipe to the only endpoint of the socket.
    pipe: Option<PipeId>,
    incoming: FairQueue,
    /// True if the address of a message was sent and its body is due.
    addressed: bool,
    /// True if the endpoint of the address is gone or did not exist: the body is dropped.
    dropping: bool,
}

impl Pattern for Dgram {
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if self.pipe.is_some() {
            pipes.close(pipe);
            return;
        }
        self.pipe = Some(pipe);
        self.incoming.attach(pipe);
    }

    fn handle_readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.mark_readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if self.pipe == Some(pipe) {
            self.pipe = None;
            self.dropping = self.addressed;
            self.incoming.detach(pipes, pipe);
        }
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        // A message has exactly two parts.
        if part.more == self.addressed {
            return Err(Error::Invalid);
        }
        let pipe = match self.pipe {
            Some(id) if self.addressed => pipes.get_begun(id),
            Some(id) => pipes.get(id),
            None => None,
        };
        match pipe {
            Some(pipe) if !self.dropping => {
                if part.more && !pipe.outgoing.has_room(OnFull::Wait) {
                    return Err(Error::Again);
                }
                pipe.send(part)?;
                self.addressed = part.more;
                Ok(Sent { to: self.pipe, route: Route::NONE })
            }
            _ => {
                part.consume();
                self.dropping = part.more;
                self.addressed = part.more;
                Ok(Sent::UNADDRESSED)
            }
        }
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        self.incoming.recv(pipes, target)
    }

    fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        self.addressed
            || self.pipe.and_then(|id| pipes.get(id)).is_none_or(|pipe| pipe.outgoing.has_room(OnFull::Wait))
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        self.incoming.can_recv(pipes)
    }
}

#[cfg(test)]
mod tests;
