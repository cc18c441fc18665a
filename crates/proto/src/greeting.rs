//! The greeting: two peers find out which version they share (RFC 37, "Version Negotiation").
//!
//! This file encodes and judges the parts; the session decides when to send them. The first ten
//! octets, the signature, are also the start of a ZMTP 1.0 identity frame: `FF`, the length of our
//! routing id plus one, and `7F`. A 1.0 peer therefore reads them as a frame header. We recognise a
//! 1.0 peer because its first bytes do not have the shape of a signature.

use crate::error::{Mismatch, ProtocolError, Violation};

/// Protocol version that two peers agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// ZMTP 1.0, RFC 13.
    V1,
    /// ZMTP 2.0, RFC 15.
    V2,
    /// ZMTP 3.0, RFC 23.
    V3_0,
    /// ZMTP 3.1, RFC 37. We also speak 3.1 to peers of later versions.
    V3_1,
}

/// Length of the signature in octets.
pub(crate) const SIGNATURE_LEN: usize = 10;
/// Length of a 2.0 greeting in octets, up to and including the socket type.
pub(crate) const V2_GREETING_LEN: usize = 12;
/// Length of a whole 3.x greeting in octets.
pub(crate) const GREETING_LEN: usize = 64;
/// Version octet that we send after the signature.
pub(crate) const MAJOR: u8 = 3;

const MINOR: u8 = 1;
const MECHANISM_LEN: usize = 20;

/// Returns our signature, which is also the header of a ZMTP 1.0 identity frame.
pub(crate) fn signature(routing_id_len: usize) -> [u8; SIGNATURE_LEN] {
    let mut out = [0xFF; SIGNATURE_LEN];
    out[1..9].copy_from_slice(&(routing_id_len as u64 + 1).to_be_bytes());
    out[9] = 0x7F;
    out
}

/// True if ten octets that start with `FF` are a signature and not a ZMTP 1.0 frame header.
pub(crate) fn is_signature(octets: &[u8]) -> bool {
    octets.first() == Some(&0xFF) && octets.get(SIGNATURE_LEN - 1).is_some_and(|last| last & 1 == 1)
}

/// Returns the version that the octet after the signature stands for, or `None` for 3.0 and later,
/// where the minor version decides.
pub(crate) fn older_version(revision: u8) -> Option<Version> {
    match revision {
        // Revision 0 had the new signature, but still the frames of 1.0.
        0 => Some(Version::V1),
        1 | 2 => Some(Version::V2),
        _ => None,
    }
}

/// Appends the part of our 3.1 greeting after signature and major version.
pub(crate) fn put_rest(out: &mut Vec<u8>, mechanism: &str, as_server: bool) {
    let mut rest = [0; GREETING_LEN - SIGNATURE_LEN - 1];
    rest[0] = MINOR;
    let name = &mechanism.as_bytes()[..mechanism.len().min(MECHANISM_LEN)];
    rest[1..1 + name.len()].copy_from_slice(name);
    rest[1 + MECHANISM_LEN] = u8::from(as_server);
    out.extend_from_slice(&rest);
}

/// Appends the part of a 3.0 greeting after the signature, for a carrier that generates the peer's
/// greeting.
pub(crate) fn put_rest_3_0(out: &mut Vec<u8>, mechanism: &str, as_server: bool) {
    out.push(MAJOR);
    let minor = out.len();
    put_rest(out, mechanism, as_server);
    out[minor] = 0;
}

/// Appends the part of a 2.0 greeting after the signature, for a carrier that generates the peer's
/// greeting.
pub(crate) fn put_rest_2_0(out: &mut Vec<u8>, socket_type: u8) {
    out.extend([1, socket_type]);
}

