//! Formats received messages for output.

use serde_json::{Map, Value};
use tautline::Message;

use super::Format;
use crate::template::now_text;

/// Received message with its metadata.
pub struct Received<'a> {
    /// Parts of the message.
    pub parts: &'a [Message],
    /// Number of the message, from 1.
    pub number: u64,
    /// Time from request to reply, for REQ.
    pub round_trip: Option<std::time::Duration>,
}

/// Appends a message in this format.
pub fn encode(format: Format, separator: &[u8], message: &Received<'_>, out: &mut Vec<u8>) {
    match format {
        Format::Raw => message.parts.iter().for_each(|part| out.extend_from_slice(part)),
        Format::Text => {
            join(message.parts, separator, out, escape);
            out.push(b'\n');
        }
        Format::Hex => {
            join(message.parts, separator, out, hex);
            out.push(b'\n');
        }
        Format::Jsonl => {
            out.extend_from_slice(object(message).to_string().as_bytes());
            out.push(b'\n');
        }
        Format::Msgpack => {
            let parts = message.parts.iter().map(|part| rmpv::Value::from(part.as_bytes())).collect();
            // Writing to memory cannot fail.
            let _ = rmpv::encode::write_value(out, &rmpv::Value::Array(parts));
        }
    }
}

/// Formats bytes as in a line of text.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    escape(bytes, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn join(parts: &[Message], separator: &[u8], out: &mut Vec<u8>, put: impl Fn(&[u8], &mut Vec<u8>)) {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(separator);
        }
        put(part, out);
    }
}

/// Copies letters; escapes control characters and invalid UTF-8 as `\xNN`, `\n`, `\t`, `\r`.
fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                '\\' => out.extend_from_slice(b"\\\\"),
                letter if letter.is_control() => {
                    letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| escape_byte(byte, out));
                }
                letter => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        chunk.invalid().iter().for_each(|byte| escape_byte(*byte, out));
    }
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    bytes.iter().for_each(|byte| out.extend_from_slice(format!("{byte:02x}").as_bytes()));
}

/// Returns a message as JSON.
pub fn object(message: &Received<'_>) -> Value {
    let mut object = Map::new();
    object.insert("time".to_owned(), now_text().into());
    object.insert("n".to_owned(), message.number.into());
    if let Some(first) = message.parts.first() {
        for (key, value) in [("peer", first.peer_address()), ("user", first.user_id())] {
            if let Some(value) = value {
                object.insert(key.to_owned(), value.into());
            }
        }
    }
    if let Some(time) = message.round_trip {
        object.insert("round_trip_us".to_owned(), (time.as_nanos() as f64 / 1000.0).into());
    }
    object.insert("parts".to_owned(), message.parts.iter().map(|part| part_value(part)).collect());
    Value::Object(object)
}

/// Returns a part as JSON: a string if it is UTF-8, otherwise `{"hex": ...}`.
pub fn part_value(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            let mut digits = Vec::new();
            hex(bytes, &mut digits);
            Value::Object(Map::from_iter([("hex".to_owned(), String::from_utf8_lossy(&digits).into())]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(format: Format, parts: &[&[u8]]) -> Vec<u8> {
        let parts: Vec<Message> = parts.iter().map(|part| Message::from(*part)).collect();
        let mut out = Vec::new();
        encode(format, b"\t", &Received { parts: &parts, number: 1, round_trip: None }, &mut out);
        out
    }

    #[test]
    fn a_line_cannot_be_left() {
        assert_eq!(encoded(Format::Text, &[b"a\nb", b"\x1b[2J\xff"]), b"a\\nb\t\\x1b[2J\\xff\n");
        assert_eq!(encoded(Format::Text, &["Malmö \u{9b}".as_bytes()]), "Malmö \\xc2\\x9b\n".as_bytes());
    }

    #[test]
    fn forms_for_programs() {
        assert_eq!(encoded(Format::Raw, &[b"a\n", b"b"]), b"a\nb");
        assert_eq!(encoded(Format::Hex, &[b"\x00\xff", b""]), b"00ff\t\n");
        assert_eq!(encoded(Format::Msgpack, &[b"ab", b""]), b"\x92\xc4\x02ab\xc4\x00");
        let line: Value = serde_json::from_slice(&encoded(Format::Jsonl, &[b"a", b"\xff"])).unwrap();
        assert_eq!(line["parts"], serde_json::json!(["a", { "hex": "ff" }]));
    }
}
