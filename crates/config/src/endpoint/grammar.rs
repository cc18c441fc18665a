//! Separators and numbers of endpoints, for [`parse`](super::Endpoint::parse) and for
//! [`check`](super::check()), which runs at compile time.

/// Size of `sun_path` in the system's `sockaddr_un`: a path is shorter, because it ends with a NUL.
pub(super) const SUN_PATH: usize =
    if cfg!(any(target_os = "linux", target_os = "android", windows)) { 108 } else { 104 };

/// Splits `scheme://address`.
pub(super) const fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at + 2 < bytes.len() {
        if matches!((bytes[at], bytes[at + 1], bytes[at + 2]), (b':', b'/', b'/')) {
            return Some((text.split_at(at).0, text.split_at(at + 3).1));
        }
        at += 1;
    }
    None
}

/// Splits `source;target`.
pub(super) const fn split_source(address: &str) -> Option<(&str, &str)> {
    match find(address.as_bytes(), b';') {
        Some(at) => Some((address.split_at(at).0, address.split_at(at + 1).1)),
        None => None,
    }
}

/// Splits `host:port` at the last colon.
pub(super) const fn split_port(address: &str) -> Option<(&str, &str)> {
    let mut at = address.len();
    while at > 0 {
        at -= 1;
        if address.as_bytes()[at] == b':' {
            return Some((address.split_at(at).0, address.split_at(at + 1).1));
        }
    }
    None
}

/// Splits `host:port/path`. The path keeps its slash, and may be empty.
pub(super) const fn split_path(address: &str) -> (&str, &str) {
    match find(address.as_bytes(), b'/') {
        Some(slash) => address.split_at(slash),
        None => (address, ""),
    }
}

/// Parses a decimal number of 32 bits, without a sign.
pub(super) const fn decimal(text: &str) -> Option<u32> {
    match text.as_bytes() {
        [b'0'..=b'9', ..] => match u32::from_str_radix(text, 10) {
            Ok(number) => Some(number),
            Err(_) => None,
        },
        _ => None,
    }
}

const fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == wanted {
            return Some(at);
        }
        at += 1;
    }
    None
}
