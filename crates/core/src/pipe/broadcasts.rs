//! The broadcasts of a socket, by their numbers.

use super::{Broadcast, PipeId, Pipes, Store};

/// The broadcasts of a socket, by number. A broadcast exists while it has members.
pub(super) type Broadcasts = Vec<Option<Box<Broadcast>>>;

impl Pipes {
    /// Queues the first parts of a message (encoded; may be empty) for a pipe that has just stopped
    /// following. The caller sends the other parts by `Pipe::send`. Returns false if the peer is
    /// gone. Also returns false if there is no memory for the parts; the pipe then counts a dropped
    /// message.
    ///
    /// Does not check for room, because the pipe had room as a follower. Its own queue now holds
    /// all its unsent messages and gives credit in steps.
    pub(crate) fn continue_in_queue(&mut self, pipe: PipeId, parts: &[u8]) -> bool {
        let Some(pipe) = self.get(pipe).filter(|pipe| !pipe.has_ended()) else { return false };
        let out = &mut pipe.outgoing;
        let (false, Store::Queue(writer)) = (parts.is_empty(), &mut out.store) else { return true };
        out.in_message = writer.append_encoded(parts).is_ok();
        writer.count_dropped(u64::from(!out.in_message));
        out.in_message
    }

    /// Calls `f` with a broadcast and the pipes. If the broadcast does not exist yet, it has no
    /// members.
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
    /// certainly have room, or have certainly none and miss it. Returns false if no member has got
    /// or missed the message.
    #[inline(never)]
    pub(crate) fn try_publish_fast(&mut self, number: u32, body: &[u8]) -> bool {
        let Some(Some(broadcast)) = self.broadcasts.get_mut(number as usize) else { return false };
        broadcast.try_send_fast(body, self.options.send_hwm) || self.try_publish_past_full(number, body)
    }

    /// Does the same if some members do not follow, and are full.
    #[inline(never)]
    fn try_publish_past_full(&mut self, number: u32, body: &[u8]) -> bool {
        let Pipes { slots, broadcasts, options, .. } = self;
        let Some(Some(broadcast)) = broadcasts.get_mut(number as usize) else { return false };
        !options.xpub_nodrop && broadcast.try_send_past_full(slots, body, options.send_hwm)
    }
}
