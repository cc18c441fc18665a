//! The stage for ZMTP 1.0 peers (RFC 13): other frame headers, no commands, subscriptions as
//! messages.
//!
//! A frame is its length, the flags, the body. The length counts the flags octet and takes one
//! octet up to 254, otherwise `FF` and eight octets. Outbound PING, PONG and other commands are
//! dropped.

use super::Stage;
use super::rewrite::{Head, Rewriter};
use super::subscription::{open_head, seal_head};
use crate::error::{ProtocolError, Violation};
use crate::frame::{Header, MAX_BODY, MORE};
use crate::socket_type::SocketType;

pub(super) fn v1(ours: SocketType) -> Box<dyn Stage> {
    Box::new(V1 {
        seal: Rewriter::default(),
        open: Rewriter::default(),
        takes_subscriptions: ours.takes_subscriptions(),
        inside_message: false,
    })
}

/// Appends the header of a 1.0 frame.
pub(crate) fn append_header(out: &mut Vec<u8>, flags: u8, body_len: u64) {
    let len = body_len + 1;
    match u8::try_from(len) {
        Ok(short) if short < 0xFF => out.push(short),
        _ => {
            out.push(0xFF);
            out.extend_from_slice(&len.to_be_bytes());
        }
    }
    out.push(flags & MORE);
}

struct V1 {
    seal: Rewriter,
    open: Rewriter,
    takes_subscriptions: bool,
    /// True if the previous frame announced this one.
    inside_message: bool,
}

impl Stage for V1 {
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        if self.seal.push(plain, out, |bytes, out| seal_head(bytes, out, false, append_header)).is_err() {
            self.seal.discard();
        }
    }

    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let Self { open, takes_subscriptions, inside_message, .. } = self;
        open.push(wire, out, |bytes, out| {
            let header = match decode(bytes)? {
                Decoded::Short => return Ok(Head::Short),
                Decoded::Void(consumed) => return Ok(Head::Frame { consumed, body: 0, keep: false }),
                Decoded::Frame(header) => header,
            };
            let head = open_head(&header, bytes, out, *takes_subscriptions && !*inside_message)?;
            if let Head::Frame { .. } = head {
                *inside_message = header.more();
            }
            Ok(head)
        })
    }

    fn buffered(&self) -> usize {
        self.seal.buffered() + self.open.buffered()
    }
}

enum Decoded {
    Short,
    /// A frame of length 0, without flags or body, to be discarded silently.
    Void(usize),
    Frame(Header),
}

/// Reads a 1.0 header. Ignores reserved flags, because they only SHOULD be zero and 1.0 was never
/// strict.
fn decode(bytes: &[u8]) -> Result<Decoded, ProtocolError> {
    let (len, len_octets) = match bytes {
        [] => return Ok(Decoded::Short),
        [0xFF, rest @ ..] => match rest.first_chunk::<8>() {
            None => return Ok(Decoded::Short),
            Some(len) => (u64::from_be_bytes(*len), 9),
        },
        [len, ..] => (u64::from(*len), 1),
    };
    let Some(body_len) = len.checked_sub(1) else { return Ok(Decoded::Void(len_octets)) };
    if body_len > MAX_BODY {
        return Err(Violation::FrameLength.into());
    }
    let Some(flags) = bytes.get(len_octets) else { return Ok(Decoded::Short) };
    Ok(Decoded::Frame(Header { flags: flags & MORE, body_len, header_len: len_octets + 1 }))
}
