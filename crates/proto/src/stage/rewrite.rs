//! The skeleton of every frame-rewriting stage: new headers, bodies passed through as they come.
//!
//! A stage supplies a function that reads the head of a frame (its header, and of the body no more
//! than it needs to decide) and appends what takes its place. All splitting is handled here, once.

use crate::error::ProtocolError;

/// The most bytes of a frame a head function may ask for: a header of 10 and the prefix of a
/// SUBSCRIBE.
const LOOKAHEAD: usize = 20;

/// What a head function made of the bytes at the start of a frame.
pub(super) enum Head {
    /// Cannot tell yet; ask again with more bytes of this frame.
    Short,
    /// Read `consumed` bytes and wrote their replacement; `body` more bytes belong to the frame, to
    /// be passed through or dropped.
    Frame { consumed: usize, body: u64, keep: bool },
}

/// One direction of a frame-rewriting stage.
#[derive(Default)]
pub(super) struct Rewriter {
    /// Start of a frame whose head function asked for more.
    held: [u8; LOOKAHEAD],
    held_len: usize,
    /// Bytes of the current frame's body still to come, and whether they are passed on.
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

    /// Drops everything from here on.
    pub fn discard(&mut self) {
        *self = Self { body: u64::MAX, ..Self::default() };
    }

    /// Bytes held back.
    pub fn buffered(&self) -> usize {
        self.held_len
    }

    /// Asks the head function again with the held bytes and as many new ones as fit.
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
                // Held bytes that were only looked at: all of this frame's body, for the head
                // function would not have asked for more otherwise.
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

    /// Passes on or drops what belongs to the current body; returns the rest.
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

    /// Frames of one length octet; the head function looks at two body bytes but consumes the
    /// length only.
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
