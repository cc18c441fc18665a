//! PUSH and PULL (RFC 30), SCATTER and GATHER (RFC 49): the sender gives each message to one of the
//! connected workers in turn. The receiver takes messages from all senders fairly. Several threads
//! may use a SCATTER or GATHER, so their messages have one part.

use super::rotation::{FairQueue, Rotation, discard};
use super::{Pattern, Received, Sent};
use crate::error::Error;
use crate::pipe::{DiscardReason, Part, PipeId, Pipes, Route, Target};

#[cfg(test)]
mod tests;

/// The behaviour of a PUSH or SCATTER socket.
#[derive(Debug, Default)]
pub(crate) struct Push {
    outgoing: Rotation,
}

impl Push {
    /// Creates a SCATTER.
    pub(crate) fn scatter() -> Self {
        Push { outgoing: Rotation::single() }
    }
}

impl Pattern for Push {
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        self.outgoing.attach(pipe);
        discard(pipes, pipe, DiscardReason::None);
    }

    fn handle_readable(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        discard(pipes, pipe, DiscardReason::None);
    }

    fn detach(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.outgoing.detach(pipe);
    }

    #[inline]
    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        let sent = self.outgoing.send(pipes, part)?;
        Ok(Sent { route: Route::pipe(self.outgoing.sole()), ..sent })
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

/// The behaviour of a PULL or GATHER socket.
#[derive(Debug, Default)]
pub(crate) struct Pull {
    incoming: FairQueue,
}

impl Pull {
    /// Creates a GATHER.
    pub(crate) fn gather() -> Self {
        Pull { incoming: FairQueue::single() }
    }
}

impl Pattern for Pull {
    fn attach(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.attach(pipe);
    }

    fn handle_readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.mark_readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.detach(pipes, pipe);
    }

    fn send(&mut self, _pipes: &mut Pipes, _part: &mut Part<'_>) -> Result<Sent, Error> {
        Err(Error::NotSupported)
    }

    #[inline]
    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        let received = self.incoming.recv(pipes, target)?;
        Ok(Received { route: Route::pipe(self.incoming.sole()), ..received })
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        false
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        self.incoming.can_recv(pipes)
    }
}
