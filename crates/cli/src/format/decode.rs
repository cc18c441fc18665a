//! Parses messages from the bytes of a file or a pipe. The bytes may arrive in pieces of any size.

use std::time::SystemTime;

use serde_json::Value;

use super::Format;
use crate::failure::{Failure, Result};

/// Incremental parser of messages.
#[derive(Debug)]
pub struct Decoder {
    format: Format,
    /// Separator of the parts of a line.
    separator: Option<Vec<u8>>,
    /// True if `\n`, `\t`, `\\` and `\xNN` in lines of text stand for bytes.
    escapes: bool,
    /// Name of the input, for errors.
    name: String,
    buffer: Vec<u8>,
    /// Start of the next message.
    at: usize,
    /// End of the bytes that the search for the end of the next message has covered, so that each
    /// byte is searched only once.
    searched: usize,
    /// MessagePack: number of values between `searched` and the end of the next message.
    open_values: u64,
    ended: bool,
    number: u64,
    /// Receive time of the last message, if the input gives it.
    time: Option<SystemTime>,
}

impl Decoder {
    /// Creates a parser for the input with this name.
    pub fn new(format: Format, separator: Option<Vec<u8>>, escapes: bool, name: &str) -> Self {
        Decoder {
            format,
            separator,
            escapes,
            name: name.to_owned(),
            buffer: Vec::new(),
            at: 0,
            searched: 0,
            open_values: 1,
            ended: false,
            number: 0,
            time: None,
        }
    }

    /// Returns the name of the input.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the receive time of the last returned message, if its JSON contains one.
    pub fn time(&self) -> Option<SystemTime> {
        self.time
    }

    /// Appends the next bytes of the input.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.at);
        self.searched -= self.at;
        self.at = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Marks the end of the input.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// True if the input has ended and all its messages were returned.
    pub fn is_done(&self) -> bool {
        self.ended && self.at == self.buffer.len()
    }

    /// Returns the next message, or `None` if more bytes are needed.
    pub fn next_message(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        loop {
            let rest = &self.buffer[self.at..];
            if rest.is_empty() {
                return Ok(None);
            }
            match self.format {
                Format::Raw if !self.ended => return Ok(None),
                Format::Raw => {
                    let message = rest.to_vec();
                    self.advance(self.buffer.len());
                    return Ok(Some(vec![message]));
                }
                Format::Msgpack => return self.next_value(),
                _ => {}
            }
            let (line, next) = match self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    let end = self.searched + end;
                    (self.buffer[self.at..end].to_vec(), end + 1)
                }
                None if self.ended => (rest.to_vec(), self.buffer.len()),
                None => {
                    self.searched = self.buffer.len();
                    return Ok(None);
                }
            };
            self.advance(next);
            self.number += 1;
            let message = match self.format {
                Format::Hex => self.hex_line(&line)?,
                Format::Jsonl if line.iter().all(u8::is_ascii_whitespace) => continue,
                Format::Jsonl => self.json_line(&line)?,
                _ => self.text_line(&line)?,
            };
            return Ok(Some(message));
        }
    }

    /// Moves the start of the next message to `next`.
    fn advance(&mut self, next: usize) {
        (self.at, self.searched, self.open_values) = (next, next, 1);
    }

    /// Searches for the end of the next MessagePack value. True if the whole value has arrived.
    fn has_whole_value(&mut self) -> bool {
        while self.open_values > 0 {
            let Some((len, inner)) = msgpack_value(&self.buffer[self.searched..]) else { return false };
            self.searched += len;
            self.open_values = (self.open_values - 1).saturating_add(inner);
        }
        true
    }

    fn text_line(&self, line: &[u8]) -> Result<Vec<Vec<u8>>> {
        let parts = split(line, self.separator.as_deref());
        if !self.escapes {
            return Ok(parts.into_iter().map(<[u8]>::to_vec).collect());
        }
        parts.into_iter().map(|part| unescape(part).map_err(|why| self.fault(&why))).collect()
    }

    fn hex_line(&self, line: &[u8]) -> Result<Vec<Vec<u8>>> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let parts = split(line, Some(self.separator.as_deref().unwrap_or(b"\t")));
        parts
            .into_iter()
            .map(|part| unhex(part).ok_or_else(|| self.fault("not pairs of hexadecimal digits")))
            .collect()
    }

    fn json_line(&mut self, line: &[u8]) -> Result<Vec<Vec<u8>>> {
        const FORM: &str = "a message must be \"text\", [\"part\", ...] or {\"parts\": [...]}; a part is text or {\"hex\": \"00ff\"}";
        let value: Value =
            serde_json::from_slice(line).map_err(|error| self.fault(&error.to_string()).hint(FORM))?;
        let time = value.get("time").and_then(Value::as_str);
        self.time = time.and_then(|time| humantime::parse_rfc3339(time).ok());
        let parts = match value {
            Value::Object(mut object) => match object.remove("parts") {
                Some(Value::Array(parts)) => parts,
                _ => vec![Value::Object(object)],
            },
            Value::Array(parts) => parts,
            other => vec![other],
        };
        if parts.is_empty() {
            return Err(self.fault("a message must have at least one part").hint(FORM));
        }
        let part = |part: Value| match part {
            Value::String(text) => Some(text.into_bytes()),
            Value::Object(object) => unhex(object.get("hex")?.as_str()?.as_bytes()),
            _ => None,
        };
        parts
            .into_iter()
            .map(|value| part(value).ok_or_else(|| self.fault("not a message").hint(FORM)))
            .collect()
    }

    fn next_value(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        if !self.has_whole_value() && !self.ended {
            return Ok(None);
        }
        let mut rest = &self.buffer[self.at..];
        let value = rmpv::decode::read_value(&mut rest);
        let next = self.buffer.len() - rest.len();
        self.number += 1;
        let value = value.map_err(|error| {
            let cut = error.kind() == std::io::ErrorKind::UnexpectedEof;
            self.fault(if cut { "truncated MessagePack" } else { "not MessagePack" })
        })?;
        self.advance(next);
        let parts = match value {
            rmpv::Value::Array(parts) if !parts.is_empty() => parts,
            other => vec![other],
        };
        let part = |part: rmpv::Value| match part {
            rmpv::Value::Binary(bytes) => Some(bytes),
            rmpv::Value::String(text) => Some(text.into_bytes()),
            _ => None,
        };
        let parts: Option<Vec<_>> = parts.into_iter().map(part).collect();
        parts.map(Some).ok_or_else(|| self.fault("not an array of binary or text strings"))
    }

    fn fault(&self, why: &str) -> Failure {
        let unit = if self.format == Format::Msgpack { "value" } else { "line" };
        Failure::failed(format!("{}, {unit} {}: {why}", self.name, self.number))
    }
}

