//! Connection metadata: the list of named properties in a READY command (RFC 37, "Connection
//! Metadata").
//!
//! The mechanisms use this file. They differ in how they carry the list, but its form is the same.
//! A property is one octet of name length, the name, four octets of value length, the value.

use std::collections::HashSet;

use crate::error::{ProtocolError, Violation};

/// The longest value a property can have: 2^31-1 bytes.
const MAX_VALUE: u32 = i32::MAX as u32;

/// Up to this number of properties, a linear scan finds duplicate names.
const MAX_SCANNED: usize = 8;

/// Iterates over an encoded property list without copying. Ends after the first error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties<'a> {
    rest: &'a [u8],
}

impl<'a> Properties<'a> {
    /// Reads the property list that fills `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn split(&mut self, len: usize) -> Result<&'a [u8], ProtocolError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Violation::PropertyTruncated)?;
        self.rest = rest;
        Ok(head)
    }

    fn read_property(&mut self) -> Result<(&'a str, &'a [u8]), ProtocolError> {
        let name_len = usize::from(self.split(1)?[0]);
        if name_len == 0 {
            return Err(Violation::PropertyName.into());
        }
        let name = self.split(name_len)?;
        let name =
            std::str::from_utf8(name).ok().filter(|name| is_name(name)).ok_or(Violation::PropertyName)?;
        let value_len = self.split(4)?.iter().fold(0, |len: u32, &octet| len << 8 | u32::from(octet));
        if value_len > MAX_VALUE {
            return Err(Violation::PropertyLength.into());
        }
        Ok((name, self.split(value_len as usize)?))
    }
}

impl<'a> Iterator for Properties<'a> {
    type Item = Result<(&'a str, &'a [u8]), ProtocolError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let property = self.read_property();
        if property.is_err() {
            self.rest = &[];
        }
        Some(property)
    }
}

/// True if `name` may be the name of a property: 1 to 255 letters, digits, `-`, `_`, `.` or `+`.
pub fn is_name(name: &str) -> bool {
    let allowed = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.+".contains(&octet);
    (1..=255).contains(&name.len()) && name.bytes().all(allowed)
}

/// Appends one property. Skips a property with an invalid name ([`is_name`]) or a value over 2^31-1
/// bytes.
pub fn put_property(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    let Some(value_len) = u32::try_from(value.len()).ok().filter(|&len| len <= MAX_VALUE) else { return };
    if is_name(name) {
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&value_len.to_be_bytes());
        out.extend_from_slice(value);
    }
}

/// An owned property list that has each name only once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata(pub Vec<(String, Vec<u8>)>);

impl Metadata {
    /// Collects a whole encoded list. Names are case-insensitive, and a duplicate name is an error.
    pub fn collect(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let mut list: Vec<(String, Vec<u8>)> = Vec::new();
        let mut seen = HashSet::new();
        for property in Properties::new(bytes) {
            let (name, value) = property?;
            // With many properties, use a set instead of a scan: the cost of 64 KiB of tiny
            // properties must not grow with the square of their number.
            if list.len() == MAX_SCANNED {
                seen.extend(list.iter().map(|(known, _)| known.to_ascii_lowercase()));
            }
            let fresh = match list.len() {
                ..MAX_SCANNED => list.iter().all(|(known, _)| !known.eq_ignore_ascii_case(name)),
                _ => seen.insert(name.to_ascii_lowercase()),
            };
            if !fresh {
                return Err(Violation::PropertyDuplicate.into());
            }
            list.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self(list))
    }

    /// Returns the value of the property `name`, ignoring case.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"\x0bSocket-Type\0\0\0\x04PUSH\x08Identity\0\0\0\0";

    #[test]
    fn golden_list() {
        let mut out = Vec::new();
        put_property(&mut out, "Socket-Type", b"PUSH");
        put_property(&mut out, "Identity", b"");
        assert_eq!(out, LIST);
        let list = Metadata::collect(&out).unwrap();
        assert_eq!(list.0, [("Socket-Type".into(), b"PUSH".to_vec()), ("Identity".into(), vec![])]);
        assert_eq!(list.value("socket-TYPE"), Some(&b"PUSH"[..]));
        assert_eq!(list.value("Resource"), None);
    }

    #[test]
    fn every_cut_inside_a_property_is_an_error() {
        for cut in 0..LIST.len() {
            let expected = match cut {
                0 => Ok(0),
                20 => Ok(1),
                _ => Err(Violation::PropertyTruncated.into()),
            };
            assert_eq!(Metadata::collect(&LIST[..cut]).map(|list| list.0.len()), expected, "cut at {cut}");
        }
    }

    #[test]
    fn names_are_checked() {
        for bad in [
            &b"\0\0\0\0\0"[..],
            b"\x01 \0\0\0\0",
            b"\x02\x01a\0\0\0\0",
            b"\x01\x80\0\0\0\0",
            b"\x02\xc3\xa9\0\0\0\0",
        ] {
            assert_eq!(Metadata::collect(bad), Err(Violation::PropertyName.into()));
        }
        assert!(is_name("X-a_b.C+9") && is_name(&"a".repeat(255)));
        assert!(!is_name("") && !is_name("a b") && !is_name("a:b") && !is_name(&"a".repeat(256)));
    }

    #[test]
    fn value_lengths_have_31_bits() {
        assert_eq!(Metadata::collect(b"\x01a\x80\0\0\0"), Err(Violation::PropertyLength.into()));
        assert_eq!(Metadata::collect(b"\x01a\xff\xff\xff\xff"), Err(Violation::PropertyLength.into()));
        assert_eq!(Metadata::collect(b"\x01a\x7f\xff\xff\xff"), Err(Violation::PropertyTruncated.into()));
    }

    #[test]
    fn a_name_may_occur_once_whatever_its_case() {
        let list = b"\x01a\0\0\0\0\x01b\0\0\0\0\x01A\0\0\0\0";
        assert_eq!(Metadata::collect(list), Err(Violation::PropertyDuplicate.into()));
        for count in 1..3 * MAX_SCANNED {
            let mut list = Vec::new();
            (0..count).for_each(|n| put_property(&mut list, &format!("Name-{n}"), b""));
            assert_eq!(Metadata::collect(&list).map(|list| list.0.len()), Ok(count));
            for n in [0, count / 2, count - 1] {
                let mut again = list.clone();
                put_property(&mut again, &format!("nAME-{n}"), b"");
                assert_eq!(
                    Metadata::collect(&again),
                    Err(Violation::PropertyDuplicate.into()),
                    "{n} of {count}"
                );
            }
        }
    }

    #[test]
    fn unencodable_properties_are_omitted() {
        let mut out = Vec::new();
        put_property(&mut out, "", b"x");
        put_property(&mut out, "a b", b"x");
        put_property(&mut out, &"n".repeat(256), b"x");
        assert!(out.is_empty());
    }

    #[test]
    fn iteration_ends_after_an_error() {
        let mut list = Properties::new(b"\x01a\0\0\0\0\0");
        assert_eq!(list.next(), Some(Ok(("a", &b""[..]))));
        assert_eq!(list.next(), Some(Err(Violation::PropertyName.into())));
        assert_eq!(list.next(), None);
    }
}
