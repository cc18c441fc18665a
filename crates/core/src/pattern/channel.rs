//! CHANNEL (RFC 52): the thread-safe PAIR. Exactly one peer at a time, messages of one part both ways. Further peers are refused while
//! there is one.

use super::Pattern;
use super::rotation::{FairQueue, Rotation};
use crate::error::Error;
use crate::pipe::{Part, PipeId, Pipes, Received, Target};

/// The behaviour of a CHANNEL socket.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    peer: Option<PipeId>,
    outgoing: Rotation,
    incoming: FairQueue,
}

impl Pattern for Channel {
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