/// Splits a line into its parts.
pub fn split<'a>(line: &'a [u8], separator: Option<&[u8]>) -> Vec<&'a [u8]> {
    let Some(separator) = separator.filter(|separator| !separator.is_empty()) else { return vec![line] };
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.windows(separator.len()).position(|window| window == separator) {
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts
}

/// Returns the length of the first MessagePack value, without the values inside it, and the number
/// of values inside it. `None` if more bytes are needed. An invalid first byte counts as a value.
fn msgpack_value(bytes: &[u8]) -> Option<(usize, u64)> {
    let number = |len: usize| {
        let digits = bytes.get(1..1 + len)?;
        Some(digits.iter().fold(0_u64, |number, digit| number << 8 | u64::from(*digit)))
    };
    // The length of the header, the length of the data behind it, and the number of inner values.
    let (header, data, inner) = match *bytes.first()? {
        first @ 0x80..=0x8f => (1, 0, 2 * u64::from(first & 0x0f)),
        first @ 0x90..=0x9f => (1, 0, u64::from(first & 0x0f)),
        first @ 0xa0..=0xbf => (1, u64::from(first & 0x1f), 0),
        0xc4 | 0xd9 => (2, number(1)?, 0),
        0xc5 | 0xda => (3, number(2)?, 0),
        0xc6 | 0xdb => (5, number(4)?, 0),
        // The extensions also have a byte for their type.
        0xc7 => (3, number(1)?, 0),
        0xc8 => (4, number(2)?, 0),
        0xc9 => (6, number(4)?, 0),
        first @ 0xd4..=0xd8 => (2, 1 << (first - 0xd4), 0),
        0xcc | 0xd0 => (2, 0, 0),
        0xcd | 0xd1 => (3, 0, 0),
        0xca | 0xce | 0xd2 => (5, 0, 0),
        0xcb | 0xcf | 0xd3 => (9, 0, 0),
        0xdc => (3, 0, number(2)?),
        0xdd => (5, 0, number(4)?),
        0xde => (3, 0, 2 * number(2)?),
        0xdf => (5, 0, 2 * number(4)?),
        _ => (1, 0, 0),
    };
    let len = usize::try_from(data).ok()?.checked_add(header)?;
    (bytes.len() >= len).then_some((len, inner))
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|value| value as u8);
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Decodes the escapes `\n`, `\r`, `\t`, `\\` and `\xNN`.
pub fn unescape(text: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (value, used) = match rest {
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b't', ..] => (b'\t', 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', digits @ ..] => {
                let byte = digits.get(..2).and_then(unhex).ok_or("\\x needs two hexadecimal digits")?;
                (byte[0], 3)
            }
            _ => return Err("unknown escape; use \\n, \\r, \\t, \\\\ or \\xNN".to_owned()),
        };
        out.push(value);
        rest = &rest[used..];
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses an input that arrives in pieces of `step` bytes.
    fn all(format: Format, separator: Option<&str>, input: &[u8], step: usize) -> Result<Vec<Vec<Vec<u8>>>> {
        let mut decoder =
            Decoder::new(format, separator.map(|text| text.as_bytes().to_vec()), false, "input");
        let mut messages = Vec::new();
        for piece in input.chunks(step) {
            decoder.push(piece);
            while let Some(message) = decoder.next_message()? {
                messages.push(message);
            }
        }
        decoder.end();
        while let Some(message) = decoder.next_message()? {
            messages.push(message);
        }
        assert!(decoder.is_done());
        Ok(messages)
    }

    #[test]
    fn any_split_gives_the_same_messages() {
        for (format, separator, input, expected) in [
            (Format::Text, None, &b"a b\n\nc"[..], vec![vec![&b"a b"[..]], vec![b""], vec![b"c"]]),
            (Format::Text, Some("::"), b"a::b\n:\n", vec![vec![b"a", b"b"], vec![b":"]]),
            (Format::Raw, None, b"a\nb\n", vec![vec![b"a\nb\n"]]),
            (Format::Hex, None, b"00fF\t\r\n61\n", vec![vec![b"\x00\xff", b""], vec![b"a"]]),
            (
                Format::Jsonl,
                None,
                b"\"a\"\n\n[\"b\",{\"hex\":\"ff\"}]\n{\"n\":1,\"parts\":[\"c\"]}",
                vec![vec![b"a"], vec![b"b", b"\xff"], vec![b"c"]],
            ),
            (Format::Msgpack, None, b"\x92\xc4\x01a\xa1b\xc4\x01c", vec![vec![b"a", b"b"], vec![b"c"]]),
        ] {
            for step in 1..=input.len() {
                assert_eq!(all(format, separator, input, step).unwrap(), expected, "{format:?} by {step}");
            }
        }
    }

    /// The search for the end of the message must not restart with each piece: a search of each
    /// piece from the start would take hours here.
    #[test]
    fn long_message_in_small_pieces_takes_linear_time() {
        const LEN: usize = 8 << 20;
        let text = vec![b'a'; LEN];
        let json = [b"\"", &text[..], b"\"\n"].concat();
        let bytes = [b"\x91\xc6\x00\x80\x00\x00", &text[..]].concat();
        let parts = [b"\xdd\x00\x40\x00\x00", &b"\xa1a".repeat(LEN / 2)[..]].concat();
        tautline_testkit::with_watchdog(std::time::Duration::from_secs(120), "long message", || {
            for (format, input, count) in [
                (Format::Text, &text, 1),
                (Format::Jsonl, &json, 1),
                (Format::Msgpack, &bytes, 1),
                (Format::Msgpack, &parts, LEN / 2),
            ] {
                let messages = all(format, None, input, 16).unwrap();
                assert_eq!((messages.len(), messages[0].len()), (1, count), "{format:?}");
            }
        });
    }

    #[test]
    fn every_msgpack_value_has_its_length() {
        use rmpv::{Utf8String, Value};
        let bytes = |len: usize| Value::Binary(vec![7; len]);
        let text = |len: usize| Value::String(Utf8String::from("a".repeat(len)));
        let ext = |len: usize| Value::Ext(5, vec![1; len]);
        let list = |len: usize| Value::Array(vec![Value::Nil; len]);
        let map = |len: usize| Value::Map(vec![(Value::from(true), Value::from(300)); len]);
        let mut values = vec![Value::F32(1.5), Value::F64(2.5), Value::from(-1), Value::from(u64::MAX)];
        values.extend([200_u64, 60_000, 1 << 20].map(Value::from));
        values.extend([-100_i64, -200, -40_000, i64::MIN].map(Value::from));
        for len in [0, 1, 2, 4, 8, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
            values.extend([bytes(len), text(len), ext(len), list(len), map(len)]);
        }
        for value in values {
            let mut encoded = Vec::new();
            rmpv::encode::write_value(&mut encoded, &value).unwrap();
            let mut decoder = Decoder::new(Format::Msgpack, None, false, "input");
            decoder.push(&encoded[..encoded.len() - 1]);
            assert!(!decoder.has_whole_value(), "{value}");
            decoder.push(&encoded[encoded.len() - 1..]);
            assert!(decoder.has_whole_value() && decoder.searched == encoded.len(), "{value}");
        }
    }

    #[test]
    fn faults_name_the_line() {
        for (format, input, text) in [
            (Format::Jsonl, &b"\"a\"\n{\"x\"\n"[..], "input, line 2: "),
            (Format::Jsonl, b"[]", "input, line 1: a message must have at least one part"),
            (Format::Jsonl, b"[1]", "input, line 1: not a message"),
            (Format::Hex, b"0\n", "input, line 1: not pairs"),
            (Format::Hex, b"zz\n", "input, line 1: not pairs"),
            (Format::Msgpack, b"\x92\xc4\x01a", "input, value 1: truncated MessagePack"),
            (Format::Msgpack, b"\x01", "input, value 1: not an array"),
        ] {
            let failure = all(format, None, input, 1).unwrap_err();
            assert!(failure.what.starts_with(text), "{}", failure.what);
        }
    }

    #[test]
    fn escapes_stand_for_bytes() {
        assert_eq!(unescape(b"a\\x00\\xfF\\n\\t\\r\\\\").unwrap(), b"a\x00\xff\n\t\r\\");
        assert!(unescape(b"\\q").is_err() && unescape(b"\\x1").is_err() && unescape(b"\\").is_err());
    }
}
