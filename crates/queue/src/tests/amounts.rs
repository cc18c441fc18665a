//! Larger amounts than a tail word can count at once, and the limits of a queue.

use super::segment::scarce;
use super::*;

/// Length of a body in bytes. All bodies are one allocation that is never touched, so they use no
/// memory.
const LONG: usize = 112 << 20;

/// Returns a message whose body is `bytes`, without a copy.
fn constant(bytes: &[u8]) -> Message {
    // SAFETY: the chains never write to a body, and every test drops the chain before the bytes.
    unsafe { Message::from_foreign(bytes.as_ptr().cast_mut(), bytes.len(), None, std::ptr::null_mut()) }
}

#[test]
fn more_than_64_gib_by_reference_are_all_counted() {
    let bytes = vec![0; LONG];
    let (mut writer, mut drain) = outbound();
    let frame = (LONG + frame::MAX_HEADER) as u64;
    for n in 1..=1200 {
        writer.append_message(0, &mut constant(&bytes)).unwrap();
        writer.publish();
        assert_eq!(
            (writer.in_flight(), writer.unflushed_bytes(), drain.pending()),
            (n, n * frame, n * frame)
        );
    }
    // Written in pieces that end within messages, and credited one by one.
    for n in 0..1200 {
        drain.advance(frame / 2);
        assert_eq!(writer.in_flight(), 1200 - n);
        drain.rewind();
        drain.advance(frame);
        assert_eq!((writer.in_flight(), drain.pending()), (1199 - n, (1199 - n) * frame));
    }
}

#[test]
fn large_single_write_is_counted() {
    // More messages than the tail word counts, and with a part at the end.
    let messages = if cfg!(miri) { 3000 } else { 3_000_000 };
    let (mut writer, mut drain) = outbound();
    for _ in 0..messages {
        writer.append(0, b"").unwrap();
        writer.publish();
    }
    writer.append(MORE, b"part").unwrap();
    assert_eq!((writer.in_flight(), drain.pending()), (messages, 2 * messages));
    drain.advance(1);
    drain.rewind();
    drain.advance(2 * messages);
    assert_eq!((writer.in_flight(), drain.pending()), (0, 0));
    writer.append(0, b"last").unwrap();
    writer.publish();
    assert_eq!(drain.discard(), 1);
}

#[test]
fn large_single_drop_is_counted() {
    let messages = if cfg!(miri) { 3000 } else { 1_500_000 };
    let (mut writer, mut drain) = outbound();
    for n in 0..messages {
        writer.append(0, b"").unwrap();
        writer.publish();
        if n == 10 {
            drain.pending();
            drain.advance(9);
        }
    }
    assert_eq!(drain.discard(), messages - 4);
    assert_eq!((writer.in_flight(), drain.pending()), (0, 0));
}

#[test]
fn messages_without_end_wait_for_a_reader() {
    let messages = if cfg!(miri) { 3000 } else { 1_500_000 };
    let (mut writer, mut reader) = inproc();
    for _ in 0..messages {
        writer.append(0, b"").unwrap();
        writer.publish();
    }
    assert_eq!((reader.queued(), writer.in_flight()), (messages, messages));
    assert_eq!(std::iter::from_fn(|| reader.skip()).count() as u64, messages);
    reader.credit();
    assert_eq!((reader.queued(), writer.in_flight()), (0, 0));
}

/// Returns a queue with a limit of `most` bytes instead of the real limit.
fn limited(most: u64) -> (FrameWriter, ByteDrain) {
    let (mut writer, drain) = outbound();
    writer.set_most_bytes(most);
    (writer, drain)
}

