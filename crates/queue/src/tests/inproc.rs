//! Tests of `FrameWriter` and `FrameReader`.

use super::*;

#[test]
fn frames_of_every_length_arrive() {
    for len in lengths() {
        let (mut writer, mut reader) = inproc();
        let bytes = body(len, 1);
        for _ in 0..2 {
            writer.append(MORE, &bytes).unwrap();
            writer.append_message(COMMAND, &mut Message::from_slice(&bytes)).unwrap();
            writer.append_message(0, &mut Message::from_slice(&bytes)).unwrap();
            writer.publish();
            assert_eq!(reader.queued(), 1);
            assert!(read(&mut reader) == Some((MORE, bytes.clone())), "length {len}");
            let head = reader.head();
            assert_eq!(head.map(|h| (h.flags & !frame::LONG, h.len)), Some((COMMAND, len)));
            assert_eq!(reader.skip(), head);
            assert_eq!(reader.queued(), 1);
            let mut message = Message::from_slice(b"former");
            assert!(reader.read_message(&mut message).unwrap().is_some());
            assert!(message.as_slice() == bytes && !message.more());
            assert!(!reader.is_ready() && reader.head().is_none() && reader.skip().is_none());
            assert_eq!((reader.queued(), writer.in_flight()), (0, 0));
        }
    }
}

#[test]
fn a_large_owned_body_is_not_copied() {
    let (mut writer, mut reader) = inproc();
    let freed = AtomicUsize::new(0);
    let bytes = body(INPROC_BY_REFERENCE, 1);
    let mut sent = foreign(&bytes, &freed);
    sent.set_routing_id(3);
    sent.set_group(b"group");
    let at = sent.data_ptr();
    writer.append_message(MORE, &mut sent).unwrap();
    assert!(sent.is_empty());
    writer.append_message(0, &mut Message::from_slice(b"end")).unwrap();
    writer.publish();
    let mut message = Message::new();
    assert_eq!(reader.read_message(&mut message).unwrap().map(|h| h.len), Some(bytes.len()));
    assert_eq!(message.data_ptr(), at);
    assert_eq!((message.more(), message.routing_id(), message.group()), (true, 0, c""));
    assert_eq!(freed.load(Ordering::SeqCst), 0);
    drop(message);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    assert_eq!(read(&mut reader), Some((0, b"end".to_vec())));
}

#[test]
fn a_body_by_reference_is_freed_as_soon_as_it_was_read() {
    let (mut writer, mut reader) = inproc();
    let freed = AtomicUsize::new(0);
    let bytes = body(10_000, 1);
    for round in 0..100 {
        writer.append_message(0, &mut foreign(&bytes, &freed)).unwrap();
        writer.publish();
        assert_eq!(freed.load(Ordering::SeqCst), round);
        if round % 2 == 0 {
            assert!(reader.skip().is_some());
        } else {
            assert!(reader.read_into(&mut [0; 10]).is_some());
        }
        assert_eq!(freed.load(Ordering::SeqCst), round + 1);
    }
}

#[test]
fn a_short_buffer_gets_the_beginning() {
    let (mut writer, mut reader) = inproc();
    for len in [5, 100, 300, 9000] {
        let bytes = body(len, 2);
        for _ in 0..2 {
            writer.append_message(0, &mut Message::from_slice(&bytes)).unwrap();
            writer.publish();
        }
        let mut out = [0; 3];
        assert_eq!(reader.read_into(&mut out).map(|h| h.len), Some(len));
        assert_eq!(out, bytes[..3]);
        assert_eq!(reader.read_into(&mut []).map(|h| h.len), Some(len));
    }
    assert!(!reader.is_ready());
}

#[test]
fn peek_sees_the_body_in_two_slices_and_consumes_nothing() {
    let (mut writer, mut reader) = inproc();
    assert!(reader.peek().unwrap().is_none());
    for len in [0, 10, 3000, 6000, 7999, if cfg!(miri) { 12_000 } else { 200_000 }] {
        let bytes = body(len, 4);
        writer.append(MORE, &bytes).unwrap();
        writer.append(0, b"x").unwrap();
        writer.publish();
        for _ in 0..2 {
            let Some(head) = reader.head() else { panic!("a frame is there") };
            let Some([first, second]) = reader.peek().unwrap() else { panic!("a frame is there") };
            assert_eq!((head.len, head.flags & MORE), (len, MORE));
            assert!([first, second].concat() == bytes, "length {len}");
        }
        assert!(read(&mut reader) == Some((MORE, bytes)));
        reader.skip();
    }
}

/// Returns the number of one-byte messages that fit before the limit applies.
fn send_until_full(writer: &mut FrameWriter) -> u32 {
    let mut sent = 0;
    while writer.has_room() && sent < 5000 {
        writer.append(0, &[sent as u8]).unwrap();
        writer.publish();
        sent += 1;
    }
    sent
}

#[test]
fn the_limit_is_exact() {
    for limit in [1, 2, 3, 63, 64, 65, 1000] {
        let (mut writer, mut reader) = inproc();
        writer.set_limit(limit);
        reader.set_credit_every(limit);
        assert_eq!(send_until_full(&mut writer), limit);
        for _ in 0..limit {
            assert!(reader.skip().is_some());
        }
        assert!(!reader.is_ready(), "an empty queue gives credit");
        assert_eq!(send_until_full(&mut writer), limit);
        assert!(reader.skip().is_some());
        reader.credit();
        assert_eq!(send_until_full(&mut writer), 1);
        writer.set_limit(limit + 2);
        assert_eq!(send_until_full(&mut writer), 2);
        writer.set_limit(1);
        assert_eq!(send_until_full(&mut writer), 0);
        writer.set_limit(0);
        assert_eq!(send_until_full(&mut writer), 5000);
    }
}

