//! Tests of `ByteFiller` and `FrameReader`.

use super::*;
use tautline_proto::ProtocolError;

/// Puts bytes in like reads from a kernel, at most `chunk` at a time.
fn fill(filler: &mut ByteFiller, mut bytes: &[u8], chunk: usize) {
    while !bytes.is_empty() {
        let n = filler.fill(64 * 1024, chunk, |room| Ok(copy(bytes, room)), || false).unwrap();
        assert!(n > 0);
        bytes = &bytes[n..];
        scan(filler).expect("well formed");
    }
}

/// Puts all of the bytes in with one read.
pub(super) fn fill_once(filler: &mut ByteFiller, bytes: &[u8]) {
    let n = filler.fill(64 * 1024, usize::MAX, |room| Ok(copy(bytes, room)), || false).unwrap();
    assert_eq!(n, bytes.len());
}

/// Scans the arrived bytes and publishes them at message boundaries. Returns the number of
/// messages.
pub(super) fn scan(filler: &mut ByteFiller) -> Result<u32, ProtocolError> {
    let mut messages = 0;
    loop {
        let short = filler.next_short_messages(u32::MAX, None, |_, _| true);
        if short > 0 {
            messages += short;
            filler.publish_scanned(short);
        }
        let Some(scanned) = filler.next_frame(None)? else { break };
        if scanned.header.flags & MORE == 0 {
            let counts = u32::from(scanned.header.flags & COMMAND == 0);
            messages += counts;
            filler.keep_last();
            filler.publish_scanned(counts);
        }
    }
    Ok(messages)
}

#[test]
fn frames_of_every_length_arrive_in_any_chunks() {
    for len in lengths() {
        let chunks: &[usize] = match len {
            _ if cfg!(miri) => &[1000],
            0..300 => &[1, 2, 3, 9, 10, 100, 65536],
            _ => &[997, 4096, 65536, 1 << 20],
        };
        for &chunk in chunks {
            let (mut filler, mut reader) = inbound();
            let bytes = body(len, 1);
            let stream = [encoded(MORE, &bytes), encoded(0, &bytes), encoded(COMMAND, b"\x04PING")].concat();
            for _ in 0..3 {
                fill(&mut filler, &stream, chunk);
                assert_eq!(filler.backlog(), 1);
                assert!(read(&mut reader) == Some((MORE, bytes.clone())), "length {len}, chunk {chunk}");
                let mut message = Message::new();
                assert!(reader.read_message(&mut message).unwrap().is_some());
                assert!(message.as_slice() == bytes, "length {len}, chunk {chunk}");
                assert_eq!(read(&mut reader), Some((COMMAND, b"\x04PING".to_vec())));
                assert!(!reader.is_ready());
                assert_eq!((filler.backlog(), filler.unscanned()), (0, 0));
            }
        }
    }
}

#[test]
fn a_stream_may_be_split_anywhere() {
    let mut stream = Vec::new();
    for (i, len) in [0, 1, 200, 255, 256, 300, 5000, 3].into_iter().enumerate() {
        stream.extend(encoded(if i % 3 == 0 { MORE } else { 0 }, &body(len, i)));
    }
    for split in (0..=stream.len()).step_by(if cfg!(miri) { 501 } else { 1 }) {
        let (mut filler, mut reader) = inbound();
        for half in [&stream[..split], &stream[split..]] {
            filler.append(half).unwrap();
            scan(&mut filler).expect("well formed");
        }
        assert_eq!(filler.unscanned(), 0);
        let mut out = Vec::new();
        while let Some((flags, body)) = read(&mut reader) {
            out.extend(encoded(flags, &body));
        }
        assert!(out == stream, "split {split}");
    }
}

