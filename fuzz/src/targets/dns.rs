//! Answers of DNS servers, and the file that lists the servers.

use crate::input::Reader;
use tautline_names::fuzzing::{dns_answer, resolv_conf};

/// Longest header and question that the library sends.
const LONGEST_QUESTION: usize = 300;
/// Bytes of the shortest record.
const SHORTEST_RECORD: usize = 11;

/// The input is the length of the question, the question, and the answer. The text of the answer is
/// also read as a resolv.conf.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let len = usize::from(reader.byte()).min(LONGEST_QUESTION);
    let question = reader.bytes(len);
    let message = reader.rest();
    if let Some(records) = dns_answer(message, question) {
        assert!(records * SHORTEST_RECORD <= message.len());
    }
    let servers = resolv_conf(&String::from_utf8_lossy(message));
    assert!((1..=3).contains(&servers.len()) && servers.iter().all(|server| server.port() == 53));
}

/// An address, a service, an alias, a name that points to itself, and a resolv.conf.
pub fn seeds() -> Vec<Vec<u8>> {
    let question = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0\x06orders\x04test\0\0\x01\0\x01";
    let with = |records: &[&[u8]]| {
        let mut answer = question.to_vec();
        answer[2..4].copy_from_slice(&[0x81, 0x80]);
        answer[7] = records.len() as u8;
        [&[question.len() as u8], &question[..], &answer, &records.concat()].concat()
    };
    let address: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\x1e\0\x04\x0a\0\0\x01";
    let address6: &[u8] = b"\xc0\x0c\0\x1c\0\x01\0\0\0\x1e\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    let service: &[u8] = b"\xc0\x0c\0\x21\0\x01\0\0\0\x1e\0\x0a\0\x01\0\0\x1b\x59\x01a\xc0\x13";
    let alias: &[u8] = b"\xc0\x0c\0\x05\0\x01\0\0\0\x1e\0\x04\x01b\xc0\x13";
    let circle: &[u8] = b"\xc0\x2d\0\x01\0\x01\0\0\0\x1e\0\x04\x0a\0\0\x01";
    vec![
        with(&[address]),
        with(&[alias, address, address6]),
        with(&[service, service]),
        with(&[circle]),
        b"\0nameserver 10.0.0.1 # mine\nnameserver fe80::1%1\noptions ndots:5\n".to_vec(),
    ]
}
