//! Converts the parts of a message to the payload of a NATS message, and back.
//!
//! A single part becomes the payload unchanged. Several parts are concatenated, and the header
//! [`PARTS`] holds their lengths: `12,7`. It is `none` if there are no parts.

use bytes::{Bytes, BytesMut};
use tautline::Message;

/// Header with the lengths.
pub const PARTS: &str = "Zmq-Parts";
/// Header with the User-Id that ZeroMQ's security mechanism established for the sender.
pub const USER_ID: &str = "Zmq-User-Id";
/// Header with the sender's address.
pub const PEER: &str = "Zmq-Peer";

/// Limit of parts in a message, in both directions. The lengths of that many parts fit in the 64
/// KiB of headers that JetStream accepts.
pub const PARTS_MAX: usize = 4096;

/// Returns the payload, and the value of [`PARTS`] if the message needs it. Returns `None` if there
/// are too many parts.
pub fn pack(mut parts: Vec<Message>) -> Option<(Bytes, Option<String>)> {
    if parts.len() > PARTS_MAX {
        return None;
    }
    if parts.len() == 1 {
        return Some((parts.pop().map_or_else(Bytes::new, Bytes::from), None));
    }
    let lengths: Vec<String> = parts.iter().map(|part| part.len().to_string()).collect();
    let mut payload = BytesMut::with_capacity(parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| payload.extend_from_slice(part.as_bytes()));
    let lengths = if lengths.is_empty() { "none".to_owned() } else { lengths.join(",") };
    Some((payload.freeze(), Some(lengths)))
}

/// Returns the parts, or `None` if the header does not match the payload.
pub fn unpack(mut payload: Bytes, lengths: Option<&str>) -> Option<Vec<Bytes>> {
    let Some(lengths) = lengths else { return Some(vec![payload]) };
    if lengths == "none" {
        return payload.is_empty().then(Vec::new);
    }
    let mut parts = Vec::new();
    for length in lengths.split(',') {
        let length: usize = length.parse().ok()?;
        if length > payload.len() || parts.len() == PARTS_MAX {
            return None;
        }
        parts.push(payload.split_to(length));
    }
    payload.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        for parts in [&[][..], &["a"], &[""], &["a", ""], &["", ""], &["one", "two", "three"]] {
            let (payload, lengths) = pack(parts.iter().map(|part| Message::from(*part)).collect()).unwrap();
            assert_eq!(lengths.is_none(), parts.len() == 1);
            assert_eq!(unpack(payload, lengths.as_deref()).unwrap(), parts);
        }
    }

    #[test]
    fn limit_of_parts_is_the_same_in_both_directions() {
        let parts = |count| vec![Message::from(vec![7; 10]); count];
        let (payload, lengths) = pack(parts(PARTS_MAX)).unwrap();
        assert_eq!(unpack(payload, lengths.as_deref()).unwrap().len(), PARTS_MAX);
        assert!(pack(parts(PARTS_MAX + 1)).is_none());
        let lengths = vec!["1"; PARTS_MAX + 1].join(",");
        assert_eq!(unpack(Bytes::from(vec![7; PARTS_MAX + 1]), Some(&lengths)), None);
    }

    #[test]
    fn lengths_that_lie_are_seen() {
        for lengths in ["", "1", "4", "1,1", "2,2", "-1,4", "x", "none", "3,", "99999999999999999999"] {
            assert_eq!(unpack(Bytes::from_static(b"abc"), Some(lengths)), None, "{lengths}");
        }
        assert_eq!(unpack(Bytes::from_static(b"abc"), Some("1,2")).unwrap(), ["a", "bc"]);
    }
}
