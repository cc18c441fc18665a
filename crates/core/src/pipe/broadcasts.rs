//! The broadcasts of a socket, by their numbers.

use super::{Broadcast, PipeId, Pipes};

/// The broadcasts of a socket, by number. One is there as long as it has members.
pub(super) type Broadcasts = Vec<Option<Box<Broadcast>>>;

impl Pipes {
    /// Queues the first parts of a message, encoded, if there are any, for a pipe that has just
    /// ceased to follow; the other parts go there by `Pipe::send`. False if its peer is gone, or if
    /// there is no memory for them, which is counted. Room is not asked for. As a follower the pipe
    /// had some, but its own queue, which now holds all that it has not sent, gives credit in
    /// steps.
    pub(crate) fn begin_promised(&mut self, pipe: PipeId, parts: &[u8]) -> bool {
        let Some(pipe) = self.get(pipe).filter(|pipe| !pipe.has_ended()) else { return false };
        parts.is_empty() || pipe.outgoing.begin_encoded(parts)
    }

    /// Lets `f` work on a broadcast, which has no members if it is not there yet, and on the pipes.
    pub(crate) fn with_broadcast<T>(
        &mut self,
        number: u32,
        f: impl FnOnce(&mut Broadcast, &mut Pipes) -> T,
    ) -> T {
        let number = number as usize;
        if number >= self.broadcasts.len() {
            self.broadcasts.resize_with(number + 1, || None);
        }
        let mut broadcast = self.broadcasts[number].take().unwrap_or_else(|| Box::new(Broadcast::new()));
        let result = f(&mut broadcast, self);
        if !broadcast.is_empty() {
            self.broadcasts[number] = Some(broadcast);
        }
        result
    }

    /// Sends a message of one part to the members of this broadcast, if all of them follow and
    /// certainly have room. False: none has got it.
    #[inline(never)]
    pub(crate) fn publish_at_once(&mut self, number: u32, body: &[u8]) -> bool {
        let Some(Some(broadcast)) = self.broadcasts.get_mut(number as usize) else { return false };
        broadcast.send_at_once(body, self.options.send_hwm)
    }
}