#[test]
fn short_messages_are_scanned_together() {
    let (mut filler, mut reader) = inbound();
    let parts = [
        (0, 0),
        (0, 64),
        (0, 255),
        (0, 3),
        (MORE, 5),
        (0, 64),
        (MORE, 7),
        (MORE, 256),
        (0, 4),
        (0, 256),
        (COMMAND, 6),
        (MORE, 0),
        (0, 1),
        (MORE, 2),
        (0, 9),
    ];
    let stream: Vec<u8> = parts.iter().flat_map(|&(flags, len)| encoded(flags, &body(len, len))).collect();
    // A full first segment is followed by a segment that holds all of them.
    filler.append(&encoded(0, &body(206, 1))).unwrap();
    assert_eq!(scan(&mut filler), Ok(1));
    assert!(read(&mut reader).is_some() && !reader.is_ready());
    filler.append(&stream[..stream.len() - 1]).unwrap();
    assert_eq!(filler.next_short_messages(0, None, |_, _| true), 0);
    assert_eq!(filler.next_short_messages(u32::MAX, Some(254), |_, _| true), 0, "some parts may be too long");
    assert_eq!(filler.next_short_messages(2, None, |_, _| true), 2);
    assert_eq!(
        filler.next_short_messages(u32::MAX, Some(255), |_, _| true),
        3,
        "one of the messages has two parts"
    );
    assert_eq!(filler.next_short_messages(u32::MAX, None, |_, _| true), 0, "a long part");
    assert!(matches!(filler.next_frame(None), Ok(Some(_))));
    assert!(matches!(filler.next_frame(None), Ok(Some(_))), "the long message");
    assert_eq!(filler.next_short_messages(u32::MAX, None, |_, _| true), 1, "its last part ends a message");
    assert!(matches!(filler.next_frame(None), Ok(Some(_))), "a long message");
    assert_eq!(filler.next_short_messages(u32::MAX, None, |_, _| true), 0, "a command");
    assert!(matches!(filler.next_frame(None), Ok(Some(_))));
    assert_eq!(filler.next_short_messages(u32::MAX, None, |_, _| true), 1, "the next message is incomplete");
    filler.publish_scanned(8);
    assert_eq!((filler.backlog(), filler.unscanned()), (8, 14));
    assert!(matches!(filler.next_frame(None), Ok(Some(_))), "its first part is complete");
    filler.append(&stream[stream.len() - 1..]).unwrap();
    assert_eq!(filler.next_short_messages(u32::MAX, None, |_, _| true), 1);
    filler.publish_scanned(1);
    for &(flags, len) in &parts {
        assert!(read(&mut reader) == Some((flags, body(len, len))), "flags {flags}, length {len}");
    }
    assert!(!reader.is_ready());
}

#[test]
fn a_large_body_is_read_to_where_it_stays() {
    let (mut filler, mut reader) = inbound();
    let bytes = body(100_000, 5);
    let stream = encoded(0, &bytes);
    for round in 0..10 {
        fill(&mut filler, &stream[..5000], 3000);
        let rest = stream.len() - 5000;
        let [first, second] = filler.space(64 * 1024).unwrap();
        assert_eq!(first.len(), rest, "the rest of the body, round {round}");
        assert!(second.is_empty());
        let at = first.as_mut_ptr().cast();
        fill_once(&mut filler, &stream[5000..]);
        assert_eq!(scan(&mut filler), Ok(1));
        let mut message = Message::new();
        assert!(reader.read_message(&mut message).unwrap().is_some());
        assert!(message.as_slice() == bytes);
        assert_eq!(message.data_ptr().wrapping_add(5000 - 9), at);
    }
}

#[test]
fn a_longer_body_gets_its_place_when_part_of_it_has_arrived() {
    let (mut filler, mut reader) = inbound();
    let bytes = body(1 << 20, 6);
    let stream = encoded(0, &bytes);
    for (round, chunk) in [3000, 65536, 1 << 20].into_iter().enumerate() {
        // Lost on the way, before the body has its memory and after; then complete.
        for part in [10_000, 200_000] {
            fill(&mut filler, &stream[..part], chunk);
            filler.truncate_to_published();
            assert_eq!(filler.unscanned(), 0);
        }
        fill(&mut filler, &stream[..200_000], chunk);
        let rest = stream.len() - 200_000;
        let [first, second] = filler.space(64 * 1024).unwrap();
        assert_eq!((first.len(), second.len()), (rest, 0), "the rest of the body, round {round}");
        let at = first.as_mut_ptr().cast();
        fill(&mut filler, &stream[200_000..], chunk);
        assert_eq!(filler.backlog(), 1);
        let mut message = Message::new();
        assert!(reader.read_message(&mut message).unwrap().is_some());
        assert!(message.as_slice() == bytes);
        assert_eq!(message.data_ptr().wrapping_add(200_000 - 9), at);
        assert!(!reader.is_ready());
    }
}

