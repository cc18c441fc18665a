//! DEALER (RFC 28) and CLIENT (RFC 47): sends to its peers in turn and receives from all of them
//! fairly. The asynchronous counterpart of REP and ROUTER, or of SERVER. Several threads may use a
//! CLIENT, so its messages have one part.

use super::greeting::{greet, probe};
use super::rotation::{FairQueue, Rotation};
use super::{Pattern, Received, Sent};
use crate::error::Error;
use crate::pipe::{Part, PipeId, Pipes, Route, Target};

#[cfg(test)]
mod tests;

/// The behaviour of a DEALER or CLIENT socket.
#[derive(Debug, Default)]
pub(crate) struct Dealer {
    outgoing: Rotation,
    incoming: FairQueue,
}

impl Dealer {
    /// Creates a CLIENT.
    pub(crate) fn client() -> Self {
        Dealer { outgoing: Rotation::single(), incoming: FairQueue::single() }
    }
}

impl Pattern for Dealer {
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        greet(pipes, pipe);
        probe(pipes, pipe);
        self.outgoing.attach(pipe);
        self.incoming.attach(pipe);
    }

    fn handle_readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.mark_readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        self.outgoing.detach(pipe);
        self.incoming.detach(pipes, pipe);
    }

    #[inline]
    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        let sent = self.outgoing.send(pipes, part)?;
        Ok(Sent { route: Route::pipe(self.outgoing.sole()), ..sent })
    }

    #[inline]
    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        let received = self.incoming.recv(pipes, target)?;
        Ok(Received { route: Route::pipe(self.incoming.sole()), ..received })
    }

    fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        self.outgoing.can_send(pipes)
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        self.incoming.can_recv(pipes)
    }
}
