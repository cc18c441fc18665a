//! The stage after the CURVE handshake: each frame is sealed in its own MESSAGE (RFC 26).
//!
//! On the wire a MESSAGE is a frame without flags. Its body is the name, a short nonce and a box,
//! and the box holds a flags octet and the body of the plain frame. A frame can be opened only when
//! it is complete, so its parts are kept until then. Kept memory grows with the bytes that have
//! arrived, never with the announced size, and the size is checked at the header.

use super::nacl::{BoxKey, PrefixKey, TAG};
use crate::error::{ProtocolError, Violation};
use crate::frame::{self, COMMAND, Header, MAX_HEADER, MORE};
use crate::memory::{extend, reserve};
use crate::stage::Stage;

/// Nonce prefix of frames from a client.
pub(super) const CLIENT_PREFIX: &[u8; 16] = b"CurveZMQMESSAGEC";
/// Nonce prefix of frames from a server.
pub(super) const SERVER_PREFIX: &[u8; 16] = b"CurveZMQMESSAGES";

const NAME: &[u8] = b"\x07MESSAGE";
/// Number of bytes by which a sealed body is longer than the plain one: name, nonce, tag, flags.
const OVERHEAD: usize = NAME.len() + 8 + TAG + 1;
/// Flags inside the box.
const BOXED_MORE: u8 = 1;
const BOXED_COMMAND: u8 = 2;
/// Memory kept for the next frame that arrives in pieces, in bytes.
const KEPT: usize = 128 * 1024;

/// The stage of a CURVE connection.
pub(super) struct Traffic {
    seal_key: PrefixKey,
    /// Counter of the last nonce used; never used again. When the counter is exhausted, sending
    /// stops.
    sent: u64,
    outward: FrameAssembler,
    /// True if there was no memory for a frame to be sealed.
    exhausted: bool,
    open_key: PrefixKey,
    /// Last counter received. Only greater counters are accepted.
    heard: u64,
    inward: FrameAssembler,
    max_msg_size: Option<u64>,
}

impl Traffic {
    /// Makes the stage from the nonce prefixes of both directions and the last counter used in
    /// each.
    pub fn new(
        key: BoxKey,
        (seal_prefix, sent): (&[u8; 16], u64),
        (open_prefix, heard): (&[u8; 16], u64),
        max_msg_size: Option<u64>,
    ) -> Self {
        let (outward, inward) = (FrameAssembler::default(), FrameAssembler::default());
        let (seal_key, open_key) = (key.with_prefix(seal_prefix), key.with_prefix(open_prefix));
        Self { seal_key, sent, outward, exhausted: false, open_key, heard, inward, max_msg_size }
    }
}

impl Stage for Traffic {
    fn seal(&mut self, mut plain: &[u8], out: &mut Vec<u8>) {
        while !self.exhausted {
            // The queue's own frames are well formed. After a malformed frame, all later frames
            // would be unreadable.
            let sealed = match self.outward.next(&mut plain, |_| Ok(())) {
                Ok(Some((header, body))) => {
                    let Some(number) = self.sent.checked_add(1) else { return };
                    self.sent = number;
                    seal_frame(&self.seal_key, number, &header, body, out)
                }
                Ok(None) => return,
                Err(error) => Err(error),
            };
            match sealed {
                Ok(()) => {}
                Err(ProtocolError::NoMemory) => self.exhausted = true,
                Err(_) => return,
            }
        }
    }

    fn is_out_of_memory(&self) -> bool {
        self.exhausted
    }

    fn open(&mut self, mut wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let max_msg_size = self.max_msg_size;
        while let Some((_, sealed)) =
            self.inward.next(&mut wire, |header| judge_size(header, max_msg_size))?
        {
            let mut rest = sealed;
            if super::take(&mut rest) != Some(NAME.first_chunk::<8>().unwrap_or(&[0; 8])) {
                return Err(Violation::UnexpectedCommand.into());
            }
            let number = super::take::<8>(&mut rest).ok_or(Violation::MalformedMessage)?;
            let tag = super::take::<TAG>(&mut rest).ok_or(Violation::MalformedMessage)?;
            let number = u64::from_be_bytes(*number);
            if number <= self.heard {
                return Err(Violation::NonceOrder.into());
            }
            open_frame(&self.open_key, number, tag, rest, out)?;
            self.heard = number;
        }
        Ok(())
    }

    fn buffered(&self) -> usize {
        self.outward.held.len() + self.inward.held.len()
    }
}