#[test]
fn the_size_limit_holds_as_soon_as_the_header_is_there() {
    let (mut filler, _reader) = inbound();
    filler.append(&encoded(0, &[1; 100])[..2]).unwrap();
    assert!(matches!(filler.next_frame(Some(100)), Ok(None)));
    filler.append(&[1; 100]).unwrap();
    assert!(matches!(filler.next_frame(Some(100)), Ok(Some(_))));
    filler.append(&encoded(0, &[1; 101])[..2]).unwrap();
    assert!(filler.next_frame(Some(100)).is_err());
    let (mut filler, _reader) = inbound();
    filler.append(&[frame::LONG, 0, 0, 1, 0, 0, 0, 0]).unwrap();
    assert!(matches!(filler.next_frame(Some(1 << 20)), Ok(None)));
    filler.append(&[0]).unwrap();
    assert!(filler.next_frame(Some(1 << 20)).is_err());
}

#[test]
fn a_body_that_never_comes_costs_nothing() {
    for shift in [20, 26, 27, 40, 62] {
        let (mut filler, mut reader) = inbound();
        let mut header = [0; frame::MAX_HEADER];
        frame::encode_header(0, 1 << shift, &mut header);
        filler.append(&header).unwrap();
        for _ in 0..10 {
            assert!(matches!(filler.next_frame(None), Ok(None)));
            filler.append(&[1; 1000]).unwrap();
        }
        assert!(!reader.is_ready());
        filler.truncate_to_published();
        assert_eq!(filler.unscanned(), 0);
    }
}

