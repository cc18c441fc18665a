//! Converts subscriptions between the plain form, a command, and the form of older peers, a
//! message.
//!
//! The stages for 3.0, 2.0 and 1.0 share this file. The message is one octet, 1 or 0, and the topic
//! (RFC 15, "Publish-Subscribe"). The topic itself streams through.

use super::rewrite::Head;
use crate::command::{cancel_prefix, subscribe_prefix};
use crate::error::{ProtocolError, Violation};
use crate::frame::{COMMAND, Header, MAX_BODY, append_header, decode_header};

/// Kind of a plain command, judged by the first bytes of its body.
enum Kind {
    Subscription { octet: u8, prefix_len: usize },
    Other,
    Unknown,
}

/// Rewrites the head of a plain frame for an older peer. `put` writes the header of a message,
/// given flags and body length. Commands other than subscriptions pass unchanged if `commands` is
/// true, and are dropped otherwise.
pub(super) fn seal_head(
    bytes: &[u8],
    out: &mut Vec<u8>,
    commands: bool,
    put: fn(&mut Vec<u8>, u8, u64),
) -> Result<Head, ProtocolError> {
    let Some(header) = decode_header(bytes)? else { return Ok(Head::Short) };
    let consumed = header.header_len;
    if !header.is_command() {
        put(out, header.flags, header.body_len);
        return Ok(Head::Frame { consumed, body: header.body_len, keep: true });
    }
    match kind(&header, &bytes[consumed..]) {
        Kind::Unknown => Ok(Head::Short),
        Kind::Subscription { octet, prefix_len } => {
            let topic_len = header.body_len - prefix_len as u64;
            put(out, 0, topic_len + 1);
            out.push(octet);
            Ok(Head::Frame { consumed: consumed + prefix_len, body: topic_len, keep: true })
        }
        Kind::Other => {
            if commands {
                append_header(out, COMMAND, header.body_len);
            }
            Ok(Head::Frame { consumed, body: header.body_len, keep: commands })
        }
    }
}

/// Writes the plain head of a message frame received from an older peer, whose header has been
/// decoded from the start of `bytes`. With `convert`, a frame that starts with 0 or 1 becomes a
/// command.
pub(super) fn open_head(
    header: &Header,
    bytes: &[u8],
    out: &mut Vec<u8>,
    convert: bool,
) -> Result<Head, ProtocolError> {
    let consumed = header.header_len;
    if convert && !header.more() && header.body_len > 0 {
        let prefix = match bytes.get(consumed) {
            None => return Ok(Head::Short),
            Some(1) => Some(subscribe_prefix()),
            Some(0) => Some(cancel_prefix()),
            Some(_) => None,
        };
        if let Some(prefix) = prefix {
            let topic_len = header.body_len - 1;
            let body_len = topic_len + prefix.len() as u64;
            if body_len > MAX_BODY {
                return Err(Violation::FrameLength.into());
            }
            append_header(out, COMMAND, body_len);
            out.extend_from_slice(prefix);
            return Ok(Head::Frame { consumed: consumed + 1, body: topic_len, keep: true });
        }
    }
    append_header(out, header.flags, header.body_len);
    Ok(Head::Frame { consumed, body: header.body_len, keep: true })
}

fn kind(header: &Header, body: &[u8]) -> Kind {
    let mut undecided = false;
    for (octet, prefix) in [(1, subscribe_prefix()), (0, cancel_prefix())] {
        if header.body_len < prefix.len() as u64 {
            continue;
        }
        if body.starts_with(prefix) {
            return Kind::Subscription { octet, prefix_len: prefix.len() };
        }
        undecided |= prefix.starts_with(body);
    }
    if undecided { Kind::Unknown } else { Kind::Other }
}
