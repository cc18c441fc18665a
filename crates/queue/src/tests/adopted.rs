//! Tests of bodies that a `ByteFiller` adopts.

use super::inbound::{fill_once, scan};
use super::*;

#[test]
fn a_whole_body_may_follow_its_header() {
    // The queue may hold bodies at its end, so it must not outlive them.
    let (freed, bytes) = (AtomicUsize::new(0), body(200_000, 1));
    let (mut filler, mut reader) = inbound();
    let parts = if cfg!(miri) { 4 } else { 40 };
    for part in 0..parts {
        let (flags, before) = if part % 4 == 3 { (0, &b""[..]) } else { (MORE, &b"short"[..]) };
        let header = encoded(flags, &bytes)[..9].to_vec();
        fill_once(&mut filler, &[encoded(MORE, before), header].concat());
        assert_eq!(scan(&mut filler).unwrap(), 0);
        assert!(filler.awaits_body(bytes.len()) && !filler.awaits_body(bytes.len() - 1));
        filler.adopt_body(foreign(&bytes, &freed)).unwrap();
        assert!(!filler.awaits_body(bytes.len()));
        assert_eq!(scan(&mut filler).unwrap(), u32::from(flags == 0));
    }
    for part in 0..parts - parts % 4 {
        let (flags, before) = if part % 4 == 3 { (0, &b""[..]) } else { (MORE, &b"short"[..]) };
        assert_eq!(read(&mut reader), Some((MORE, before.to_vec())));
        let mut message = Message::new();
        let head = reader.read_message(&mut message).unwrap().unwrap();
        assert_eq!(head.flags & MORE, flags);
        assert_eq!(message.as_slice().as_ptr(), bytes.as_ptr(), "the body is copied");
        drop(message);
        reader.credit();
        assert_eq!(freed.load(Ordering::SeqCst), part + 1);
    }
}

/// Only the body of the message's part whose header was the last that arrived is adopted.
#[test]
fn other_bodies_are_not_adopted() {
    let bytes = body(200_000, 1);
    for (arrived, adopts) in [
        (encoded(0, &bytes)[..9].to_vec(), true),
        (encoded(0, &bytes)[..8].to_vec(), false),
        (encoded(0, &bytes)[..10].to_vec(), false),
        (encoded(COMMAND, &bytes)[..9].to_vec(), false),
        (encoded(0, b"all"), false),
        (Vec::new(), false),
    ] {
        let (mut filler, _reader) = inbound();
        if !arrived.is_empty() {
            fill_once(&mut filler, &arrived);
        }
        scan(&mut filler).unwrap();
        assert_eq!(filler.awaits_body(bytes.len()), adopts, "{} bytes", arrived.len());
    }
}
