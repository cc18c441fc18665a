//! Answers of a SOCKS 5 proxy.

use crate::input::{Reader, pieces};
use tautline_proto::socks::{Request, Socks, SocksError, Target};

/// The input selects the opening and the cuts, then the bytes of the proxy.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (kind, cut) = (reader.byte(), reader.byte());
    let stream = reader.rest();
    let (result, used) = talk(kind, stream, 0);
    assert_eq!((result, used), talk(kind, stream, cut), "a cut changes nothing");
    // Reading as the engine reads, never more than the missing bytes, gives the same
    // result.
    let (mut socks, mut at) = (Socks::new(request(kind)), 0);
    while socks.missing() > 0 {
        let missing = socks.missing();
        assert!(missing <= 262, "an answer is short");
        let Some(piece) = stream.get(at..at + missing) else { return };
        match socks.input(piece) {
            Ok(taken) => assert_eq!(taken, missing),
            Err(refusal) => return assert_eq!(result, Err(refusal)),
        }
        at += missing;
    }
    assert_eq!((result, used), (Ok(true), at));
}

fn talk(kind: u8, stream: &[u8], cut: u8) -> (Result<bool, SocksError>, usize) {
    let mut socks = Socks::new(request(kind));
    let mut used = 0;
    for piece in pieces(stream, cut) {
        match socks.input(piece) {
            Ok(taken) => used += taken,
            Err(refusal) => {
                assert_eq!(socks.missing(), 0);
                return (Err(refusal), 0);
            }
        }
        assert!(socks.output().len() <= 3 + 256 + 256);
        socks.advance_output(usize::from(cut));
    }
    (Ok(socks.is_done()), used)
}

fn request(kind: u8) -> Request {
    let target = match kind & 3 {
        0 => Target::Address("192.0.2.1:5555".parse().unwrap()),
        1 => Target::Address("[2001:db8::1]:5555".parse().unwrap()),
        _ => Target::Name("example.org".into(), 5555),
    };
    Request { target, login: (kind & 4 != 0).then(|| (b"user".to_vec(), b"password".to_vec().into())) }
}

/// Proxies that agree, and one that refuses.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"\x00\x00\x05\x00\x05\x00\x00\x01\x0a\x00\x00\x01\x04\x38".to_vec(),
        b"\x05\x01\x05\x02\x01\x00\x05\x00\x00\x03\x04host\x00\x01rest".to_vec(),
        b"\x06\x07\x05\x02\x01\x00\x05\x00\x00\x04aaaaaaaaaaaaaaaa\x00\x01".to_vec(),
        b"\x02\x02\x05\x00\x05\x05\x00\x01\x0a\x00\x00\x01\x04\x38".to_vec(),
        b"\x04\x00\x05\x02\x01\x01".to_vec(),
        b"\x00\x00HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
    ]
}
