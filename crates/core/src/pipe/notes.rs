//! Messages about a peer that the socket itself puts in: ZMQ_DISCONNECT_MSG and ZMQ_HICCUP_MSG.

use super::{Pipe, Received, Target};
use crate::message::Message;

impl Pipe {
    /// Tells the receiver something about the peer, with a message that comes behind all that is
    /// there from it. Without memory for it that counts as dropped.
    pub(crate) fn note(&mut self, body: &[u8]) {
        let Some(mut message) = Message::try_from_slice(body) else {
            self.dropped += 1;
            return;
        };
        message.set_metadata(self.described.clone());
        self.aside.get_or_insert_default().notes.push_back(message);
    }

    #[cold]
    pub(super) fn recv_note(&mut self, target: &mut Target<'_>) -> Option<Received> {
        Some(target.put_message(self.aside.as_mut()?.notes.pop_front()?))
    }

    /// Whether one is there.
    pub(super) fn has_notes(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| !aside.notes.is_empty())
    }
}