fn seal_frame(
    key: &PrefixKey,
    number: u64,
    header: &Header,
    body: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    let more = if header.more() { BOXED_MORE } else { 0 };
    let command = if header.is_command() { BOXED_COMMAND } else { 0 };
    reserve(out, MAX_HEADER + OVERHEAD + body.len())?;
    frame::append_header(out, 0, (OVERHEAD + body.len()) as u64);
    out.extend_from_slice(NAME);
    out.extend_from_slice(&number.to_be_bytes());
    let start = out.len();
    out.extend_from_slice(&[0; TAG]);
    out.push(more | command);
    out.extend_from_slice(body);
    let (tag, content) = out[start..].split_at_mut(TAG);
    tag.copy_from_slice(&key.seal_in_place(number, content));
    Ok(())
}

/// Appends the plain frame. The box is opened in its final place: the flags octet lies at the end
/// of the header's space, and the header overwrites it.
fn open_frame(
    key: &PrefixKey,
    number: u64,
    tag: &[u8; TAG],
    sealed: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    let body_len = sealed.len().checked_sub(1).ok_or(Violation::MalformedMessage)?;
    let mut header = [0; MAX_HEADER];
    let header_len = frame::encode_header(0, body_len as u64, &mut header);
    let start = out.len();
    reserve(out, header_len + body_len)?;
    out.extend_from_slice(&header[..header_len - 1]);
    out.extend_from_slice(sealed);
    let flags_at = start + header_len - 1;
    if let Err(error) = key.open_in_place(number, tag, &mut out[flags_at..]) {
        out.truncate(start);
        return Err(error);
    }
    let boxed = out[flags_at];
    let more = if boxed & BOXED_MORE != 0 { MORE } else { 0 };
    let command = if boxed & BOXED_COMMAND != 0 { COMMAND } else { 0 };
    let header_len = frame::encode_header(more | command, body_len as u64, &mut header);
    out[start..start + header_len].copy_from_slice(&header[..header_len]);
    Ok(())
}

fn judge_size(header: &Header, max_msg_size: Option<u64>) -> Result<(), ProtocolError> {
    let Some(size) = header.body_len.checked_sub(OVERHEAD as u64) else {
        return Err(Violation::MalformedMessage.into());
    };
    match max_msg_size {
        Some(limit) if size > limit => Err(ProtocolError::TooLarge { size, limit }),
        _ => Ok(()),
    }
}

/// Assembles whole frames from a stream that arrives in pieces.
#[derive(Default)]
struct FrameAssembler {
    /// The beginning of an incomplete frame. If `whole` is set: a whole frame that the caller has
    /// borrowed.
    held: Vec<u8>,
    whole: bool,
}

impl FrameAssembler {
    /// Returns the next whole frame, from `bytes` alone or from the held bytes and `bytes`, and
    /// advances `bytes`. Returns `None` if it now holds all bytes. `judge` sees each header before
    /// any part of the body is kept.
    fn next<'a, 'b: 'a>(
        &'a mut self,
        bytes: &mut &'b [u8],
        judge: impl Fn(&Header) -> Result<(), ProtocolError>,
    ) -> Result<Option<(Header, &'a [u8])>, ProtocolError> {
        if std::mem::take(&mut self.whole) {
            self.held.clear();
            self.held.shrink_to(KEPT);
        }
        if self.held.is_empty() {
            if let Some(header) = frame::decode_header(bytes)? {
                judge(&header)?;
                if let Some((body, rest)) = split(bytes, &header) {
                    *bytes = rest;
                    return Ok(Some((header, body)));
                }
            }
            extend(&mut self.held, bytes)?;
            *bytes = &[];
            return Ok(None);
        }
        // Read the header octet by octet, at most nine, and then as much of the body as has
        // arrived.
        let header = loop {
            if let Some(header) = frame::decode_header(&self.held)? {
                break header;
            }
            let Some((&octet, rest)) = bytes.split_first() else { return Ok(None) };
            self.held.push(octet);
            *bytes = rest;
        };
        judge(&header)?;
        let total = (header.header_len as u64).saturating_add(header.body_len);
        let missing = usize::try_from(total).unwrap_or(usize::MAX).saturating_sub(self.held.len());
        let (piece, rest) = bytes.split_at(missing.min(bytes.len()));
        extend(&mut self.held, piece)?;
        *bytes = rest;
        if piece.len() < missing {
            return Ok(None);
        }
        self.whole = true;
        Ok(Some((header, &self.held[header.header_len..])))
    }
}

/// Splits a complete frame into its body and the bytes after it.
fn split<'a>(bytes: &'a [u8], header: &Header) -> Option<(&'a [u8], &'a [u8])> {
    let body_len = usize::try_from(header.body_len).ok()?;
    bytes.get(header.header_len..)?.split_at_checked(body_len)
}
