//! The stage after the CURVE handshake: each frame is sealed in its own MESSAGE (RFC 26).
//!
//! On the wire a MESSAGE is a frame without flags. Its body is the name, a short nonce and a box,
//! and the box holds a flags octet and the body of the plain frame. A frame can be opened only when
//! it is complete, so its parts are kept until then. They are kept where the output frame needs
//! them: each byte is copied once, and the box is sealed or opened in place. Memory for the peer's
//! frames grows with the bytes that have arrived, never with the announced size, and the size is
//! checked at the header.

use super::nacl::{BoxKey, PrefixKey, TAG};
use crate::error::{ProtocolError, Violation};
use crate::frame::{self, COMMAND, Header, MAX_HEADER, MORE};
use crate::memory::{extend, reserve, reserve_exact};
use crate::stage::Stage;

/// Nonce prefix of frames from a client.
pub(super) const CLIENT_PREFIX: &[u8; 16] = b"CurveZMQMESSAGEC";
/// Nonce prefix of frames from a server.
pub(super) const SERVER_PREFIX: &[u8; 16] = b"CurveZMQMESSAGES";

const NAME: &[u8] = b"\x07MESSAGE";
/// Number of bytes before the content of a box: name, nonce and tag.
const LEAD: usize = NAME.len() + 8 + TAG;
/// Number of bytes by which a sealed body is longer than the plain one: the lead, and the flags.
const OVERHEAD: usize = LEAD + 1;
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
    outward: PartialFrame,
    /// True if there was no memory for a frame to be sealed.
    exhausted: bool,
    open_key: PrefixKey,
    /// Last counter received. Only greater counters are accepted.
    heard: u64,
    inward: PartialFrame,
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
        let (outward, inward) = (PartialFrame::default(), PartialFrame::default());
        let (seal_key, open_key) = (key.with_prefix(seal_prefix), key.with_prefix(open_prefix));
        Self { seal_key, sent, outward, exhausted: false, open_key, heard, inward, max_msg_size }
    }
}

impl Stage for Traffic {
    fn seal(&mut self, mut plain: &[u8], out: &mut Vec<u8>) {
        while !self.exhausted {
            match self.seal_next(&mut plain, out) {
                Ok(true) => {}
                Err(ProtocolError::NoMemory) => self.exhausted = true,
                // The queue's own frames are well formed. After a malformed frame, all later frames
                // would be unreadable.
                Ok(false) | Err(_) => return,
            }
        }
    }

    fn is_out_of_memory(&self) -> bool {
        self.exhausted
    }

    fn open(&mut self, mut wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        while self.open_next(&mut wire, out)? {}
        Ok(())
    }

    fn buffered(&self) -> usize {
        self.outward.arrived + self.inward.arrived
    }
}

impl Traffic {
    /// Seals the next frame. Returns false if the frame needs more bytes, or no nonce is left.
    fn seal_next(&mut self, plain: &mut &[u8], out: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        let partial = &mut self.outward;
        if partial.is_empty()
            && let Some((header, body)) = split_frame(plain, |_| Ok(()))?
        {
            let Some(number) = self.sent.checked_add(1) else { return Ok(false) };
            self.sent = number;
            let start = out.len();
            begin_sealed(number, &header, out)?;
            out.extend_from_slice(body);
            finish_sealed(&self.seal_key, number, &mut out[start..], 1 + body.len());
            return Ok(true);
        }
        if partial.frame.is_empty() {
            let Some(header) = partial.take_head(plain, 0, |_| Ok(()))? else { return Ok(false) };
            let Some(number) = self.sent.checked_add(1) else { return Ok(false) };
            begin_sealed(number, &header, &mut partial.frame)?;
            self.sent = number;
            partial.missing = header.body_len;
            partial.content_at = partial.frame.len() - 1;
        }
        if !partial.take_body(plain)? {
            return Ok(false);
        }
        let content_len = partial.frame.len() - partial.content_at;
        finish_sealed(&self.seal_key, self.sent, &mut partial.frame, content_len);
        partial.hand_over(out)?;
        Ok(true)
    }