#[test]
fn appending_beyond_counter_range_is_refused() {
    let big = body(40_000, 1);
    let (mut writer, mut drain) = limited(200_000);
    let mut all = Vec::new();
    let mut parts = 0;
    // By reference, copied, and already encoded: a part that does not fit leaves no bytes behind.
    while writer.append_message(MORE, &mut Message::from_slice(&big)).is_ok() {
        all.extend(encoded(MORE, &big));
        parts += 1;
    }
    assert_eq!(parts, 4);
    assert_eq!(writer.append(MORE, &big), Err(NoMemory));
    assert_eq!(writer.append_encoded(&encoded(MORE, &big)), Err(NoMemory));
    let mut kept = Message::from_slice(&big);
    assert_eq!(writer.append_message(0, &mut kept), Err(NoMemory));
    assert!(kept.as_slice() == big, "the caller still has the body");
    writer.append(0, b"end").unwrap();
    all.extend(encoded(0, b"end"));
    writer.publish();
    assert_eq!((drain.pending(), writer.in_flight()), (all.len() as u64, 1));
    assert_eq!(writer.append_message(0, &mut kept), Err(NoMemory));
    assert!(drained(&mut drain, 3) == all);
    // There is room again.
    writer.append_message(0, &mut kept).unwrap();
    writer.publish();
    assert!(drained(&mut drain, 3) == encoded(0, &big));
}

/// Only that many buffers are available. A frame that needs more leaves no bytes behind.
#[test]
fn a_part_without_memory_leaves_nothing_behind() {
    for before in [0, 1, 200, 3000, 40_000] {
        for long in [1, 300, 5000, 66_000, 300_000] {
            for buffers in 0..4 {
                let (mut writer, mut drain) = outbound();
                let mut all = Vec::new();
                if before > 0 {
                    writer.append_message(MORE, &mut Message::from_vec(body(before, 1))).unwrap();
                    all.extend(encoded(MORE, &body(before, 1)));
                }
                let mut owned = Message::from_vec(body(long, 2));
                scarce::with(buffers, || {
                    if writer.append(MORE, &body(long, 2)).is_ok() {
                        all.extend(encoded(MORE, &body(long, 2)));
                    }
                    if writer.append_encoded(&encoded(MORE, &body(long, 3))).is_ok() {
                        all.extend(encoded(MORE, &body(long, 3)));
                    }
                    let appended = writer.append_message(MORE, &mut owned).is_ok();
                    if appended {
                        all.extend(encoded(MORE, &body(long, 2)));
                    }
                    assert!(appended || owned.as_slice() == body(long, 2));
                });
                writer.append(0, b"end").unwrap();
                all.extend(encoded(0, b"end"));
                writer.publish();
                assert!(drained(&mut drain, 3) == all, "{before}, {long}, {buffers} buffers");
            }
        }
    }
}

#[test]
fn a_parcel_without_memory_stays_with_the_sender() {
    let (mut writer, mut reader) = inproc();
    let (copied, mut owned) = (body(20_000, 1), Message::from_vec(body(2000, 2)));
    scarce::with(0, || {
        assert_eq!(writer.append(0, &copied), Err(NoMemory));
        assert!(!writer.append_parcel(0, &mut owned));
        assert_eq!(writer.append_message(0, &mut owned), Err(NoMemory));
    });
    assert!(owned.as_slice() == body(2000, 2));
    writer.append_message(0, &mut owned).unwrap();
    writer.publish();
    assert_eq!(read(&mut reader), Some((0, body(2000, 2))));
}

/// A peer's body for which there is no memory: the queue accepts no further bytes, and the earlier
/// messages are still readable.
#[test]
fn a_body_without_memory_is_not_waited_for() {
    let (mut filler, mut reader) = inbound();
    filler.append(&encoded(0, b"before")).unwrap();
    assert!(filler.next_frame(None).unwrap().is_some());
    filler.keep_last();
    filler.publish_scanned(1);
    let long = encoded(0, &body(100_000, 1));
    filler.append(&long[..50]).unwrap();
    scarce::with(0, || assert!(filler.next_frame(None).unwrap().is_none()));
    assert_eq!(filler.append(b"more").unwrap_err().kind(), std::io::ErrorKind::OutOfMemory);
    assert_eq!(read(&mut reader), Some((0, b"before".to_vec())));
    // The next connection starts anew.
    filler.truncate_to_published();
    filler.append(&long).unwrap();
    assert!(filler.next_frame(None).unwrap().is_some());
    filler.keep_last();
    filler.publish_scanned(1);
    assert_eq!(read(&mut reader), Some((0, body(100_000, 1))));
}
