//! WebSocket frames (RFC 6455, section 5) from ZMTP frames, and back (RFC 45, "Framing").
//!
//! A ZMTP frame is one binary message: an octet of flags, then the body. Bodies stream through.
//! Only a message that the peer has cut into fragments is assembled first, because a ZMTP frame
//! begins with its length. Our control frames are written between two other frames, at most one of
//! each kind: if a peer floods us with pings, we answer only the last one (section 5.5.3).

use super::mask::{self, Masks};
use crate::error::{ProtocolError, Violation};
use crate::frame::{COMMAND, MAX_BODY, MORE, append_header, decode_header};
use crate::handshake::MAX_COMMAND;
use crate::memory::extend;

const FIN: u8 = 0x80;
const CONTINUATION: u8 = 0;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// Bit of the second octet: a mask follows the length.
const MASKED: u8 = 0x80;
/// The longest payload of a control frame.
const MAX_CONTROL: u64 = 125;
/// The longest header: two octets, a length of eight, a mask.
const MAX_HEADER: usize = 14;

/// ZWS flag: further frames of the same message follow.
const ZWS_MORE: u8 = 1;
/// ZWS flag: a command.
const ZWS_COMMAND: u8 = 2;

/// Status of an orderly close.
pub(super) const NORMAL: u16 = 1000;
/// Status of a close caused by a violation of the protocol.
pub(super) const PROTOCOL_ERROR: u16 = 1002;

/// Converts ZMTP frames to WebSocket frames.
pub(super) struct Sealer {
    /// Source of masks. Only clients have one.
    masks: Option<Masks>,
    /// Header of a ZMTP frame, as far as it has arrived.
    header: Vec<u8>,
    /// Bytes of the body still to come. `mask` and its phase apply to them.
    body: u64,
    mask: [u8; 4],
    phase: usize,
    /// Payloads of control frames that wait to be sent.
    ping: bool,
    pong: Option<Vec<u8>>,
    close: Option<Vec<u8>>,
    /// True if there was no memory for the body of a frame.
    exhausted: bool,
}

impl Sealer {
    pub(super) fn new(masks: Option<Masks>) -> Self {
        Sealer {
            masks,
            header: Vec::new(),
            body: 0,
            mask: [0; 4],
            phase: 0,
            ping: false,
            pong: None,
            close: None,
            exhausted: false,
        }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    pub(super) fn ping(&mut self) {
        self.ping = true;
    }

    pub(super) fn pong(&mut self, payload: Vec<u8>) {
        self.pong = Some(payload);
    }

    /// Schedules a close frame. `payload` is a status, or the payload of the peer's close frame.
    pub(super) fn close(&mut self, payload: &[u8]) {
        self.close = Some(payload.to_vec());
    }

    pub(super) fn has_control(&self) -> bool {
        self.ping || self.pong.is_some() || self.close.is_some()
    }

    pub(super) fn buffered(&self) -> usize {
        self.header.len() + [&self.pong, &self.close].into_iter().flatten().map(Vec::len).sum::<usize>()
    }

    /// Takes the next bytes of ZMTP frames.
    pub(super) fn push(&mut self, mut zmtp: &[u8], out: &mut Vec<u8>) {
        loop {
            let take = usize::try_from(self.body).unwrap_or(usize::MAX).min(zmtp.len());
            let (body, rest) = zmtp.split_at(take);
            let start = out.len();
            if extend(out, body).is_err() {
                (self.exhausted, self.body) = (true, u64::MAX);
                return;
            }
            if self.masks.is_some() {
                self.phase = mask::apply(&mut out[start..], self.mask, self.phase);
            }
            self.body -= take as u64;
            zmtp = rest;
            if self.body > 0 {
                return;
            }
            self.put_control(out);
            let Some((&octet, rest)) = zmtp.split_first() else { return };
            self.header.push(octet);
            zmtp = rest;
            match decode_header(&self.header) {
                Ok(None) => {}
                Ok(Some(header)) => {
                    self.header.clear();
                    let more = if header.more() { ZWS_MORE } else { 0 };
                    let command = if header.is_command() { ZWS_COMMAND } else { 0 };
                    self.put_head(BINARY, header.body_len.saturating_add(1), out);
                    out.push((more | command) ^ self.mask[0]);
                    self.phase = 1;
                    self.body = header.body_len;
                }
                // Our own queues never contain such a header.
                Err(_) => self.body = u64::MAX,
            }
        }
    }

    /// Appends the final control frames if the stream is between two frames. No frame follows them.
    pub(super) fn last(&mut self, out: &mut Vec<u8>) {
        if self.body == 0 {
            self.put_control(out);
        }
        (self.ping, self.pong, self.close) = (false, None, None);
    }

    fn put_control(&mut self, out: &mut Vec<u8>) {
        if !self.has_control() {
            return;
        }
        let ping = std::mem::take(&mut self.ping).then(Vec::new);
        for (opcode, payload) in [(PONG, self.pong.take()), (PING, ping), (CLOSE, self.close.take())] {
            let Some(payload) = payload else { continue };
            self.put_head(opcode, payload.len() as u64, out);
            let start = out.len();
            out.extend_from_slice(&payload);
            mask::apply(&mut out[start..], self.mask, 0);
        }
    }

    fn put_head(&mut self, opcode: u8, length: u64, out: &mut Vec<u8>) {
        let masked = if self.masks.is_some() { MASKED } else { 0 };
        out.push(FIN | opcode);
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(short @ ..=125), _) => out.push(masked | short),
            (_, Ok(length)) => {
                out.push(masked | 126);
                out.extend(length.to_be_bytes());
            }
            _ => {
                out.push(masked | 127);
                out.extend(length.to_be_bytes());
            }
        }
        // Without masks the mask is zero, which leaves the bytes unchanged.
        if let Some(masks) = &mut self.masks {
            self.mask = masks.next();
            out.extend(self.mask);
        }
    }
}

