//! Recordings of messages, as `taut replay` reads them.

use crate::format::{Decoder, Format};
use crate::input::{Reader, pieces};

/// The input selects the format, the separator, the escapes and the cuts, then the bytes of the file.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let format = reader.choice(&[Format::Text, Format::Raw, Format::Hex, Format::Jsonl, Format::Msgpack]);
    let (options, cut) = (reader.byte(), reader.byte());
    let file = reader.rest();
    assert_eq!(
        messages(format, options, file, cut),
        messages(format, options, file, 0),
        "a cut changes nothing"
    );
}

/// Returns the messages of a file, up to a fault.
fn messages(format: Format, options: u8, file: &[u8], cut: u8) -> (Vec<Vec<Vec<u8>>>, bool) {
    let separator = (options & 1 != 0).then(|| b"::".to_vec());
    let mut decoder = Decoder::new(format, separator, options & 2 != 0, "file");
    let mut all = Vec::new();
    for piece in pieces(file, cut).map(Some).chain([None]) {
        match piece {
            Some(piece) => decoder.push(piece),
            None => decoder.end(),
        }
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => all.push(message),
                Ok(None) => break,
                Err(_) => return (all, false),
            }
        }
    }
    assert!(decoder.is_done());
    let bytes: usize = all.iter().flatten().map(Vec::len).sum();
    assert!(bytes <= file.len());
    (all, true)
}

/// A recording in each format, and a truncated one.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"\x00\x03\x00a::b\\n\n:\\x00\n".to_vec(),
        b"\x01\x00\x00a\nb\n".to_vec(),
        b"\x02\x00\x0000fF\t\r\n61\n".to_vec(),
        b"\x03\x00\x00\"a\"\n\n[\"b\",{\"hex\":\"ff\"}]\n{\"parts\":[\"c\"],\"time\":\"2026-11-28T14:35:03Z\"}".to_vec(),
        b"\x04\x00\x00\x92\xc4\x01a\xa1b\xc4\x01c".to_vec(),
        b"\x04\x00\x00\xdd\xff\xff\xff\xff\xc6\xff\xff\xff\xffa".to_vec(),
    ]
}
