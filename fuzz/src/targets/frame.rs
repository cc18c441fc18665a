//! Frame headers.

use tautline_proto::frame::{self, COMMAND, MAX_HEADER, MORE};

/// Parses any bytes as the start of a frame.
pub fn run(input: &[u8]) {
    // A result for a prefix also holds for the whole.
    let whole = frame::decode_header(input);
    for end in 0..input.len().min(MAX_HEADER) {
        match frame::decode_header(&input[..end]) {
            Ok(None) => {}
            early => assert_eq!(early, whole),
        }
    }
    let Ok(Some(header)) = whole else {
        assert!(whole.is_err() || input.len() < MAX_HEADER);
        return;
    };
    assert!(header.header_len <= input.len() && header.body_len <= frame::MAX_BODY);
    let mut out = [0; MAX_HEADER];
    let len = frame::encode_header(header.flags, header.body_len, &mut out);
    let again = frame::decode_header(&out[..len]).unwrap().unwrap();
    assert_eq!(
        (again.body_len, again.flags & (MORE | COMMAND)),
        (header.body_len, header.flags & (MORE | COMMAND))
    );
    assert!(len <= header.header_len, "never longer than what it was read from");
    for limit in [0, 255, header.body_len] {
        assert_eq!(frame::check_size(&header, Some(limit)).is_ok(), header.body_len <= limit);
    }
}

/// The forms of the RFC.
pub fn seeds() -> Vec<Vec<u8>> {
    let long = |flags: u8, len: u64| [&[flags][..], &len.to_be_bytes()].concat();
    vec![
        b"\x00\x05Hello".to_vec(),
        b"\x01\x00".to_vec(),
        b"\x04\x04\x03ABC".to_vec(),
        long(2, 256),
        long(3, 1 << 40),
        long(6, u64::MAX >> 1),
        long(2, 1 << 63),
        b"\x05\x00".to_vec(),
        b"\x08".to_vec(),
    ]
}