/// Judges a whole 3.x greeting of a peer that must announce `mechanism`.
///
/// Ignores padding and filler, and also as-server, because NULL has no roles.
pub(crate) fn judge(greeting: &[u8; GREETING_LEN], mechanism: &str) -> Result<Version, ProtocolError> {
    let field = &greeting[12..12 + MECHANISM_LEN];
    let name_len = field.iter().position(|&octet| octet == 0).unwrap_or(MECHANISM_LEN);
    let (name, padding) = field.split_at(name_len);
    let allowed =
        |octet: &u8| octet.is_ascii_uppercase() || octet.is_ascii_digit() || b"-_.+".contains(octet);
    if name.is_empty() || !name.iter().all(allowed) || padding.iter().any(|&octet| octet != 0) {
        return Err(Violation::MechanismName.into());
    }
    if name != mechanism.as_bytes() {
        return Err(Mismatch::Mechanism.into());
    }
    Ok(if (greeting[10], greeting[11]) == (3, 0) { Version::V3_0 } else { Version::V3_1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(major: u8, minor: u8, mechanism: &[u8]) -> [u8; GREETING_LEN] {
        let mut out = [0; GREETING_LEN];
        out[..10].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f");
        out[10] = major;
        out[11] = minor;
        out[12..12 + mechanism.len()].copy_from_slice(mechanism);
        out
    }

    #[test]
    fn golden_signature() {
        assert_eq!(signature(0), *b"\xff\0\0\0\0\0\0\0\x01\x7f");
        assert_eq!(signature(255), *b"\xff\0\0\0\0\0\0\x01\0\x7f");
        assert!(is_signature(&signature(3)));
        assert!(is_signature(b"\xff12345678\x01"), "padding has no significance");
        assert!(!is_signature(b"\xff\0\0\0\0\0\0\0\x01\0"));
        assert!(!is_signature(b"\xfe\0\0\0\0\0\0\0\x01\x7f"));
        assert!(!is_signature(b"\xff\0\0\0\0\0\0\0\x01"));
    }

    #[test]
    fn golden_rest() {
        let mut out = signature(0).to_vec();
        out.push(MAJOR);
        put_rest(&mut out, "NULL", false);
        assert_eq!(out, greeting(3, 1, b"NULL"));
        out.truncate(11);
        put_rest(&mut out, "CURVE", true);
        let mut expected = greeting(3, 1, b"CURVE");
        expected[32] = 1;
        assert_eq!(out, expected);
    }

    #[test]
    fn revisions() {
        assert_eq!(older_version(0), Some(Version::V1));
        assert_eq!(older_version(1), Some(Version::V2));
        assert_eq!(older_version(2), Some(Version::V2));
        assert_eq!(older_version(3), None);
        assert_eq!(older_version(255), None);
    }

    #[test]
    fn later_versions_are_spoken_to_as_3_1() {
        for (major, minor, version) in [
            (3, 0, Version::V3_0),
            (3, 1, Version::V3_1),
            (3, 2, Version::V3_1),
            (3, 255, Version::V3_1),
            (4, 0, Version::V3_1),
            (255, 7, Version::V3_1),
        ] {
            assert_eq!(judge(&greeting(major, minor, b"NULL"), "NULL"), Ok(version));
        }
        assert!(Version::V1 < Version::V2 && Version::V2 < Version::V3_0 && Version::V3_0 < Version::V3_1);
    }

    #[test]
    fn mechanisms_must_match_exactly() {
        for other in [&b"PLAIN"[..], b"NUL", b"NULLX", b"ABCDEFGHIJKLMNOPQRST"] {
            assert_eq!(judge(&greeting(3, 1, other), "NULL"), Err(Mismatch::Mechanism.into()));
        }
        for bad in [&b""[..], b"null", b"NU LL", b"NULL\0X", b"\0NULL", b"NULL\x80"] {
            assert_eq!(judge(&greeting(3, 1, bad), "NULL"), Err(Violation::MechanismName.into()));
        }
    }

    #[test]
    fn insignificant_octets_are_ignored() {
        let mut bytes = greeting(3, 1, b"NULL");
        bytes[1..9].fill(0xAA);
        bytes[32..].fill(0xBB);
        assert_eq!(judge(&bytes, "NULL"), Ok(Version::V3_1));
    }
}
