//! Everything after the CURVE handshake: each frame in a MESSAGE of its own (RFC 26).
//!
//! On the wire a MESSAGE is a frame without flags whose body is the name, a short nonce and a box;
//! in the box are a flags octet and the body of the plain frame. A frame is opened only when it is
//! there as a whole, so it has to be kept until then: what is kept grows with what has arrived,
//! never with what was announced, and sizes are judged at the header.

use super::nacl::{BoxKey, PrefixKey, TAG};
use crate::error::{Clause, ProtocolError};
use crate::frame::{self, COMMAND, Header, MAX_HEADER, MORE};
use crate::memory::{extend, reserve};
use crate::stage::Stage;

/// The nonce prefix of what a client sends.
pub(super) const CLIENT_PREFIX: &[u8; 16] = b"CurveZMQMESSAGEC";
/// The nonce prefix of what a server sends.
pub(super) const SERVER_PREFIX: &[u8; 16] = b"CurveZMQMESSAGES";

const NAME: &[u8] = b"\x07MESSAGE";
/// Bytes that a sealed body is longer than the plain one: name, nonce, tag, flags.
const OVERHEAD: usize = NAME.len() + 8 + TAG + 1;
/// The flags inside of the box.
const BOXED_MORE: u8 = 1;
const BOXED_COMMAND: u8 = 2;
/// Memory kept for the next frame that comes in pieces.
const KEPT: usize = 128 * 1024;

/// The stage of a CURVE connection.
pub(super) struct Traffic {
    seal_key: PrefixKey,
    /// The number last used; never used again. At the end of the numbers nothing more is sent.
    sent: u64,
    outward: Gather,
    /// There was no memory for a frame that was to be sealed.
    exhausted: bool,
    open_key: PrefixKey,
    /// The number last heard; only greater ones are taken.
    heard: u64,
    inward: Gather,
    max_msg_size: Option<u64>,
}

impl Traffic {
    /// With the prefixes of both directions and the number last used in each.
    pub fn new(
        key: BoxKey,
        (seal_prefix, sent): (&[u8; 16], u64),
        (open_prefix, heard): (&[u8; 16], u64),
        max_msg_size: Option<u64>,
    ) -> Self {
        let (outward, inward) = (Gather::default(), Gather::default());
        let (seal_key, open_key) = (key.with_prefix(seal_prefix), key.with_prefix(open_prefix));
        Self { seal_key, sent, outward, exhausted: false, open_key, heard, inward, max_msg_size }
    }
}

impl Stage for Traffic {
    fn seal(&mut self, mut plain: &[u8], out: &mut Vec<u8>) {
        while !self.exhausted {
            // The queue's own frames are well formed. If one were not, nothing that follows it
            // could be told apart.
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

    fn exhausted(&self) -> bool {
        self.exhausted
    }

    fn open(&mut self, mut wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let max_msg_size = self.max_msg_size;
        while let Some((_, sealed)) =
            self.inward.next(&mut wire, |header| judge_size(header, max_msg_size))?
        {
            let mut rest = sealed;
            if super::take(&mut rest) != Some(NAME.first_chunk::<8>().unwrap_or(&[0; 8])) {
                return Err(Clause::UnexpectedCommand.into());
            }
            let number = super::take::<8>(&mut rest).ok_or(Clause::MalformedMessage)?;
            let tag = super::take::<TAG>(&mut rest).ok_or(Clause::MalformedMessage)?;
            let number = u64::from_be_bytes(*number);
            if number <= self.heard {
                return Err(Clause::NonceOrder.into());
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
    frame::put_header(out, 0, (OVERHEAD + body.len()) as u64);
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

/// Appends the plain frame. The box is opened in its final place: the flags octet comes to lie
/// where the header ends, and is overwritten by it.
fn open_frame(
    key: &PrefixKey,
    number: u64,
    tag: &[u8; TAG],
    sealed: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    let body_len = sealed.len().checked_sub(1).ok_or(Clause::MalformedMessage)?;
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
        return Err(Clause::MalformedMessage.into());
    };
    match max_msg_size {
        Some(limit) if size > limit => Err(ProtocolError::TooLarge { size, limit }),
        _ => Ok(()),
    }
}

/// Makes whole frames of a stream that comes in pieces.
#[derive(Default)]
struct Gather {
    /// The beginning of a frame whose end is still to come; or, when `whole`, a frame that was lent
    /// out.
    held: Vec<u8>,
    whole: bool,
}

impl Gather {
    /// The next whole frame: from `bytes`, which moves on, or from what was held and `bytes`. None:
    /// all bytes are held. `judge` sees each header before anything of the body is kept.
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
        // The header octet by octet, at most nine of them; then as much of the body as there is.
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

/// The body of a frame that is there as a whole, and what follows it.
fn split<'a>(bytes: &'a [u8], header: &Header) -> Option<(&'a [u8], &'a [u8])> {
    let body_len = usize::try_from(header.body_len).ok()?;
    bytes.get(header.header_len..)?.split_at_checked(body_len)
}
