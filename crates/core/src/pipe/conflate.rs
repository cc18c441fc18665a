//! ZMQ_CONFLATE: a slot for the newest message in place of a queue.

use super::{Body, Link, Outgoing, Part, Store};
use crate::error::NoMemory;
use tautline_queue::message::Message;

impl Outgoing {
    /// Replaces the waiting message by this one. Multipart messages are not supported, as the
    /// documentation of ZMQ_CONFLATE says.
    pub(super) fn put_conflated(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        let Store::Slot(slot) = &self.store else { return Ok(()) };
        let message = match &mut part.body {
            Body::Borrowed(bytes) => Message::try_from_slice(bytes).ok_or(NoMemory)?,
            Body::Owned(message) => std::mem::take(*message),
        };
        self.conflated.get_or_insert_default().add((1, message.len() as u64));
        slot.put(0, message);
        match &self.link {
            Link::Wire(connection) => {
                if connection.pump_now().is_none() {
                    connection.watch_residual();
                }
            }
            Link::Inproc(_) if self.quiet => self.ring(),
            Link::Inproc(end) => end.notify(),
        }
        Ok(())
    }
}
