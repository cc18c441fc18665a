//! Input and output of a pipe: one part of a message, from or into the caller's memory.

use crate::error::NoMemory;
use tautline_queue::message::Message;

/// Messages of at least this size, including headers, are large: they bypass the log of a
/// broadcast, and a blocking sender of them is paced over inproc.
pub(crate) const LARGE: usize = 8 * 1024;

/// One message part on its way out.
pub(crate) struct Part<'a> {
    /// The body.
    pub(crate) body: Body<'a>,
    /// True if more parts of the same message follow.
    pub(crate) more: bool,
    /// True if the caller can be delayed for a moment (see `Pacer`).
    pub(crate) patient: bool,
}

/// Location of a part's body.
pub(crate) enum Body<'a> {
    /// The caller's buffer; copied.
    Borrowed(&'a [u8]),
    /// A message that is taken (left empty) when the part is sent, and left alone when it is not.
    Owned(&'a mut Message),
}

impl<'a> Part<'a> {
    /// Returns a part that is copied from `bytes`.
    pub(crate) fn copied(bytes: &'a [u8], more: bool) -> Self {
        Part { body: Body::Borrowed(bytes), more, patient: false }
    }

    /// Returns the body's bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.body {
            Body::Borrowed(bytes) => bytes,
            Body::Owned(message) => message.as_slice(),
        }
    }

    /// Returns the body's bytes, if there are fewer than `limit` and they may be copied.
    #[inline(always)]
    pub(crate) fn shorter_than(&self, limit: usize) -> Option<&[u8]> {
        match &self.body {
            Body::Borrowed(bytes) => (bytes.len() < limit).then_some(bytes),
            Body::Owned(message) => message.shorter_than(limit),
        }
    }

    /// Empties an owned body, because the part was consumed without reaching a pipe (dropped), or
    /// was copied to all its targets.
    #[inline]
    pub(crate) fn consume(&mut self) {
        if let Body::Owned(message) = &mut self.body {
            // In place: moving a value that was just written would wait for the stores.
            message.clear();
        }
    }
}

/// Destination of a received part.
pub(crate) enum Target<'a> {
    /// The caller's buffer; a longer body is cut.
    Buffer(&'a mut [u8]),
    /// A message; its former content is released.
    Message(&'a mut Message),
}

/// A part that was put into its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Length of the whole body, even if the buffer was shorter.
    pub(crate) len: usize,
    /// True if more parts of the same message follow.
    pub(crate) more: bool,
}

impl Target<'_> {
    /// Delivers a part that the pattern makes itself (a routing id).
    pub(crate) fn put(&mut self, body: &[u8], more: bool) -> Result<Delivered, NoMemory> {
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
        Ok(Delivered { len: body.len(), more })
    }

    /// Delivers a message that the pattern had received before.
    pub(crate) fn put_message(&mut self, message: Message) -> Delivered {
        let delivered = Delivered { len: message.len(), more: message.more() };
        match self {
            Target::Buffer(buffer) => {
                let n = delivered.len.min(buffer.len());
                buffer[..n].copy_from_slice(&message.as_slice()[..n]);
            }
            Target::Message(target) => **target = message,
        }
        delivered
    }
}
