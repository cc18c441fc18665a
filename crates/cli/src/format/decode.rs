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
                    self.at = self.buffer.len();
                    return Ok(Some(vec![self.buffer.clone()]));
                }
                Format::Msgpack => return self.next_value(),
                _ => {}
            }
            let (line, used) = match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) => (rest[..end].to_vec(), end + 1),
                None if self.ended => (rest.to_vec(), rest.len()),
                None => return Ok(None),
            };
            self.at += used;
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
        let mut rest = &self.buffer[self.at..];
        let before = rest.len();
        let value = match rmpv::decode::read_value(&mut rest) {
            Ok(value) => value,
            Err(error) => {
                let cut = error.kind() == std::io::ErrorKind::UnexpectedEof;
                if cut && !self.ended {
                    return Ok(None);
                }
                self.number += 1;
                return Err(self.fault(if cut { "truncated MessagePack" } else { "not MessagePack" }));
            }
        };
        self.at += before - rest.len();
        self.number += 1;
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
