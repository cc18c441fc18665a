//! SCATTER and GATHER (RFC 49): the thread-safe pipeline. Each message, of one part, goes to one of the connected peers in turn, and
//! comes from all of them fairly.

use super::Pattern;
use super::rotation::{FairQueue, Rotation, discard};
use crate::error::Error;
use crate::pipe::{Part, PipeId, Pipes, Received, Target};

/// The behaviour of a SCATTER socket.
#[derive(Debug, Default)]
pub(crate) struct Scatter {
    outgoing: Rotation,
}

impl Pattern for Scatter {
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        self.outgoing.attach(pipe);
        discard(pipes, pipe);
    }

    fn readable(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        discard(pipes, pipe);
    }

    fn detach(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.outgoing.detach(pipe);
    }

    #[inline]
    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error> {
        if part.more {
            return Err(Error::Invalid);
        }
        self.outgoing.send(pipes, part)
    }

    fn recv(&mut self, _pipes: &mut Pipes, _target: &mut Target<'_>) -> Result<Received, Error> {
        Err(Error::NotSupported)
    }

    fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        self.outgoing.can_send(pipes)
    }

    fn can_recv(&mut self, _pipes: &mut Pipes) -> bool {
        false
    }
}

/// The behaviour of a GATHER socket.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    incoming: FairQueue,
}

impl Pattern for Gather {
    fn attach(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.attach(pipe);
    }

    fn readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.detach(pipes, pipe);
    }

    fn send(&mut self, _pipes: &mut Pipes, _part: &mut Part<'_>) -> Result<(), Error> {
        Err(Error::NotSupported)
    }

    #[inline]
    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        self.incoming.recv_single(pipes, target)
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        false
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        self.incoming.select_single(pipes).is_some()
    }
}
