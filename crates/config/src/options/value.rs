//! Ranges and conventions that many options share: conversions from a C value to the Rust type of a
//! field, and back.
//!
//! The functions towards Rust refuse every value that zmq_setsockopt refuses with EINVAL.

use std::time::Duration;

use crate::error::Error;

/// From 0 up.
pub(super) fn count(value: i32) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| Error::Invalid)
}

/// From 1 up.
pub(super) fn positive(value: i32) -> Result<u32, Error> {
    if value > 0 { count(value) } else { Err(Error::Invalid) }
}

/// From 0 up; -1 is the system's default.
pub(super) fn or_default(value: i32) -> Result<Option<u32>, Error> {
    if value == -1 { Ok(None) } else { count(value).map(Some) }
}

/// Milliseconds; -1 is for ever.
pub(super) fn wait(value: i32) -> Result<Option<Duration>, Error> {
    Ok(or_default(value)?.map(|ms| Duration::from_millis(ms.into())))
}

/// Milliseconds; 0 turns it off.
pub(super) fn span(value: i32) -> Result<Option<Duration>, Error> {
    let ms = count(value)?;
    Ok((ms > 0).then(|| Duration::from_millis(ms.into())))
}

/// ZMQ_HEARTBEAT_TTL: milliseconds, rounded down to the deciseconds that a PING can carry in 16
/// bits.
pub(super) fn ttl(value: i32) -> Result<Option<Duration>, Error> {
    let deciseconds = u16::try_from(value / 100).map_err(|_| Error::Invalid)?;
    Ok((deciseconds > 0).then(|| Duration::from_millis(u64::from(deciseconds) * 100)))
}

/// Only 0 or 1.
pub(super) fn strict(value: i32) -> Result<bool, Error> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::Invalid),
    }
}

/// 0 is off, every positive value is on.
pub(super) fn flag(value: i32) -> Result<bool, Error> {
    count(value).map(|value| value != 0)
}

/// A string or message of a length in this range.
pub(super) fn sized(value: &[u8], lengths: std::ops::RangeInclusive<usize>) -> Result<Vec<u8>, Error> {
    if lengths.contains(&value.len()) { Ok(value.to_vec()) } else { Err(Error::Invalid) }
}

/// A C string for the system or the resolver: ends at a NUL, must be UTF-8. An empty string is
/// `None`.
pub(super) fn name(value: &[u8], lengths: std::ops::RangeInclusive<usize>) -> Result<Option<String>, Error> {
    if !lengths.contains(&value.len()) {
        return Err(Error::Invalid);
    }
    let name = std::str::from_utf8(until_nul(value)).map_err(|_| Error::Invalid)?.to_owned();
    Ok(Some(name).filter(|name| !name.is_empty()))
}

/// ZMQ_METADATA: `X-name:value` up to a NUL. Both parts must be non-empty, and the name has at most
/// 255 bytes.
pub(super) fn property(value: &[u8]) -> Result<(String, Vec<u8>), Error> {
    let value = until_nul(value);
    let colon = value.iter().position(|&byte| byte == b':').ok_or(Error::Invalid)?;
    let (name, rest) = (&value[..colon], &value[colon + 1..]);
    if !(3..=255).contains(&name.len()) || !name.starts_with(b"X-") || rest.is_empty() {
        return Err(Error::Invalid);
    }
    let name = std::str::from_utf8(name).map_err(|_| Error::Invalid)?;
    Ok((name.to_owned(), rest.to_vec()))
}

/// The bytes before the first NUL, as a C function sees the string.
fn until_nul(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Converts back to an `int`. A value that came from an `int` always fits.
pub(super) fn int(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// Back to an `int` with -1 for the system's default.
pub(super) fn int_or_default(value: Option<u32>) -> i32 {
    value.map_or(-1, int)
}

/// Back to milliseconds, with `none` for `None`.
pub(super) fn ms(value: Option<Duration>, none: i32) -> i32 {
    value.map_or(none, |span| i32::try_from(span.as_millis()).unwrap_or(i32::MAX))
}
