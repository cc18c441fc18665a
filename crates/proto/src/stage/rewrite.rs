//! Common part of all stages that rewrite frames: new headers, and bodies that stream through.
//!
//! A stage supplies a function that reads the head of a frame (the header, and as much of the body
//! as it needs to decide) and appends the new head. This file handles all splits of the input.

use crate::error::ProtocolError;

/// Maximum number of bytes of a frame that a head function may ask for: a header of 10 and the
/// prefix of a SUBSCRIBE.
const LOOKAHEAD: usize = 20;

/// Result of a head function for the bytes at the start of a frame.
pub(super) enum Head {
    /// The function cannot decide yet. Call it again with more bytes of this frame.
    Short,
    /// The function read `consumed` bytes and wrote their replacement. Another `body` bytes belong
    /// to the frame, and are passed through or dropped.
    Frame { consumed: usize, body: u64, keep: bool },
}

/// One direction of a frame-rewriting stage.
#[derive(Default)]
pub(super) struct Rewriter {
    /// Start of a frame whose head function asked for more bytes.
    held: [u8; LOOKAHEAD],
    held_len: usize,
    /// Number of body bytes of the current frame that are still to come. `keep` is true if they are
    /// passed on.
    body: u64,
    keep: bool,
}

impl Rewriter {
    /// Takes the next bytes of the stream.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        mut head: impl FnMut(&[u8], &mut Vec<u8>) -> Result<Head, ProtocolError>,
    ) -> Result<(), ProtocolError> {
        loop {
            bytes = self.pass_body(bytes, out);
            if bytes.is_empty() {
                return Ok(());
            }
            if self.held_len == 0 {
                match head(bytes, out)? {
                    Head::Frame { consumed, body, keep } => {
                        bytes = bytes.get(consumed..).unwrap_or_default();
                        (self.body, self.keep) = (body, keep);
                    }
                    Head::Short => {
                        self.hold(bytes);
                        return Ok(());
                    }
                }
            } else {
                bytes = self.push_held(bytes, out, &mut head)?;
            }
        }
    }

    /// Drops all bytes from now on.
    pub fn discard(&mut self) {
        *self = Self { body: u64::MAX, ..Self::default() };
    }

    /// Returns the number of bytes held back.
    pub fn buffered(&self) -> usize {
        self.held_len
    }

    /// Calls the head function again with the held bytes and as many new ones as fit.
    fn push_held<'a>(
        &mut self,
        bytes: &'a [u8],
        out: &mut Vec<u8>,
        head: &mut impl FnMut(&[u8], &mut Vec<u8>) -> Result<Head, ProtocolError>,
    ) -> Result<&'a [u8], ProtocolError> {
        let (held, old) = (self.held, self.held_len);
        self.hold(bytes);
        match head(&self.held[..self.held_len], out)? {
            Head::Short => Ok(bytes.get(self.held_len - old..).unwrap_or_default()),
            Head::Frame { consumed, body, keep } => {
                (self.body, self.keep, self.held_len) = (body, keep, 0);
                // The head function did not consume these held bytes. All of them belong to the
                // body of this frame, because otherwise the function would not have asked for more.
                self.pass_body(&held[consumed.min(old)..old], out);
                Ok(bytes.get(consumed.saturating_sub(old)..).unwrap_or_default())
            }
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = &mut self.held[self.held_len..];
        let take = room.len().min(bytes.len());
        room[..take].copy_from_slice(&bytes[..take]);
        self.held_len += take;
    }

    /// Passes on or drops the bytes of the current body. Returns the bytes after it.
    fn pass_body<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let take = usize::try_from(self.body).unwrap_or(usize::MAX).min(bytes.len());
        let (body, rest) = bytes.split_at(take);
        if self.keep {
            out.extend_from_slice(body);
        }
        self.body -= take as u64;
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames with one octet of length. The head function reads two body bytes but consumes only
    /// the length.
    fn peeking(bytes: &[u8], out: &mut Vec<u8>) -> Result<Head, ProtocolError> {
        let len = usize::from(bytes[0]);
        if bytes.len() < 1 + len.min(2) {
            return Ok(Head::Short);
        }
        out.push(b'<');
        Ok(Head::Frame { consumed: 1, body: len as u64, keep: bytes.get(1) != Some(&b'x') || len == 0 })
    }

    #[test]
    fn bytes_only_looked_at_are_body() {
        let stream = b"\x03abc\0\x01a\x04xyzw\x02ab";
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let (mut rewriter, mut out) = (Rewriter::default(), Vec::new());
                for piece in [&stream[..first], &stream[first..second], &stream[second..]] {
                    rewriter.push(piece, &mut out, peeking).unwrap();
                }
                assert_eq!(out, b"<abc<<a<<ab", "cut at {first} and {second}");
                assert_eq!(rewriter.buffered(), 0);
            }
        }
    }

    #[test]
    fn after_discard_nothing_passes() {
        let (mut rewriter, mut out) = (Rewriter::default(), Vec::new());
        rewriter.push(b"\x03a", &mut out, peeking).unwrap();
        assert_eq!(rewriter.buffered(), 2);
        rewriter.discard();
        rewriter.push(b"bc\x01a", &mut out, peeking).unwrap();
        assert_eq!((out.len(), rewriter.buffered()), (0, 0));
    }
}