#[test]
fn credit_comes_in_batches() {
    let (mut writer, mut reader) = inproc();
    writer.set_limit(1000);
    reader.set_credit_every(1000);
    assert_eq!(send_until_full(&mut writer), 1000);
    for read in 1..=200 {
        reader.skip();
        assert_eq!(writer.in_flight(), 1000 - read / 64 * 64);
    }
    drop((writer, reader));
    let (mut writer, mut reader) = inproc();
    for _ in 0..60 {
        writer.append(0, &[1; 2000]).unwrap();
        writer.publish();
    }
    for _ in 0..40 {
        reader.skip();
    }
    assert!(writer.unflushed_bytes() <= 20 * 2009 + 32 * 1024 + 2009, "credit by bytes");
}

#[test]
fn the_counters_wrap_around() {
    let (mut writer, mut reader) = inproc();
    writer.set_limit(100);
    let mut received = 0;
    for round in 0..20 {
        assert_eq!(send_until_full(&mut writer), 100, "round {round}");
        assert_eq!((reader.queued(), writer.in_flight()), (100, 100));
        while reader.skip().is_some() {
            received += 1;
        }
        assert_eq!(writer.unflushed_bytes(), 0);
    }
    assert_eq!(received, 2000);
}

#[test]
fn either_end_may_go_first() {
    let bytes = body(9000, 0);
    for reader_first in [false, true] {
        for consumed in 0..4 {
            let freed = AtomicUsize::new(0);
            let (mut writer, mut reader) = inproc();
            for _ in 0..3 {
                writer.append_message(0, &mut foreign(&bytes, &freed)).unwrap();
                writer.publish();
            }
            writer.append_message(MORE, &mut foreign(&bytes, &freed)).unwrap();
            let mut kept = Message::new();
            for _ in 0..consumed {
                reader.read_message(&mut kept).unwrap();
            }
            if reader_first {
                drop(reader);
                writer.append_message(MORE, &mut foreign(&bytes, &freed)).unwrap();
                writer.publish();
                drop(writer);
            } else {
                drop(writer);
                while reader.read_message(&mut kept).unwrap().is_some() {}
                drop(reader);
            }
            drop(kept);
            assert_eq!(freed.load(Ordering::SeqCst), if reader_first { 5 } else { 4 });
        }
    }
}

#[test]
fn nothing_of_a_rolled_back_message_is_read() {
    let (mut writer, mut reader) = inproc();
    for round in 0..if cfg!(miri) { 20 } else { 200 } {
        writer.append(MORE, &body(round * 50, 1)).unwrap();
        writer.append_message(0, &mut Message::from_slice(&body(9000, 1))).unwrap();
        writer.rollback();
        assert!(!reader.is_ready());
        writer.append(0, &[round as u8; 60]).unwrap();
        writer.publish();
        assert_eq!(read(&mut reader), Some((0, vec![round as u8; 60])));
    }
}

#[test]
fn bodies_by_reference_count_as_they_would_on_the_wire() {
    let freed = AtomicUsize::new(0);
    // Both ends refer to the bodies until they are read.
    let bodies = [INPROC_BY_REFERENCE, 100, 20_000, 255, 256, 9000, 5000].map(|len| body(len, 1));
    let (unsent, sent) = bodies.split_last().unwrap();
    let (mut writer, mut reader) = inproc();
    let mut all = 0;
    for (round, bytes) in sent.iter().enumerate() {
        writer.append(MORE, b"beside").unwrap();
        // Even a short body, if it must not be copied.
        writer.append_kept(0, &mut foreign(bytes, &freed)).unwrap();
        writer.publish();
        all += (encoded(MORE, b"beside").len() + encoded(0, bytes).len()) as u64;
        assert_eq!(writer.written(), (round as u64 + 1, all));
        assert!(
            writer.wire_bytes_in_flight() <= all
                && writer.has_wire_bytes_in_flight(writer.wire_bytes_in_flight())
                && !writer.has_wire_bytes_in_flight(all + 1)
        );
    }
    assert_eq!(writer.wire_bytes_in_flight(), all);
    writer.append_kept(MORE, &mut foreign(unsent, &freed)).unwrap();
    writer.rollback();
    assert_eq!((freed.load(Ordering::SeqCst), writer.wire_bytes_in_flight()), (1, all));
    while let Some(head) = reader.head() {
        assert_eq!(reader.skip(), Some(head));
    }
    assert_eq!((reader.read_counts(), writer.written()), ((6, all), (6, all)));
    assert!(!reader.is_ready());
    assert_eq!((writer.wire_bytes_in_flight(), writer.has_wire_bytes_in_flight(1)), (0, false));
}

#[test]
fn credit_for_bodies_by_reference_comes_by_their_bytes() {
    let (mut writer, mut reader) = inproc();
    let each = (9 + 20_000) as u64;
    for _ in 0..100 {
        writer.append_message(0, &mut Message::from_slice(&body(20_000, 1))).unwrap();
        writer.publish();
    }
    assert_eq!(writer.wire_bytes_in_flight(), 100 * each);
    for read in 1..=40 {
        assert!(reader.skip().is_some());
        // Every fourth message completes 64 KiB.
        assert_eq!(writer.wire_bytes_in_flight(), (100 - read / 4 * 4) * each);
    }
}

#[test]
fn parcel_flag_from_network_is_ignored() {
    let (mut filler, mut reader) = inbound();
    let mut frame = encoded(0, &[7; 40]);
    frame[0] |= 0x80;
    filler.append(&frame).unwrap();
    assert!(filler.next_frame(None).is_err());
    filler.append(&encoded(0, b"x")).unwrap();
    assert!(reader.read_message(&mut Message::new()).unwrap().is_none());
}