    /// Opens the next frame. Returns false if the frame needs more bytes.
    fn open_next(&mut self, wire: &mut &[u8], out: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        let max_msg_size = self.max_msg_size;
        let judge = |header: &Header| judge_size(header, max_msg_size);
        let (partial, heard, key) = (&mut self.inward, self.heard, &self.open_key);
        if partial.is_empty()
            && let Some((_, sealed)) = split_frame(wire, judge)?
        {
            let (lead, content) = sealed.split_first_chunk().ok_or(Violation::MalformedMessage)?;
            let start = out.len();
            let opened = begin_plain(content.len() as u64, content.len(), out).and_then(|_| {
                out.extend_from_slice(content);
                finish_plain(key, heard, lead, &mut out[start..], content.len())
            });
            if opened.is_err() {
                out.truncate(start);
            }
            self.heard = opened?;
            return Ok(true);
        }
        if partial.frame.is_empty() {
            let Some(header) = partial.take_head(wire, LEAD, judge)? else { return Ok(false) };
            partial.missing = header.body_len.checked_sub(LEAD as u64).ok_or(Violation::MalformedMessage)?;
            partial.content_at = begin_plain(partial.missing, 0, &mut partial.frame)?;
        }
        if !partial.take_body(wire)? {
            return Ok(false);
        }
        let content_len = partial.frame.len() - partial.content_at;
        let lead = partial.head.last_chunk().ok_or(Violation::MalformedMessage)?;
        self.heard = finish_plain(key, heard, lead, &mut partial.frame, content_len)?;
        partial.hand_over(out)?;
        Ok(true)
    }
}

/// Appends a sealed frame up to the flags in its box, and reserves room for the body.
fn begin_sealed(number: u64, header: &Header, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
    let more = if header.more() { BOXED_MORE } else { 0 };
    let command = if header.is_command() { BOXED_COMMAND } else { 0 };
    let body_len = usize::try_from(header.body_len).unwrap_or(usize::MAX);
    reserve(out, body_len.saturating_add(MAX_HEADER + OVERHEAD))?;
    frame::append_header(out, 0, OVERHEAD as u64 + header.body_len);
    out.extend_from_slice(NAME);
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&[0; TAG]);
    out.push(more | command);
    Ok(())
}

/// Seals the content, which is the end of `frame`.
fn finish_sealed(key: &PrefixKey, number: u64, frame: &mut [u8], content_len: usize) {
    let (start, content) = frame.split_at_mut(frame.len() - content_len);
    let tag = key.seal_in_place(number, content);
    if let Some(place) = start.last_chunk_mut() {
        *place = tag;
    }
}

/// Appends the space of a plain frame's header, except its last octet, and reserves room for the
/// `arrived` bytes of the content. The content follows: the flags take the place of that last octet,
/// so the box is opened in its final place. Returns the position of the content.
fn begin_plain(content_len: u64, arrived: usize, out: &mut Vec<u8>) -> Result<usize, ProtocolError> {
    let body_len = content_len.checked_sub(1).ok_or(Violation::MalformedMessage)?;
    let mut header = [0; MAX_HEADER];
    let header_len = frame::encode_header(0, body_len, &mut header);
    reserve(out, header_len + arrived)?;
    out.extend_from_slice(&header[..header_len - 1]);
    Ok(out.len())
}

