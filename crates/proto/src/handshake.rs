//! Facts about the peer that are known before the first message: metadata, or the identity frame of
//! older versions.
//!
//! The session calls these functions with whole items (a command body, an identity frame), so they
//! never see a split item. This file also holds the limits on memory that a handshake may use.

use crate::command::{parse_reason, split_name};
use crate::error::{AuthFailure, Mismatch, ProtocolError, TlsFault, Violation};
use crate::frame::{Header, decode_header};
use crate::mechanism::{Mechanism, Progress};
use crate::metadata::Metadata;
use crate::socket_type::SocketType;

/// Maximum length of a routing id in bytes.
pub(crate) const MAX_ROUTING_ID: usize = 255;
/// Maximum body of a handshake command in bytes.
pub(crate) const MAX_COMMAND: u64 = 64 * 1024;

/// Facts about the other end of an established connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Socket type of the peer. A ZMTP 1.0 peer does not announce it, and for other peers it is
    /// optional.
    pub socket_type: Option<SocketType>,
    /// Routing id that the peer chose, at most 255 bytes; empty if the peer chose none.
    pub routing_id: Vec<u8>,
    /// All properties of the peer's READY command, Socket-Type and Identity included.
    pub properties: Vec<(String, Vec<u8>)>,
}

impl Peer {
    /// Judges a peer by its metadata.
    pub(crate) fn from_metadata(ours: SocketType, metadata: Metadata) -> Result<Self, ProtocolError> {
        let socket_type = match metadata.value("Socket-Type") {
            Some(name) => Some(fitting(ours, SocketType::from_name(name))?),
            None => None,
        };
        let identity = metadata.value("Identity").unwrap_or_default();
        if identity.len() > MAX_ROUTING_ID {
            return Err(Violation::IdentityLength.into());
        }
        let routing_id = routing_id(socket_type, identity);
        Ok(Self { socket_type, routing_id, properties: metadata.0 })
    }

    /// Describes a peer of ZMTP 1.0 or 2.0, which sends an identity frame instead of metadata.
    pub(crate) fn from_identity(socket_type: Option<SocketType>, identity: &[u8]) -> Self {
        Self { socket_type, routing_id: routing_id(socket_type, identity), properties: Vec::new() }
    }
}

/// Judges a peer's socket type by the number in a 2.0 greeting.
pub(crate) fn peer_type(ours: SocketType, code: u8) -> Result<SocketType, ProtocolError> {
    fitting(ours, SocketType::from_code(code))
}

/// Judges the header of a handshake command before its body arrives. `limit` is the largest body
/// that makes sense to the mechanism now.
pub(crate) fn command_header(bytes: &[u8], limit: u64) -> Result<Option<Header>, ProtocolError> {
    let header = decode_header(bytes)?;
    let limit = limit.min(MAX_COMMAND);
    match header {
        Some(header) if !header.is_command() => Err(Violation::UnexpectedMessage.into()),
        Some(Header { body_len, .. }) if body_len > limit => {
            Err(ProtocolError::TooLarge { size: body_len, limit })
        }
        header => Ok(header),
    }
}

/// Processes a whole command of the handshake. Stores the reason of an ERROR in `refusal`.
pub(crate) fn command(
    mechanism: &mut dyn Mechanism,
    body: &[u8],
    out: &mut Vec<u8>,
    refusal: &mut Vec<u8>,
) -> Result<Progress, ProtocolError> {
    let (name, data) = match body.strip_prefix(b"^RROR") {
        // libzmq's PLAIN server sends this: the length of the name and its first letter have become
        // one octet, 5E.
        Some(data) => (&b"ERROR"[..], data),
        // As in libzmq, only the servers of PLAIN and CURVE, which ignore an ERROR, check the form
        // of the name.
        None if mechanism.heeds_error() => split_name(body).map_err(|_| Violation::UnexpectedCommand)?,
        None => split_name(body)?,
    };
    if name == b"ERROR" && mechanism.heeds_error() {
        let reason = parse_reason(data)?;
        refusal.extend_from_slice(reason);
        return Err(ProtocolError::Auth(AuthFailure::Refused { status: zap_status(reason) }));
    }
    mechanism.receive(name, data, out)
}

/// Returns the total length of a 1.0 identity frame, or the number of bytes to read before calling
/// this again.
///
/// The length field counts the flags octet too. The flags must not be validated (RFC 13).
pub(crate) fn identity_v1_len(bytes: &[u8]) -> Result<usize, ProtocolError> {
    // A handshake or an alert of TLS. As ZMTP 1.0 it would be an identity of 20 or 21 bytes with
    // meaningless flags set.
    if let [0x15 | 0x16, 0x03, ..] = bytes {
        return Err(TlsFault::UnexpectedTls.into());
    }
    let Some((&first, rest)) = bytes.split_first() else { return Ok(1) };
    if first != 0xFF {
        return if first == 0 { Err(Violation::IdentityFrame.into()) } else { Ok(1 + usize::from(first)) };
    }
    let Some(len) = rest.first_chunk::<8>() else { return Ok(9) };
    match u64::from_be_bytes(*len) {
        0 => Err(Violation::IdentityFrame.into()),
        len if len <= MAX_ROUTING_ID as u64 + 1 => Ok(9 + len as usize),
        _ => Err(Violation::IdentityLength.into()),
    }
}

/// Returns the identity in a whole 1.0 identity frame.
pub(crate) fn identity_v1(frame: &[u8]) -> &[u8] {
    let header_len = if frame.first() == Some(&0xFF) { 10 } else { 2 };
    frame.get(header_len..).unwrap_or_default()
}

