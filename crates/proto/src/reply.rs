//! Form of the messages that a REQ receives (RFC 28): the envelope of the request, then the body.
//!
//! The envelope ends with an empty delimiter. A request id of four octets may come before it; the
//! socket decides whether an id is required, and which one. Any other form shows that the peer does
//! not know that it talks to a REQ.

use crate::error::{ProtocolError, Violation};

/// Octets of a request id.
const REQUEST_ID: u64 = 4;

/// Checks the frames of one connection's messages, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplyForm(ExpectedFrame);

/// Kind of the next frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ExpectedFrame {
    /// The request id or the delimiter.
    #[default]
    Envelope,
    /// The delimiter after a request id.
    Delimiter,
    /// A part of the body.
    Body,
}

impl ReplyForm {
    /// Judges the next frame of a message. `more` is true if further frames follow.
    #[inline]
    pub fn check(&mut self, more: bool, body_len: u64) -> Result<(), ProtocolError> {
        self.0 = match (self.0, more, body_len) {
            (ExpectedFrame::Body, true, _)
            | (ExpectedFrame::Envelope | ExpectedFrame::Delimiter, true, 0) => ExpectedFrame::Body,
            (ExpectedFrame::Body, false, _) => ExpectedFrame::Envelope,
            (ExpectedFrame::Envelope, true, REQUEST_ID) => ExpectedFrame::Delimiter,
            _ => return Err(Violation::MalformedReply.into()),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of frames that pass.
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
        assert_eq!(ReplyForm::default().check(false, 0), Err(Violation::MalformedReply.into()));
    }
}
