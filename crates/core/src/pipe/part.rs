//! What goes into a pipe and comes out of it: one part of a message, from or into the caller's
//! memory.

use crate::error::NoMemory;
use crate::message::Message;

/// One message part on its way out.
pub(crate) struct Part<'a> {
    /// The body.
    pub(crate) body: Body<'a>,
    /// More parts of the same message follow.
    pub(crate) more: bool,
    /// The caller can be held up for a moment (see `Pacer`).
    pub(crate) patient: bool,
}

/// Where a part's body is.
pub(crate) enum Body<'a> {
    /// The caller's buffer; copied.
    Borrowed(&'a [u8]),
    /// A message that is taken (left empty) when the part is sent, and left alone when it is not.
    Owned(&'a mut Message),
}

impl<'a> Part<'a> {
    /// A part that is copied from `bytes`.
    pub(crate) fn copied(bytes: &'a [u8], more: bool) -> Self {
        Part { body: Body::Borrowed(bytes), more, patient: false }
    }

    /// The body's bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Borrowed(bytes) => bytes,
            Body::Owned(message) => message.as_slice(),
        }
    }

    /// The body's bytes, if they are less than `limit` and may be copied.
    #[inline(always)]
    pub(crate) fn shorter_than(&self, limit: usize) -> Option<&[u8]> {
        match &self.body {
            Body::Borrowed(bytes) => (bytes.len() < limit).then_some(bytes),
            Body::Owned(message) => message.shorter_than(limit),
        }
    }

    /// Empties an owned body: the part was consumed without reaching a pipe (dropped), or was
    /// copied everywhere it had to go.
    #[inline]
    pub(crate) fn consume(&mut self) {
        if let Body::Owned(message) = &mut self.body {
            // In place: to move what was just written would wait for the stores.
            message.clear();
        }
    }
}

/// Where a received part goes.
pub(crate) enum Target<'a> {
    /// The caller's buffer; a longer body is cut.
    Buffer(&'a mut [u8]),
    /// A message; its former content is released.
    Message(&'a mut Message),
}

/// A part was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// The whole body's length, also when the buffer was shorter.
    pub(crate) len: usize,
    /// More parts of the same message follow.
    pub(crate) more: bool,
}

impl Target<'_> {
    /// Delivers a part that the pattern makes itself (a routing id).
    pub(crate) fn put(&mut self, body: &[u8], more: bool) -> Result<Received, NoMemory> {
        match self {
            Target::Buffer(buffer) => {
                let n = body.len().min(buffer.len());
                buffer[..n].copy_from_slice(&body[..n]);
            }
            Target::Message(message) => {
                **message = Message::try_from_slice(body).ok_or(NoMemory)?;
                message.set_more(more);
            }
        }
        Ok(Received { len: body.len(), more })
    }

    /// Delivers a message that the pattern had received before.
    pub(crate) fn put_message(&mut self, message: Message) -> Received {
        let received = Received { len: message.len(), more: message.more() };
        match self {
            Target::Buffer(buffer) => {
                let n = received.len.min(buffer.len());
                buffer[..n].copy_from_slice(&message.as_slice()[..n]);
            }
            Target::Message(target) => **target = message,
        }
        received
    }
}