/// Opens the content, which is the end of `frame`, and writes the header. Returns the number of the
/// frame.
fn finish_plain(
    key: &PrefixKey,
    heard: u64,
    lead: &[u8; LEAD],
    frame: &mut [u8],
    content_len: usize,
) -> Result<u64, ProtocolError> {
    let mut rest = &lead[..];
    if super::take(&mut rest) != Some(NAME.first_chunk::<8>().unwrap_or(&[0; 8])) {
        return Err(Violation::UnexpectedCommand.into());
    }
    let number = super::take::<8>(&mut rest).ok_or(Violation::MalformedMessage)?;
    let tag = super::take::<TAG>(&mut rest).ok_or(Violation::MalformedMessage)?;
    let number = u64::from_be_bytes(*number);
    if number <= heard {
        return Err(Violation::NonceOrder.into());
    }
    let flags_at = frame.len() - content_len;
    key.open_in_place(number, tag, &mut frame[flags_at..])?;
    let boxed = frame[flags_at];
    let more = if boxed & BOXED_MORE != 0 { MORE } else { 0 };
    let command = if boxed & BOXED_COMMAND != 0 { COMMAND } else { 0 };
    let mut header = [0; MAX_HEADER];
    let header_len = frame::encode_header(more | command, content_len as u64 - 1, &mut header);
    frame[..header_len].copy_from_slice(&header[..header_len]);
    Ok(number)
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

/// An output frame, built while its input arrives in pieces.
#[derive(Default)]
struct PartialFrame {
    /// Header of the input, and the first bytes of its body that the output lacks.
    head: Vec<u8>,
    /// The output. Empty until the head is complete.
    frame: Vec<u8>,
    /// Position of the content of the box in `frame`.
    content_at: usize,
    /// Number of bytes of the body that have not arrived.
    missing: u64,
    /// Number of bytes of the input that have arrived.
    arrived: usize,
}

impl PartialFrame {
    fn is_empty(&self) -> bool {
        self.arrived == 0
    }

    /// Takes the header and `lead` bytes after it. Returns the header if all have arrived. `judge`
    /// sees the header before any part of the body is kept.
    fn take_head(
        &mut self,
        bytes: &mut &[u8],
        lead: usize,
        judge: impl Fn(&Header) -> Result<(), ProtocolError>,
    ) -> Result<Option<Header>, ProtocolError> {
        // The header octet by octet, at most nine.
        let header = loop {
            if let Some(header) = frame::decode_header(&self.head)? {
                break header;
            }
            let Some((&octet, rest)) = bytes.split_first() else { return Ok(None) };
            self.head.push(octet);
            self.arrived += 1;
            *bytes = rest;
        };
        judge(&header)?;
        let missing = (header.header_len + lead).saturating_sub(self.head.len());
        let (piece, rest) = bytes.split_at(missing.min(bytes.len()));
        self.head.extend_from_slice(piece);
        self.arrived += piece.len();
        *bytes = rest;
        Ok((piece.len() == missing).then_some(header))
    }

    /// Takes bytes of the body. Returns true if all have arrived.
    fn take_body(&mut self, bytes: &mut &[u8]) -> Result<bool, ProtocolError> {
        let missing = usize::try_from(self.missing).unwrap_or(usize::MAX);
        let (piece, rest) = bytes.split_at(missing.min(bytes.len()));
        if piece.len() == missing {
            // The last piece needs no spare capacity after it.
            reserve_exact(&mut self.frame, missing)?;
        }
        extend(&mut self.frame, piece)?;
        self.missing -= piece.len() as u64;
        self.arrived += piece.len();
        *bytes = rest;
        Ok(self.missing == 0)
    }

    /// Appends the frame to `out`. If `out` is empty, they change places and no byte is copied.
    fn hand_over(&mut self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if out.is_empty() {
            std::mem::swap(&mut self.frame, out);
        } else {
            extend(out, &self.frame)?;
        }
        self.head.clear();
        self.frame.clear();
        self.frame.shrink_to(KEPT);
        self.arrived = 0;
        Ok(())
    }
}

/// Splits off the first frame, if all of it has arrived. `judge` sees its header as soon as that
/// has arrived.
fn split_frame<'a>(
    bytes: &mut &'a [u8],
    judge: impl Fn(&Header) -> Result<(), ProtocolError>,
) -> Result<Option<(Header, &'a [u8])>, ProtocolError> {
    let Some(header) = frame::decode_header(bytes)? else { return Ok(None) };
    judge(&header)?;
    let Ok(body_len) = usize::try_from(header.body_len) else { return Ok(None) };
    let Some((body, rest)) = bytes[header.header_len..].split_at_checked(body_len) else { return Ok(None) };
    *bytes = rest;
    Ok(Some((header, body)))
}