/// Returns the total length of a 2.0 identity frame, and the length of its header.
pub(crate) fn identity_v2_len(bytes: &[u8]) -> Result<(usize, usize), ProtocolError> {
    match decode_header(bytes)? {
        None if bytes.len() < 2 => Ok((2, 2)),
        None => Ok((9, 9)),
        Some(header) if header.is_command() => Err(Violation::ReservedFlags.into()),
        Some(header) if header.more() => Err(Violation::IdentityFrame.into()),
        Some(header) if header.body_len > MAX_ROUTING_ID as u64 => Err(Violation::IdentityLength.into()),
        Some(header) => Ok((header.header_len + header.body_len as usize, header.header_len)),
    }
}

fn fitting(ours: SocketType, theirs: Option<SocketType>) -> Result<SocketType, ProtocolError> {
    let theirs = theirs.ok_or(Mismatch::UnknownSocketType)?;
    if ours.accepts(theirs) { Ok(theirs) } else { Err(Mismatch::SocketType { ours, theirs }.into()) }
}

/// Returns the routing id if the peer's type has one or is unknown, and otherwise an empty one.
fn routing_id(socket_type: Option<SocketType>, identity: &[u8]) -> Vec<u8> {
    if socket_type.is_none_or(SocketType::has_routing_id) { identity.to_vec() } else { Vec::new() }
}

/// Returns the ZAP status code (RFC 27) that servers put into their ERROR command.
fn zap_status(reason: &[u8]) -> Option<u16> {
    match reason {
        [digit @ b'3'..=b'5', b'0', b'0'] => Some(u16::from(digit - b'0') * 100),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_frames_of_1_0() {
        assert_eq!(identity_v1_len(b""), Ok(1));
        assert_eq!(identity_v1_len(b"\x01"), Ok(2));
        assert_eq!(identity_v1_len(b"\xfe"), Ok(255));
        assert_eq!(identity_v1_len(b"\xff\0\0\0\0\0\0\0"), Ok(9));
        assert_eq!(identity_v1_len(b"\xff\0\0\0\0\0\0\0\x04"), Ok(13));
        assert_eq!(identity_v1_len(b"\xff\0\0\0\0\0\0\x01\0"), Ok(9 + 256));
        assert_eq!(identity_v1_len(b"\xff\0\0\0\0\0\0\x01\x01"), Err(Violation::IdentityLength.into()));
        assert_eq!(identity_v1_len(&[0xFF; 9]), Err(Violation::IdentityLength.into()));
        assert_eq!(identity_v1_len(b"\0"), Err(Violation::IdentityFrame.into()));
        assert_eq!(identity_v1_len(b"\xff\0\0\0\0\0\0\0\0"), Err(Violation::IdentityFrame.into()));
        assert_eq!(identity_v1_len(b"\x16\x03\x01"), Err(TlsFault::UnexpectedTls.into()));
        assert_eq!(identity_v1_len(b"\x16\0"), Ok(23));
        assert_eq!(identity_v1(b"\x04\0xyz"), b"xyz");
        assert_eq!(identity_v1(b"\xff\0\0\0\0\0\0\0\x04\0xyz"), b"xyz");
        assert_eq!(identity_v1(b"\x01\0"), b"");
    }

    #[test]
    fn identity_frames_of_2_0() {
        assert_eq!(identity_v2_len(b""), Ok((2, 2)));
        assert_eq!(identity_v2_len(b"\0"), Ok((2, 2)));
        assert_eq!(identity_v2_len(b"\0\x03"), Ok((5, 2)));
        assert_eq!(identity_v2_len(b"\x02\0"), Ok((9, 9)));
        assert_eq!(identity_v2_len(b"\x02\0\0\0\0\0\0\0\xff"), Ok((9 + 255, 9)));
        assert_eq!(identity_v2_len(b"\x02\0\0\0\0\0\0\x01\0"), Err(Violation::IdentityLength.into()));
        assert_eq!(identity_v2_len(b"\x01\0"), Err(Violation::IdentityFrame.into()));
        assert_eq!(identity_v2_len(b"\x04\0"), Err(Violation::ReservedFlags.into()));
        assert_eq!(identity_v2_len(b"\x08"), Err(Violation::ReservedFlags.into()));
    }

    #[test]
    fn statuses() {
        assert_eq!(zap_status(b"300"), Some(300));
        assert_eq!(zap_status(b"400"), Some(400));
        assert_eq!(zap_status(b"500"), Some(500));
        for other in [&b""[..], b"200", b"401", b"4000", b"600", b"what"] {
            assert_eq!(zap_status(other), None);
        }
    }

    #[test]
    fn identities_count_where_they_mean_something() {
        let peer = |name: &str| {
            let list = vec![("socket-type".into(), name.into()), ("IDENTITY".into(), b"\0id".to_vec())];
            Peer::from_metadata(SocketType::Router, Metadata(list)).unwrap()
        };
        assert_eq!(peer("DEALER").routing_id, b"\0id");
        assert_eq!(peer("REQ").socket_type, Some(SocketType::Req));
        let list = vec![("Socket-Type".into(), b"SUB".to_vec()), ("Identity".into(), b"id".to_vec())];
        let peer = Peer::from_metadata(SocketType::Pub, Metadata(list.clone())).unwrap();
        assert_eq!((peer.routing_id, peer.properties), (vec![], list));
        let list = vec![("Identity".into(), vec![b'x'; 256])];
        assert_eq!(
            Peer::from_metadata(SocketType::Router, Metadata(list)),
            Err(Violation::IdentityLength.into())
        );
    }
}
