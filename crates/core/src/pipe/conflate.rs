//! ZMQ_CONFLATE: a pipe whose queues are slots for the newest message.

use super::{Body, Incoming, Link, Outgoing, Part, Pipe, Received, Target};
use crate::error::NoMemory;
use crate::message::Message;

impl Pipe {
    /// Replaces what is waiting. Multipart messages are not supported, as the option's
    /// documentation says.
    pub(super) fn send_conflated(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        let Outgoing::Slot(slot) = &self.outgoing else { return Ok(()) };
        let message = match &mut part.body {
            Body::Borrowed(bytes) => Message::try_from_slice(bytes).ok_or(NoMemory)?,
            Body::Owned(message) => std::mem::take(*message),
        };
        let uncounted = &mut self.aside.get_or_insert_default().uncounted;
        uncounted.messages_out += 1;
        uncounted.bytes_out += message.len() as u64;
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

    pub(super) fn recv_conflated(&mut self, target: &mut Target<'_>) -> Option<Received> {
        let Incoming::Slot(slot) = &self.incoming else { return None };
        let Some((_, mut message)) = slot.take() else { return self.recv_note(target) };
        message.set_more(false);
        let uncounted = &mut self.aside.get_or_insert_default().uncounted;
        uncounted.messages_in += 1;
        uncounted.bytes_in += message.len() as u64;
        if let Some(peer) = &self.peer {
            message.set_metadata(Some(peer.metadata.clone()));
        }
        Some(target.put_message(message))
    }
}
