//! CLIENT (RFC 47): the thread-safe asynchronous end towards SERVER. Sends to its servers in turn and receives from all of them
//! fairly. Messages have one part.

use super::Pattern;
use super::rotation::{FairQueue, Rotation};
use crate::error::Error;
use crate::pipe::{Part, PipeId, Pipes, Received, Target};

/// The behaviour of a CLIENT socket.
#[derive(Debug, Default)]
pub(crate) struct Client {
    outgoing: Rotation,
    incoming: FairQueue,
}

impl Pattern for Client {
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        pipes.greet(pipe);
        self.outgoing.attach(pipe);
        self.incoming.attach(pipe);
    }

    fn readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        self.outgoing.detach(pipe);
        self.incoming.detach(pipes, pipe);
    }

    #[inline]
    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error> {
        if part.more {
            return Err(Error::Invalid);
        }
        self.outgoing.send(pipes, part)
    }

    #[inline]
    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        self.incoming.recv_single(pipes, target)
    }

    fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        self.outgoing.can_send(pipes)
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        self.incoming.select_single(pipes).is_some()
    }
}