#[test]
fn malformed_headers_are_errors() {
    for first in [0x08, 0x10, 0x80, 0xFF, MORE | COMMAND] {
        let (mut filler, _reader) = inbound();
        filler.append(&[first, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert!(filler.next_frame(None).is_err(), "flags {first}");
    }
    let (mut filler, _reader) = inbound();
    filler.append(&[frame::LONG, 0x80, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    assert!(filler.next_frame(None).is_err());
}

#[test]
fn the_body_of_the_frame_just_scanned() {
    let (mut filler, mut reader) = inbound();
    let mut out = Vec::new();
    filler.body_of_last(&mut out).unwrap();
    assert!(out.is_empty());
    for (i, len) in [0, 5, 3000, 3000, 40_000].into_iter().enumerate() {
        filler.append(&encoded(COMMAND, &body(len, i))).unwrap();
        assert!(matches!(filler.next_frame(None), Ok(Some(_))));
        out.clear();
        filler.body_of_last(&mut out).unwrap();
        assert!(out == body(len, i), "length {len}");
        filler.keep_last();
        filler.publish_scanned(0);
        out.clear();
        filler.body_of_last(&mut out).unwrap();
        assert!(out.is_empty(), "published: not ours any more");
        assert!(reader.skip().is_some());
    }
}

#[test]
fn publishing_stops_at_the_last_message_boundary() {
    let (mut filler, mut reader) = inbound();
    // Into a segment that has room for all.
    fill(&mut filler, &encoded(0, &body(5000, 0)), 65536);
    assert!(read(&mut reader).is_some());
    let parts = [
        encoded(0, b"one"),
        encoded(MORE, b"a"),
        encoded(COMMAND, b"\x04PING"),
        encoded(MORE, b"b"),
        encoded(0, b"c"),
    ];
    filler.append(&parts[..4].concat()).unwrap();
    while let Ok(Some(_)) = filler.next_frame(None) {}
    filler.publish_scanned(1);
    assert_eq!(read(&mut reader), Some((0, b"one".to_vec())));
    assert!(!reader.is_ready() && filler.backlog() == 0);
    filler.append(&parts[4]).unwrap();
    assert!(matches!(filler.next_frame(None), Ok(Some(_))));
    filler.publish_scanned(1);
    for body in [&b"a"[..], b"\x04PING", b"b", b"c"] {
        assert_eq!(read(&mut reader).map(|(_, read)| read), Some(body.to_vec()));
    }
    assert!(!reader.is_ready() && filler.backlog() == 0);
    filler.append(&encoded(MORE, b"lost")).unwrap();
    assert!(matches!(filler.next_frame(None), Ok(Some(_))));
    filler.publish_scanned(0);
    filler.truncate_to_published();
    filler.append(&encoded(0, b"after")).unwrap();
    assert_eq!(scan(&mut filler), Ok(1));
    assert_eq!(read(&mut reader), Some((0, b"after".to_vec())));
}

#[test]
fn unwanted_command_alone_is_not_visible() {
    let ping = encoded(COMMAND, b"\x04PING");
    for (part, begun) in [(3, 3), (40_000, 5), (7, 40_000)] {
        let (mut filler, mut reader) = inbound();
        let whole = [encoded(MORE, &body(part, 1)), encoded(0, &body(part, 2))].concat();
        let first = encoded(MORE, &body(begun, 3));
        for _ in 0..3 {
            filler.append(&[&ping[..], &whole, &ping, &ping, &first].concat()).unwrap();
            while filler.next_frame(None).expect("well formed").is_some() {}
            filler.publish_scanned(1);
            filler.forget_commands();
            assert_eq!(read(&mut reader), Some((COMMAND, b"\x04PING".to_vec())));
            assert!(read(&mut reader) == Some((MORE, body(part, 1))) && reader.is_ready());
            assert!(read(&mut reader) == Some((0, body(part, 2))));
            assert!(!reader.is_ready(), "only commands and an incomplete message");
            filler.append(&[encoded(0, b"end"), ping.clone()].concat()).unwrap();
            while filler.next_frame(None).expect("well formed").is_some() {}
            filler.publish_scanned(1);
            filler.forget_commands();
            assert!(filler.pending() == 0, "the last commands are forgotten");
            let behind: Vec<_> = std::iter::from_fn(|| read(&mut reader)).collect();
            assert!(behind[2..] == [(MORE, body(begun, 3)), (0, b"end".to_vec())], "behind the two commands");
            assert!(reader.release_memory(&mut filler));
        }
    }
}

#[test]
fn unpublished_bytes_are_dropped_with_connection() {
    let whole = [encoded(MORE, b"a"), encoded(0, &body(300, 2))].concat();
    let lost = [encoded(MORE, &body(6000, 3)), encoded(MORE, &body(40_000, 3)), encoded(0, b"x")].concat();
    for cut in
        (0..lost.len() - 1).step_by(if cfg!(miri) { 20_001 } else { 131 }).chain([1, 2, 9, 6009, 6010, 6018])
    {
        let (mut filler, mut reader) = inbound();
        filler.truncate_to_published();
        let mut expected = Vec::new();
        for _ in 0..3 {
            fill(&mut filler, &whole, 50);
            fill(&mut filler, &lost[..cut], 5000);
            filler.truncate_to_published();
            assert_eq!(filler.unscanned(), 0);
            filler.release_spare();
            expected.extend_from_slice(&whole);
        }
        fill(&mut filler, &lost, 70_000);
        expected.extend_from_slice(&lost);
        assert_eq!(filler.backlog(), 4);
        let mut out = Vec::new();
        while let Some((flags, body)) = read(&mut reader) {
            out.extend(encoded(flags, &body));
        }
        assert!(out == expected, "cut {cut}");
    }
}

#[test]
fn truncation_after_a_large_body() {
    let (mut filler, mut reader) = inbound();
    for i in 0..if cfg!(miri) { 4 } else { 20 } {
        let bytes = body(50_000, i);
        fill(&mut filler, &encoded(0, &bytes), 3333);
        filler.truncate_to_published();
        fill(&mut filler, &encoded(MORE, b"lost"), 3333);
        filler.truncate_to_published();
        if i % 2 == 1 {
            for seed in [i - 1, i] {
                assert!(read(&mut reader) == Some((0, body(50_000, seed))));
            }
        }
    }
}

#[test]
fn an_idle_filler_lends_small_segments_first() {
    let (mut filler, mut reader) = inbound();
    let [first, second] = filler.space(64 * 1024).unwrap();
    assert!(first.len() < 512 && second.len() > 60_000);
    fill_once(&mut filler, &encoded(0, b"a"));
    filler.release_spare();
    assert_eq!(scan(&mut filler), Ok(1));
    assert_eq!(read(&mut reader), Some((0, b"a".to_vec())));
    let [first, second] = filler.space(100).unwrap();
    assert!(first.len() > 150 && second.is_empty(), "there is enough room in the first segment");
}

#[test]
fn either_end_may_go_first() {
    for reader_first in [false, true] {
        let (mut filler, mut reader) = inbound();
        fill(&mut filler, &encoded(0, &body(50_000, 0)), 4000);
        fill(&mut filler, &encoded(0, &body(50_000, 0))[..30_000], 4000);
        filler.space(64 * 1024).unwrap();
        if reader_first {
            reader.head();
            drop(reader);
            fill(&mut filler, &[1; 20_009], 4000);
        } else {
            drop(filler);
            assert!(reader.skip().is_some() && reader.skip().is_none());
        }
    }
}

#[test]
#[should_panic(expected = "bytes were written outside of the lent room")]
fn fill_rejects_bytes_written_elsewhere() {
    let (mut filler, _reader) = inbound();
    let _ = filler.fill(1000, 1000, |_| Ok([vec![0; 10].leak(), &mut []]), || false);
}

#[test]
fn fill_respects_limit_and_retries_would_block() {
    let (mut filler, mut reader) = inbound();
    let bytes = encoded(0, &body(1000, 1));
    let mut tries = 0;
    let mut at = 0;
    while at < bytes.len() {
        let n = filler.fill(
            4096,
            100,
            |room| {
                tries += 1;
                if tries % 3 == 0 {
                    Ok(copy(&bytes[at..], room))
                } else {
                    Err(std::io::ErrorKind::WouldBlock.into())
                }
            },
            || true,
        );
        let n = n.unwrap();
        assert_eq!(n, 100.min(bytes.len() - at));
        at += n;
    }
    let refused = filler.fill(4096, 100, |_| Err(std::io::ErrorKind::WouldBlock.into()), || false);
    assert!(refused.is_err());
    assert_eq!(scan(&mut filler), Ok(1));
    assert!(read(&mut reader) == Some((0, body(1000, 1))));
}

#[test]
fn commands_alone_take_no_memory() {
    let (mut filler, mut reader) = inbound();
    let ping = encoded(COMMAND, b"\x04PING\0\0");
    for n in 0..5 {
        for _ in 0..20_000 / ping.len() {
            filler.append(&ping).unwrap();
            while filler.next_frame(None).expect("well formed").is_some() {}
            filler.forget_commands();
            assert!(filler.pending() == 0);
        }
        let frame = encoded(0, &body(2000, n));
        // Commands, then a piece of a frame.
        let many = [ping.repeat(1000), frame[..1500].to_vec()].concat();
        filler.append(&many).unwrap();
        while filler.next_frame(None).expect("well formed").is_some() {}
        filler.forget_commands();
        assert_eq!(filler.pending(), 1500);
        filler.append(&frame[1500..]).unwrap();
        assert_eq!(scan(&mut filler), Ok(1));
        assert!(read(&mut reader) == Some((0, body(2000, n))));
        assert!(!reader.is_ready());
    }
}

#[test]
fn commands_between_the_parts_of_a_message_take_no_memory() {
    let ping = encoded(COMMAND, b"\x04PING\0\0");
    for part in [10, 3000, 40_000] {
        let (mut filler, mut reader) = inbound();
        for n in 0..3 {
            fill(&mut filler, &encoded(MORE, &body(part, n)), 5000);
            assert!(!reader.is_ready());
            for _ in 0..20_000 / ping.len() {
                filler.append(&ping).unwrap();
                while filler.next_frame(None).expect("well formed").is_some() {}
                filler.forget_commands();
                assert!(filler.pending() < part as u64 + 20);
            }
            // Commands, then the first piece of a part.
            let end = encoded(0, &body(2000, n));
            filler.append(&[ping.repeat(1000), end[..1500].to_vec()].concat()).unwrap();
            while filler.next_frame(None).expect("well formed").is_some() {}
            filler.forget_commands();
            assert!(filler.pending() < part as u64 + 1520);
            filler.append(&end[1500..]).unwrap();
            assert_eq!(scan(&mut filler), Ok(1));
            assert!(read(&mut reader) == Some((MORE, body(part, n))));
            assert!(read(&mut reader) == Some((0, body(2000, n))));
            assert!(!reader.is_ready());
        }
    }
}

#[test]
fn fully_read_queue_releases_its_memory() {
    let (mut filler, mut reader) = inbound();
    assert!(reader.release_memory(&mut filler), "there is none yet");
    for (n, len) in [10, 400, 5000, 0, 70_000, 3].into_iter().enumerate() {
        let stream = [encoded(MORE, &body(len, n)), encoded(0, &body(len, n + 1))].concat();
        let (before, after) = stream.split_at(stream.len() / 2);
        fill(&mut filler, before, 4096);
        assert!(!reader.is_ready());
        assert!(!reader.release_memory(&mut filler), "a part has come");
        fill(&mut filler, after, 4096);
        assert!(!reader.release_memory(&mut filler));
        assert!(read(&mut reader) == Some((MORE, body(len, n))));
        assert!(!reader.release_memory(&mut filler));
        assert!(read(&mut reader) == Some((0, body(len, n + 1))));
        // An incomplete frame, which is then lost with its connection.
        filler.append(&[0, 9, 1]).unwrap();
        assert!(!reader.release_memory(&mut filler));
        filler.truncate_to_published();
        assert!(reader.holds_memory());
        assert!(reader.release_memory(&mut filler) && !reader.holds_memory(), "message {n}");
        assert_eq!((filler.backlog(), reader.queued(), reader.is_ready()), (0, 0, false));
        fill_once(&mut filler, b"");
        filler.truncate_to_published();
        filler.forget_commands();
        assert!(reader.release_memory(&mut filler));
    }
}

#[test]
fn release_memory_rejects_other_queue() {
    let (mut filler, mut reader) = inbound();
    let (mut other, _) = inbound();
    fill(&mut filler, &encoded(0, b"mine"), 100);
    assert!(read(&mut reader).is_some());
    assert!(!reader.release_memory(&mut other));
    fill(&mut filler, &encoded(0, b"again"), 100);
    assert_eq!(read(&mut reader), Some((0, b"again".to_vec())));
}

#[test]
fn short_scan_stops_at_first_unwanted_message() {
    let (mut filler, mut reader) = inbound();
    for (flags, len) in [(MORE, 0), (0, 3), (MORE, 0), (0, 5), (0, 3)] {
        filler.append(&encoded(flags, &body(len, len))).unwrap();
    }
    let mut told = Vec::new();
    let count = filler.next_short_messages(u32::MAX, None, |more, len| {
        told.push((more, len));
        len != 5
    });
    assert_eq!((count, told), (1, vec![(true, 0), (false, 3), (true, 0), (false, 5)]));
    filler.publish_scanned(count);
    assert!(reader.skip_delimiter());
    assert!(!reader.skip_delimiter(), "a part with a body");
    assert!(read(&mut reader) == Some((0, body(3, 3))));
    assert!(!reader.skip_delimiter(), "the queue is empty");
    assert_eq!(filler.next_short_messages(u32::MAX, None, |_, _| true), 2, "the whole of the refused one");
    filler.publish_scanned(2);
    assert!(reader.skip_delimiter());
}

#[test]
fn an_empty_last_part_is_no_delimiter() {
    let (mut filler, mut reader) = inbound();
    filler.append(&encoded(0, b"")).unwrap();
    assert_eq!(scan(&mut filler), Ok(1));
    assert!(!reader.skip_delimiter());
    assert!(read(&mut reader) == Some((0, Vec::new())));
}