/// Requests in the peer's control frames.
#[derive(Default)]
pub(super) struct ControlFrames {
    /// The payload of the last ping.
    pub(super) ping: Option<Vec<u8>>,
    /// Status of a close frame, to be returned to the peer.
    pub(super) close: Option<Vec<u8>>,
}

enum Payload {
    /// Waits for the header of the next frame.
    None,
    /// The flags of a ZMTP frame that is not fragmented.
    Flags,
    /// The body of such a frame.
    Body,
    /// A fragment of a message.
    Fragment { last: bool },
    /// A control frame.
    Control(u8),
}

/// Converts WebSocket frames to ZMTP frames.
pub(super) struct Opener {
    /// True if the peer must mask its frames, false if it must not.
    masked: bool,
    /// Largest message that is assembled from fragments. `None` during the handshake: a message
    /// that follows the handshake in the same read is judged after the handshake, and until then at
    /// most the length of a command is kept.
    limit: Option<u64>,
    header: Vec<u8>,
    payload: Payload,
    remaining: u64,
    mask: [u8; 4],
    phase: usize,
    /// The fragments received so far, starting with the octet of flags.
    fragments: Option<Vec<u8>>,
    control: Vec<u8>,
}

impl Opener {
    pub(super) fn new(masked: bool) -> Self {
        Opener {
            masked,
            limit: None,
            header: Vec::new(),
            payload: Payload::None,
            remaining: 0,
            mask: [0; 4],
            phase: 0,
            fragments: None,
            control: Vec::new(),
        }
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = Some(limit);
    }

    pub(super) fn buffered(&self) -> usize {
        self.header.len() + self.control.len() + self.fragments.as_ref().map_or(0, Vec::len)
    }

