//! The form of what comes to a REQ (RFC 28): every message is the envelope that the request had,
//! then the body.
//!
//! The envelope ends with an empty delimiter. A request id of four octets may come before it;
//! whether there must be one, and which, is for the socket to judge. Anything else shows that the
//! peer does not know what it talks to.

use crate::error::{Clause, ProtocolError};

/// Octets of a request id.
const REQUEST_ID: u64 = 4;

/// Goes over the frames of one connection's messages, in their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplyForm(Next);

/// What the next frame is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Next {
    /// The request id or the delimiter.
    #[default]
    Envelope,
    /// The delimiter behind a request id.
    Delimiter,
    /// A part of the body.
    Body,
}

impl ReplyForm {
    /// Judges the next frame of a message: whether more follow, and how long its body is.
    #[inline]
    pub fn check(&mut self, more: bool, body_len: u64) -> Result<(), ProtocolError> {
        self.0 = match (self.0, more, body_len) {
            (Next::Body, true, _) | (Next::Envelope | Next::Delimiter, true, 0) => Next::Body,
            (Next::Body, false, _) => Next::Envelope,
            (Next::Envelope, true, REQUEST_ID) => Next::Delimiter,
            _ => return Err(Clause::MalformedReply.into()),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many frames of these messages pass.
    fn passing(lengths: &[&[u64]]) -> usize {
        let mut form = ReplyForm::default();
        let frames = lengths.iter().flat_map(|message| {
            message.iter().enumerate().map(|(index, &len)| (index + 1 < message.len(), len))
        });
        frames.map_while(|(more, len)| form.check(more, len).ok()).count()
    }

    #[test]
    fn replies_with_and_without_a_request_id() {
        assert_eq!(passing(&[&[0, 1], &[0, 0, 0], &[4, 0, 1], &[0, 4, 3, 0], &[0, 1 << 40]]), 14);
    }

    #[test]
    fn anything_else_is_malformed_from_its_first_wrong_frame_on() {
        for (message, passed) in [
            (&[0][..], 0),
            (&[1], 0),
            (&[4], 0),
            (&[1, 0, 1], 0),
            (&[4, 1], 1),
            (&[4, 0], 1),
            (&[4, 4, 0, 1], 1),
        ] {
            assert_eq!(passing(&[message]), passed, "{message:?}");
            assert_eq!(passing(&[&[0, 7], message]), 2 + passed, "{message:?} behind a good one");
        }
        assert_eq!(ReplyForm::default().check(false, 0), Err(Clause::MalformedReply.into()));
    }
}
