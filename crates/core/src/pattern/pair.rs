//! PAIR (RFC 31) and CHANNEL (RFC 52): exactly one peer at a time, messages both ways. Further peers are refused while there is one. The
//! messages of a CHANNEL, which several threads may use, have one part.

use super::Pattern;
use super::rotation::{FairQueue, Rotation};
use crate::error::Error;
use crate::pipe::{Part, PipeId, Pipes, Received, Target};

#[cfg(test)]
mod tests;

/// The behaviour of a PAIR or CHANNEL socket.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    peer: Option<PipeId>,
    outgoing: Rotation,
    incoming: FairQueue,
}

impl Pair {
    /// A CHANNEL.
    pub(crate) fn channel() -> Self {
        Pair { peer: None, outgoing: Rotation::single(), incoming: FairQueue::single() }
    }
}

impl Pattern for Pair {
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if self.peer.is_some() {
            pipes.close(pipe);
            return;
        }
        self.peer = Some(pipe);
        self.outgoing.attach(pipe);
        self.incoming.attach(pipe);
    }

    fn readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if self.peer == Some(pipe) {
            self.peer = None;
            self.outgoing.detach(pipe);
            self.incoming.detach(pipes, pipe);
        }
    }

    #[inline]
    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error> {
        let sent = self.outgoing.send(pipes, part);
        pipes.send_straight_to(self.outgoing.sole());
        sent
    }

    #[inline]
    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        let received = self.incoming.recv(pipes, target);
        pipes.receive_straight_from(self.incoming.sole());
        received
    }

    fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        self.outgoing.can_send(pipes)
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        self.incoming.can_recv(pipes)
    }
}
