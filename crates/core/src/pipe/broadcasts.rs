//! The broadcasts of a socket, by their numbers.

use super::{Broadcast, PipeId, Pipes};

/// The broadcasts of a socket, by number. One is there as long as it has members.
pub(super) type Broadcasts = Vec<Option<Box<Broadcast>>>;

impl Pipes {
    /// A pipe gets its messages by this broadcast from the next one on. `may_follow` is true of it.
    pub(crate) fn join_broadcast(&mut self, number: u32, pipe: PipeId) {
        let number = number as usize;
        if number >= self.broadcasts.len() {
            self.broadcasts.resize_with(number + 1, || None);
        }
        self.broadcasts[number].get_or_insert_with(|| Box::new(Broadcast::new())).join(pipe);
    }

    /// Whether this pipe could ever follow a log: it is a connection with a queue.
    pub(crate) fn may_follow(&mut self, pipe: PipeId) -> bool {
        self.get(pipe).is_some_and(|pipe| pipe.outgoing.may_follow(&pipe.link))
    }

    /// Queues the first parts of a message, encoded, if there are any, for a pipe that has just
    /// ceased to follow; the other parts go there by `Pipe::send`. False if its peer is gone, or if
    /// there is no memory for them, which is counted. Room is not asked for. As a follower the pipe
    /// had some, but its own queue, which now holds all that it has not sent, gives credit in
    /// steps.
    pub(crate) fn begin_promised(&mut self, pipe: PipeId, parts: &[u8]) -> bool {
        let Some(pipe) = self.get(pipe).filter(|pipe| !pipe.has_ended()) else { return false };
        parts.is_empty() || pipe.outgoing.begin_encoded(parts)
    }

    /// Lets `f` work on a broadcast, if it is there, and on the pipes.
    pub(crate) fn with_broadcast<T>(
        &mut self,
        number: u32,
        f: impl FnOnce(&mut Broadcast, &mut Pipes) -> T,
    ) -> Option<T> {
        let mut broadcast = self.broadcasts.get_mut(number as usize)?.take()?;
        let result = f(&mut broadcast, self);
        if let Some(place) = self.broadcasts.get_mut(number as usize)
            && !broadcast.is_empty()
        {
            *place = Some(broadcast);
        }
        Some(result)
    }

    /// Sends a message of one part to the members of this broadcast, if all of them follow and
    /// certainly have room. False: none has got it.
    #[inline(never)]
    pub(crate) fn publish_at_once(&mut self, number: u32, body: &[u8]) -> bool {
        let Some(Some(broadcast)) = self.broadcasts.get_mut(number as usize) else { return false };
        broadcast.send_at_once(body, self.options.send_hwm)
    }
}
