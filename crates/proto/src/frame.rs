//! The frame header of ZMTP 3.x: flags, and a length of one or eight octets (RFC 37, "Framing").
//!
//! Inside the engine, all frames have this form, whichever version of ZMTP the peer speaks. Each
//! message therefore calls these functions once or twice. So they are inline, branch little and
//! never allocate.

use crate::error::{ProtocolError, Violation};

/// Flag: further frames of the same message follow.
pub const MORE: u8 = 1;
/// Flag: the length has eight octets instead of one.
pub const LONG: u8 = 2;
/// Flag: a command instead of (a part of) a message.
pub const COMMAND: u8 = 4;
/// The longest header in bytes.
pub const MAX_HEADER: usize = 9;
/// The longest body a frame can announce.
pub const MAX_BODY: u64 = i64::MAX as u64;

/// A decoded frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// At most one of [`MORE`] and [`COMMAND`], plus [`LONG`] if it was set on the wire.
    pub flags: u8,
    /// Bytes of body after the header.
    pub body_len: u64,
    /// Bytes of the header itself: 2 or 9.
    pub header_len: usize,
}

impl Header {
    /// True if further frames of the same message follow.
    #[inline]
    pub fn more(&self) -> bool {
        self.flags & MORE != 0
    }

    /// True if the body is a command.
    #[inline]
    pub fn is_command(&self) -> bool {
        self.flags & COMMAND != 0
    }
}

/// Writes the shortest header for a body of `body_len` bytes and returns its length.
///
/// Only [`MORE`] and [`COMMAND`] of `flags` count; [`LONG`] is set as needed.
#[inline]
pub fn encode_header(flags: u8, body_len: u64, out: &mut [u8; MAX_HEADER]) -> usize {
    let flags = flags & (MORE | COMMAND);
    if body_len <= 255 {
        out[0] = flags;
        out[1] = body_len as u8;
        2
    } else {
        out[0] = flags | LONG;
        out[1..].copy_from_slice(&body_len.to_be_bytes());
        MAX_HEADER
    }
}

/// Decodes the header at the start of `bytes`. Returns `None` if it needs more bytes.
///
/// Reports wrong flags as soon as the first byte is there. Checks sizes only against the protocol's
/// limit of 63 bits: see [`check_size`].
#[inline]
pub fn decode_header(bytes: &[u8]) -> Result<Option<Header>, ProtocolError> {
    let Some(&flags) = bytes.first() else { return Ok(None) };
    if flags > (COMMAND | LONG) || flags == (COMMAND | MORE) {
        return Err(flags_error(flags));
    }
    if flags & LONG == 0 {
        let Some(&len) = bytes.get(1) else { return Ok(None) };
        return Ok(Some(Header { flags, body_len: u64::from(len), header_len: 2 }));
    }
    let Some(len) = bytes.get(1..).and_then(|rest| rest.first_chunk::<8>()) else { return Ok(None) };
    let body_len = u64::from_be_bytes(*len);
    if body_len > MAX_BODY {
        return Err(Violation::FrameLength.into());
    }
    Ok(Some(Header { flags, body_len, header_len: MAX_HEADER }))
}

/// Refuses a frame whose body is larger than `max_msg_size`, before anything is allocated for it.
#[inline]
pub fn check_size(header: &Header, max_msg_size: Option<u64>) -> Result<(), ProtocolError> {
    match max_msg_size {
        Some(limit) if header.body_len > limit => {
            Err(ProtocolError::TooLarge { size: header.body_len, limit })
        }
        _ => Ok(()),
    }
}

/// Appends the header for a body of `body_len` bytes.
pub(crate) fn append_header(out: &mut Vec<u8>, flags: u8, body_len: u64) {
    let mut header = [0; MAX_HEADER];
    let len = encode_header(flags, body_len, &mut header);
    out.extend_from_slice(&header[..len]);
}

#[cold]
fn flags_error(flags: u8) -> ProtocolError {
    if flags & !(MORE | LONG | COMMAND) != 0 {
        Violation::ReservedFlags.into()
    } else {
        Violation::CommandWithMore.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(flags: u8, body_len: u64) -> Vec<u8> {
        let mut out = [0xAA; MAX_HEADER];
        let len = encode_header(flags, body_len, &mut out);
        out[..len].to_vec()
    }

    #[test]
    fn golden_headers() {
        assert_eq!(encoded(0, 0), [0, 0]);
        assert_eq!(encoded(MORE, 255), [1, 255]);
        assert_eq!(encoded(COMMAND, 5), [4, 5]);
        assert_eq!(encoded(0, 256), [2, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(encoded(MORE, 256), [3, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(encoded(COMMAND, MAX_BODY), [6, 0x7F, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(encoded(!COMMAND, 1), [1, 1], "LONG and reserved bits of the caller do not count");
    }

    #[test]
    fn decodes_what_it_encodes_at_every_split() {
        for flags in [0, MORE, COMMAND] {
            for body_len in [0, 1, 254, 255, 256, 65_535, 1 << 32, MAX_BODY] {
                let bytes = encoded(flags, body_len);
                for cut in 0..bytes.len() {
                    assert_eq!(decode_header(&bytes[..cut]), Ok(None));
                }
                let header = decode_header(&bytes).unwrap().unwrap();
                assert_eq!(header.flags & !LONG, flags);
                assert_eq!((header.body_len, header.header_len), (body_len, bytes.len()));
                assert_eq!((header.more(), header.is_command()), (flags == MORE, flags == COMMAND));
                let mut longer = bytes.clone();
                longer.extend([0xFF; 20]);
                assert_eq!(decode_header(&longer).unwrap().unwrap(), header);
            }
        }
    }

    #[test]
    fn a_short_body_may_come_with_a_long_length() {
        let header = decode_header(&[2, 0, 0, 0, 0, 0, 0, 0, 3]).unwrap().unwrap();
        assert_eq!(header, Header { flags: LONG, body_len: 3, header_len: 9 });
    }

    #[test]
    fn every_flags_octet_is_judged_at_once() {
        for flags in 0..=255u8 {
            let expected = match flags {
                0 | 1 | 2 | 3 | 4 | 6 => Ok(None),
                5 | 7 => Err(Violation::CommandWithMore.into()),
                _ => Err(Violation::ReservedFlags.into()),
            };
            assert_eq!(decode_header(&[flags]), expected, "flags {flags:#x}");
        }
    }

    #[test]
    fn lengths_have_63_bits() {
        let mut bytes = [2, 0x80, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(decode_header(&bytes), Err(Violation::FrameLength.into()));
        bytes[1] = 0xFF;
        assert_eq!(decode_header(&bytes), Err(Violation::FrameLength.into()));
    }

    #[test]
    fn sizes_are_checked_against_the_limit() {
        let header = Header { flags: 0, body_len: 100, header_len: 2 };
        assert_eq!(check_size(&header, None), Ok(()));
        assert_eq!(check_size(&header, Some(100)), Ok(()));
        assert_eq!(check_size(&header, Some(99)), Err(ProtocolError::TooLarge { size: 100, limit: 99 }));
        assert_eq!(check_size(&header, Some(0)), Err(ProtocolError::TooLarge { size: 100, limit: 0 }));
    }
}
