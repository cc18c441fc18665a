//! Commands: control frames that the two ends exchange between messages (RFC 37).
//!
//! A command is the body of a frame with [`COMMAND`]: one octet of name length, the name, the data.
//! The `put_` functions append whole frames, header included, to go into a queue; [`parse`] reads a
//! body after the handshake. During the handshake the session reads commands itself.

use crate::error::{ProtocolError, Violation};
use crate::frame::{COMMAND, MAX_HEADER, append_header};
use crate::metadata::Properties;

/// The longest context a PING or PONG may carry, in bytes.
pub const MAX_PING_CONTEXT: usize = 16;

const SUBSCRIBE: &[u8] = b"\x09SUBSCRIBE";
const CANCEL: &[u8] = b"\x06CANCEL";
const JOIN: &[u8] = b"\x04JOIN";
const LEAVE: &[u8] = b"\x05LEAVE";
const PING: &[u8] = b"\x04PING";
const PONG: &[u8] = b"\x04PONG";
const ERROR: &[u8] = b"\x05ERROR";

/// A command, borrowing from the frame body it was parsed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// The sender asks for a sign of life.
    Ping {
        /// The sender will be silent for at most this many tenths of a second; 0 gives no limit.
        ttl_ds: u16,
        /// Context to return in the PONG, at most 16 bytes.
        context: &'a [u8],
    },
    /// The answer to a PING.
    Pong {
        /// The context of the PING.
        context: &'a [u8],
    },
    /// The peer wants messages that start with these bytes.
    Subscribe(&'a [u8]),
    /// The peer cancels one subscription to messages that start with these bytes.
    Cancel(&'a [u8]),
    /// The peer wants messages of this group (RFC 48).
    Join(&'a [u8]),
    /// The peer no longer wants messages of this group.
    Leave(&'a [u8]),
    /// The peer ends the connection for this reason.
    Error(&'a [u8]),
    /// The peer's metadata. It has no meaning after the handshake.
    Ready(Properties<'a>),
    /// Any other well-formed command, which the receiver ignores.
    Unknown {
        /// The command's name.
        name: &'a [u8],
        /// All bytes after the name.
        data: &'a [u8],
    },
}

/// Reads the body of a command frame that arrived after the handshake.
pub fn parse(body: &[u8]) -> Result<Command<'_>, ProtocolError> {
    let (name, data) = split_name(body)?;
    Ok(match name {
        b"SUBSCRIBE" => Command::Subscribe(data),
        b"CANCEL" => Command::Cancel(data),
        b"JOIN" => Command::Join(data),
        b"LEAVE" => Command::Leave(data),
        b"PING" => {
            let (ttl, context) = data.split_first_chunk().ok_or(Violation::MalformedPing)?;
            // RFC 37 does not allow a longer context. We cut it as libzmq does, which is harmless.
            Command::Ping {
                ttl_ds: u16::from_be_bytes(*ttl),
                context: &context[..context.len().min(MAX_PING_CONTEXT)],
            }
        }
        b"PONG" if data.len() > MAX_PING_CONTEXT => return Err(Violation::MalformedPong.into()),
        b"PONG" => Command::Pong { context: data },
        b"ERROR" => Command::Error(parse_reason(data)?),
        b"READY" => Command::Ready(Properties::new(data)),
        _ => Command::Unknown { name, data },
    })
}

/// Reads a subscription in its form before ZMTP 3.1: a message of one octet, 1 to subscribe or 0 to
/// cancel, and the topic. Returns true for a subscription and false for a cancellation, and the
/// topic.
#[inline]
pub fn legacy_subscription(body: &[u8]) -> Option<(bool, &[u8])> {
    match body {
        [1, topic @ ..] => Some((true, topic)),
        [0, topic @ ..] => Some((false, topic)),
        _ => None,
    }
}

/// Appends a PING frame; a context of more than 16 bytes is cut.
pub fn put_ping(out: &mut Vec<u8>, ttl_ds: u16, context: &[u8]) {
    let context = &context[..context.len().min(MAX_PING_CONTEXT)];
    put_frame(out, PING, &[&ttl_ds.to_be_bytes(), context]);
}

/// Appends a PONG frame; a context of more than 16 bytes is cut.
pub fn put_pong(out: &mut Vec<u8>, context: &[u8]) {
    put_frame(out, PONG, &[&context[..context.len().min(MAX_PING_CONTEXT)]]);
}

/// Appends a SUBSCRIBE frame.
pub fn put_subscribe(out: &mut Vec<u8>, topic: &[u8]) {
    put_frame(out, SUBSCRIBE, &[topic]);
}

/// Appends a CANCEL frame.
pub fn put_cancel(out: &mut Vec<u8>, topic: &[u8]) {
    put_frame(out, CANCEL, &[topic]);
}

/// Appends an ERROR frame; a reason of more than 255 bytes is cut.
pub fn put_error(out: &mut Vec<u8>, reason: &[u8]) {
    let reason = &reason[..reason.len().min(255)];
    put_frame(out, ERROR, &[&[reason.len() as u8], reason]);
}

/// Returns the bytes before the topic in the body of a SUBSCRIBE command.
#[inline]
pub fn subscribe_prefix() -> &'static [u8] {
    SUBSCRIBE
}

/// Returns the bytes before the topic in the body of a CANCEL command.
#[inline]
pub fn cancel_prefix() -> &'static [u8] {
    CANCEL
}

/// Returns the bytes before the group in the body of a JOIN command.
#[inline]
pub fn join_prefix() -> &'static [u8] {
    JOIN
}

/// Returns the bytes before the group in the body of a LEAVE command.
#[inline]
pub fn leave_prefix() -> &'static [u8] {
    LEAVE
}

