//! Replies of a ZAP handler.

use crate::input::Reader;
use tautline_proto::zap;

/// The input is a list of frames with an octet of length each.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let mut frames = Vec::new();
    while !reader.is_empty() && frames.len() < 16 {
        let len = usize::from(reader.byte());
        frames.push(reader.bytes(len));
    }
    if let Ok(verdict) = zap::parse_reply(&frames) {
        assert_eq!(frames.len(), zap::REPLY_FRAMES);
        assert!([200, 300, 400, 500].contains(&verdict.status));
        let kept: usize = verdict.properties.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(verdict.user_id.len() + kept <= input.len());
    }
}

/// Correct replies, and a truncated list of properties.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"\0\x031.0\x011\x03200\x02OK\x03joe\x0f\x05Hello\0\0\0\x05World".to_vec(),
        b"\0\x031.0\x011\x03300\0\0\0".to_vec(),
        b"\0\x031.0\x011\x03400\x02No\0\0".to_vec(),
        b"\0\x031.0\x011\x03500\0\0\x05\x05Hello".to_vec(),
    ]
}
