//! PAIR (RFC 31) and CHANNEL (RFC 52): exactly one peer at a time, messages both ways. While there
//! is a peer, further peers are refused. After a peer has left, the next one may connect; the first
//! peer's messages are received first. Several threads may use a CHANNEL, so its messages have one
//! part.

use super::rotation::{FairQueue, Rotation};
use super::{Pattern, Received, Sent};
use crate::error::Error;
use crate::pipe::{Part, PipeId, Pipes, Route, Target};

#[cfg(test)]
mod tests;

/// The behaviour of a PAIR or CHANNEL socket.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    peer: Option<PipeId>,
    /// Former peers that may still have unread messages.
    former: Vec<PipeId>,
    outgoing: Rotation,
    incoming: FairQueue,
}

impl Pair {
    /// Creates a CHANNEL.
    pub(crate) fn channel() -> Self {
        Pair { outgoing: Rotation::single(), incoming: FairQueue::single(), ..Pair::default() }
    }
}

impl Pattern for Pair {
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if let Some(peer) = self.peer {
            if !pipes.check_closed(peer) {
                pipes.close(pipe);
                return;
            }
            self.outgoing.detach(peer);
            self.former.push(peer);
        }
        self.peer = Some(pipe);
        self.outgoing.attach(pipe);
        if self.former.is_empty() {
            self.incoming.attach(pipe);
        }
    }

    fn handle_readable(&mut self, _pipes: &mut Pipes, pipe: PipeId) {
        self.incoming.mark_readable(pipe);
    }

    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if self.peer == Some(pipe) {
            self.peer = None;
            self.outgoing.detach(pipe);
        }
        self.former.retain(|&former| former != pipe);
        self.incoming.detach(pipes, pipe);
        if let Some(next) = self.former.first().copied().or(self.peer) {
            self.incoming.attach(next);
        }
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
