//! Finds the user that a certificate belongs to.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Maximum length of a name.
const LONGEST: usize = 255;
/// Tags of DER.
pub(super) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
/// The object identifier of a common name, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Returns the common name of a certificate's subject. Without a common name, returns the first URI
/// of its alternative names, or else the first DNS name; empty if there is none. The chain has
/// already been verified.
pub(super) fn name(certificate: &CertificateDer<'_>) -> String {
    let Ok(parsed) = EndEntityCert::try_from(certificate) else { return String::new() };
    let common = common_name(parsed.subject());
    let found = match common {
        CommonName::Nothing => parsed.valid_uri_names().next().or_else(|| parsed.valid_dns_names().next()),
        CommonName::One(name) => Some(name),
        CommonName::Nonsense => None,
    };
    let is_good = |name: &&str| name.len() <= LONGEST && !name.chars().any(char::is_control);
    found.filter(is_good).unwrap_or_default().to_owned()
}

#[derive(Debug, PartialEq, Eq)]
enum CommonName<'a> {
    Nothing,
    One(&'a str),
    /// Two common names, or one that is not text. Such a name could be mistaken for another.
    Nonsense,
}

/// Finds the common name in the parts of a distinguished name.
fn common_name(mut subject: &[u8]) -> CommonName<'_> {
    let mut found = CommonName::Nothing;
    while !subject.is_empty() {
        let Some(mut set) = take(&mut subject, SET) else { return CommonName::Nonsense };
        while !set.is_empty() {
            let Some(mut pair) = take(&mut set, SEQUENCE) else { return CommonName::Nonsense };
            if take(&mut pair, OBJECT_IDENTIFIER) != Some(COMMON_NAME) {
                continue;
            }
            let text = [UTF8_STRING, PRINTABLE_STRING, IA5_STRING]
                .into_iter()
                .find_map(|tag| take(&mut pair, tag))
                .and_then(|bytes| std::str::from_utf8(bytes).ok());
            found = match (text, found) {
                (Some(text), CommonName::Nothing) if !text.is_empty() => CommonName::One(text),
                _ => return CommonName::Nonsense,
            };
        }
    }
    found
}

/// Takes a value with this tag off the front.
pub(super) fn take<'a>(from: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&first, rest) = from.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = match short {
        ..=0x7f => (usize::from(short), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), rest.get(2..)?),
        _ => return None,
    };
    let value = rest.get(..length)?;
    if first != tag {
        return None;
    }
    *from = &rest[length..];
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(identifier: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
        let value = |tag: u8, bytes: &[u8]| [&[tag, bytes.len() as u8][..], bytes].concat();
        let pair = [value(OBJECT_IDENTIFIER, identifier), value(tag, text)].concat();
        value(SET, &value(SEQUENCE, &pair))
    }

    #[test]
    fn a_subject_has_one_common_name_or_none() {
        let organisation = part(&[0x55, 0x04, 0x0a], UTF8_STRING, b"Example");
        let one = part(COMMON_NAME, PRINTABLE_STRING, b"one");
        assert_eq!(common_name(&[]), CommonName::Nothing);
        assert_eq!(common_name(&organisation), CommonName::Nothing);
        assert_eq!(common_name(&[organisation.clone(), one.clone()].concat()), CommonName::One("one"));
        for wrong in [
            [one.clone(), one.clone()].concat(),
            part(COMMON_NAME, UTF8_STRING, b"\xff"),
            part(COMMON_NAME, UTF8_STRING, b""),
            part(COMMON_NAME, 0x1e, b"\0o"),
            b"\x31\x05\x30".to_vec(),
            b"\x31\x84\0\0\0\0".to_vec(),
            b"\x31".to_vec(),
        ] {
            assert_eq!(common_name(&wrong), CommonName::Nonsense, "{wrong:x?}");
        }
    }

    #[test]
    fn invalid_certificate_has_no_name() {
        assert_eq!(name(&CertificateDer::from(&b"nonsense"[..])), "");
    }
}