    /// Takes the next bytes from the wire and appends ZMTP frames. Ignores all bytes after a close
    /// frame.
    pub(super) fn push(
        &mut self,
        mut wire: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ControlFrames, ProtocolError> {
        let mut said = ControlFrames::default();
        loop {
            if let Payload::None = self.payload {
                let Some((&octet, rest)) = wire.split_first() else { return Ok(said) };
                self.header.push(octet);
                wire = rest;
                self.head()?;
                if let Payload::None = self.payload {
                    continue;
                }
            }
            let take = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(wire.len());
            let (bytes, rest) = wire.split_at(take);
            wire = rest;
            self.remaining -= take as u64;
            self.take(bytes, out)?;
            if self.remaining > 0 {
                return Ok(said);
            }
            match std::mem::replace(&mut self.payload, Payload::None) {
                Payload::Control(PING) => said.ping = Some(std::mem::take(&mut self.control)),
                Payload::Control(CLOSE) => {
                    let mut payload = std::mem::take(&mut self.control);
                    payload.truncate(2);
                    said.close = Some(payload);
                    return Ok(said);
                }
                Payload::Fragment { last: true } => self.put_together(out)?,
                _ => self.control.clear(),
            }
        }
    }

    /// Judges the header once it is complete.
    fn head(&mut self) -> Result<(), ProtocolError> {
        let [first, second, rest @ ..] = &self.header[..] else { return Ok(()) };
        let (fin, opcode) = (first & FIN != 0, first & !FIN);
        // An opcode with a reserved bit set is unknown.
        let known = matches!(opcode, CONTINUATION | BINARY | CLOSE | PING | PONG);
        let in_message = self.fragments.is_some();
        let in_place = opcode >= CLOSE || in_message == (opcode == CONTINUATION);
        if !known || !in_place || (second & MASKED != 0) != self.masked {
            return Err(Violation::WebSocketFrame.into());
        }
        let (length, mask) = match second & !MASKED {
            126 => match rest.split_first_chunk() {
                Some((length, mask)) => (u16::from_be_bytes(*length).into(), mask),
                None => return Ok(()),
            },
            127 => match rest.split_first_chunk() {
                Some((length, mask)) => (u64::from_be_bytes(*length), mask),
                None => return Ok(()),
            },
            short => (short.into(), rest),
        };
        if length > MAX_BODY || opcode >= CLOSE && (!fin || length > MAX_CONTROL) {
            return Err(Violation::WebSocketFrame.into());
        }
        if self.masked {
            let Some(mask) = mask.first_chunk() else { return Ok(()) };
            self.mask = *mask;
        }
        debug_assert!(self.header.len() <= MAX_HEADER);
        self.header.clear();
        (self.remaining, self.phase) = (length, 0);
        self.payload = match opcode {
            BINARY if fin && length == 0 => return Err(Violation::WebSocketFrame.into()),
            BINARY if fin => Payload::Flags,
            BINARY | CONTINUATION => {
                self.fragments.get_or_insert_default();
                self.check_size(0)?;
                Payload::Fragment { last: fin }
            }
            control => Payload::Control(control),
        };
        Ok(())
    }

    /// Checks the size of the fragmented message: the bytes so far, `more` new bytes, and the
    /// announced rest of the fragment.
    fn check_size(&self, more: usize) -> Result<(), ProtocolError> {
        let come = (self.fragments.as_ref().map_or(0, Vec::len) as u64).saturating_add(more as u64);
        let (size, limit) = match self.limit {
            Some(limit) => (come.saturating_add(self.remaining), limit),
            None => (come, MAX_COMMAND),
        };
        // Does not count the octet of flags.
        let size = size.saturating_sub(1);
        if size > limit { Err(ProtocolError::TooLarge { size, limit }) } else { Ok(()) }
    }

    /// Takes bytes of the payload.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut bytes = bytes;
        if let (Payload::Flags, Some((flags, body))) = (&self.payload, bytes.split_first()) {
            let flags = zmtp_flags(flags ^ self.mask[0])?;
            append_header(out, flags, self.remaining + body.len() as u64);
            self.payload = Payload::Body;
            self.phase = 1;
            bytes = body;
        }
        if let Payload::Fragment { .. } = &self.payload {
            self.check_size(bytes.len())?;
        }
        let target = match &self.payload {
            Payload::None | Payload::Flags => return Ok(()),
            Payload::Body => out,
            Payload::Fragment { .. } => self.fragments.get_or_insert_default(),
            Payload::Control(_) => &mut self.control,
        };
        let start = target.len();
        extend(target, bytes)?;
        if self.masked {
            self.phase = mask::apply(&mut target[start..], self.mask, self.phase);
        }
        Ok(())
    }

    fn put_together(&mut self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let message = self.fragments.take().unwrap_or_default();
        let (flags, body) = message.split_first().ok_or(Violation::WebSocketFrame)?;
        append_header(out, zmtp_flags(*flags)?, body.len() as u64);
        extend(out, body)
    }
}

fn zmtp_flags(zws: u8) -> Result<u8, ProtocolError> {
    match zws {
        0 => Ok(0),
        ZWS_MORE => Ok(MORE),
        ZWS_COMMAND => Ok(COMMAND),
        _ => Err(Violation::WebSocketFrame.into()),
    }
}