/// Appends a command frame: `name` with its length in front, then the pieces of `data`.
pub(crate) fn put_frame(out: &mut Vec<u8>, name: &[u8], data: &[&[u8]]) {
    let body_len = name.len() + data.iter().map(|piece| piece.len()).sum::<usize>();
    // Reserve everything first: the data may be a password, and growing would leave a copy of a
    // part of it in freed memory.
    out.reserve(MAX_HEADER + body_len);
    append_header(out, COMMAND, body_len as u64);
    out.extend_from_slice(name);
    data.iter().for_each(|piece| out.extend_from_slice(piece));
}

/// Splits a command body into its name and its data.
pub(crate) fn split_name(body: &[u8]) -> Result<(&[u8], &[u8]), ProtocolError> {
    let (&len, rest) = body.split_first().ok_or(Violation::CommandName)?;
    let (name, data) = rest.split_at_checked(usize::from(len)).ok_or(Violation::CommandName)?;
    if name.is_empty() || !name.iter().all(u8::is_ascii_alphabetic) {
        return Err(Violation::CommandName.into());
    }
    Ok((name, data))
}

/// Reads the data of an ERROR command: one octet of length, then that many bytes.
pub(crate) fn parse_reason(data: &[u8]) -> Result<&[u8], ProtocolError> {
    match data.split_first() {
        Some((&len, reason)) if reason.len() == usize::from(len) => Ok(reason),
        _ => Err(Violation::MalformedError.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::decode_header;

    fn put(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        let header = decode_header(&out).unwrap().unwrap();
        assert!(header.is_command());
        assert_eq!(header.header_len as u64 + header.body_len, out.len() as u64);
        out
    }

    #[test]
    fn golden_frames() {
        assert_eq!(put(|out| put_ping(out, 0x0102, b"ctx")), b"\x04\x0a\x04PING\x01\x02ctx");
        assert_eq!(put(|out| put_pong(out, b"ctx")), b"\x04\x08\x04PONGctx");
        assert_eq!(put(|out| put_subscribe(out, b"A")), b"\x04\x0b\x09SUBSCRIBEA");
        assert_eq!(put(|out| put_cancel(out, b"A")), b"\x04\x08\x06CANCELA");
        assert_eq!(put(|out| put_error(out, b"no")), b"\x04\x09\x05ERROR\x02no");
    }

    #[test]
    fn frames_over_255_bytes_are_long() {
        let frame = put(|out| put_subscribe(out, &[b'x'; 246]));
        assert_eq!(frame[..19], *b"\x06\0\0\0\0\0\0\x01\0\x09SUBSCRIBE");
        assert_eq!(put(|out| put_subscribe(out, &[b'x'; 245]))[..2], [4, 255]);
    }

    #[test]
    fn contexts_and_reasons_are_cut() {
        assert_eq!(put(|out| put_ping(out, 0, &[7; 17])).len(), 2 + 5 + 2 + 16);
        assert_eq!(put(|out| put_pong(out, &[7; 17])).len(), 2 + 5 + 16);
        assert_eq!(put(|out| put_error(out, &[7; 300])).len(), 9 + 6 + 1 + 255);
    }

    #[test]
    fn parses_what_it_puts() {
        let body = |write: &dyn Fn(&mut Vec<u8>)| {
            let frame = put(write);
            let header = decode_header(&frame).unwrap().unwrap();
            frame[header.header_len..].to_vec()
        };
        let ping = body(&|out| put_ping(out, 513, b"0123456789abcdef"));
        assert_eq!(parse(&ping), Ok(Command::Ping { ttl_ds: 513, context: b"0123456789abcdef" }));
        assert_eq!(parse(&body(&|out| put_pong(out, b""))), Ok(Command::Pong { context: b"" }));
        assert_eq!(parse(&body(&|out| put_subscribe(out, b""))), Ok(Command::Subscribe(b"")));
        assert_eq!(parse(&body(&|out| put_cancel(out, b"\0\xff"))), Ok(Command::Cancel(b"\0\xff")));
        assert_eq!(parse(&body(&|out| put_error(out, b"why"))), Ok(Command::Error(b"why")));
        assert_eq!(
            parse(b"\x05READY\x01a\0\0\0\x01b"),
            Ok(Command::Ready(Properties::new(b"\x01a\0\0\0\x01b")))
        );
        assert_eq!(parse(b"\x04JOINg"), Ok(Command::Join(b"g")));
        assert_eq!(parse(b"\x05LEAVEg"), Ok(Command::Leave(b"g")));
        assert_eq!(parse(b"\x04JOLTg"), Ok(Command::Unknown { name: b"JOLT", data: b"g" }));
    }

    #[test]
    fn prefixes_are_what_bodies_start_with() {
        assert_eq!(subscribe_prefix(), b"\x09SUBSCRIBE");
        assert_eq!(cancel_prefix(), b"\x06CANCEL");
    }

    #[test]
    fn malformed_names() {
        for body in
            [&b""[..], b"\0", b"\0PING", b"\x05PING", b"\xffPING", b"\x04PI\0G", b"\x04PI-G", b"\x04P1NG"]
        {
            assert_eq!(parse(body), Err(Violation::CommandName.into()), "{body:?}");
        }
    }

    #[test]
    fn every_cut_of_each_command() {
        for cut in 0..=b"\x04PING\0\0".len() {
            let expected = match cut {
                0..=4 => Err(Violation::CommandName.into()),
                5 | 6 => Err(Violation::MalformedPing.into()),
                _ => Ok(Command::Ping { ttl_ds: 0, context: b"" }),
            };
            assert_eq!(parse(&b"\x04PING\0\0"[..cut]), expected);
        }
        for cut in 0..=b"\x05ERROR\x02no".len() {
            let expected = match cut {
                0..=5 => Err(Violation::CommandName.into()),
                6..=8 => Err(Violation::MalformedError.into()),
                _ => Ok(Command::Error(b"no")),
            };
            assert_eq!(parse(&b"\x05ERROR\x02no"[..cut]), expected);
        }
    }

    #[test]
    fn oversized_contexts_and_reasons() {
        let cut = Command::Ping { ttl_ds: 0, context: b"0123456789abcdef" };
        assert_eq!(parse(b"\x04PING\0\x000123456789abcdefg"), Ok(cut));
        assert_eq!(parse(b"\x04PONG0123456789abcdefg"), Err(Violation::MalformedPong.into()));
        assert_eq!(parse(b"\x05ERROR\x02noo"), Err(Violation::MalformedError.into()));
    }

    #[test]
    fn legacy_subscriptions() {
        assert_eq!(legacy_subscription(b"\x01A"), Some((true, &b"A"[..])));
        assert_eq!(legacy_subscription(b"\x00A"), Some((false, &b"A"[..])));
        assert_eq!(legacy_subscription(b"\x01"), Some((true, &b""[..])));
        assert_eq!(legacy_subscription(b"\x02A"), None);
        assert_eq!(legacy_subscription(b""), None);
    }
}
