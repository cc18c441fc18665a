//! Unit tests of the log, against a simple model of the bytes that each reader must get.

use super::*;
use tautline_testkit::XorShift;

fn encoded(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut header = [0; frame::MAX_HEADER];
    let n = frame::encode_header(flags, body.len() as u64, &mut header);
    [&header[..n], body].concat()
}

/// Takes up to `max` pending bytes.
fn take(reader: &mut LogReader, max: usize, slices: usize) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let mut places = vec![IoSlice::new(&[]); slices];
        let (n, bytes) = reader.slices(&mut places);
        let left = (max - out.len()).min(bytes as usize);
        let all: Vec<u8> = places[..n].iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(all.len() as u64, bytes);
        out.extend_from_slice(&all[..left]);
        reader.advance(left as u64);
        if left == 0 {
            return out;
        }
    }
}

/// Appends a message, in a new chunk if needed. The oldest chunk must then be free.
fn append(log: &mut Log, body: &[u8]) {
    if !log.fits(body.len() + frame::MAX_HEADER) {
        assert!(log.next_chunk());
    }
    log.append(body);
}

fn unsent(reader: LogReader) -> (Vec<u8>, u64, u64) {
    let mut out = Vec::new();
    let (messages, written) = reader.copy_unsent(|piece| out.extend_from_slice(piece));
    (out, messages, written)
}

#[test]
fn readers_get_messages_published_after_they_join() {
    let mut log = Log::new();
    let (mut first, first_progress) = log.reader().unwrap();
    assert_eq!(first.pending(), 0);
    append(&mut log, b"a");
    let (mut second, second_progress) = log.reader().unwrap();
    let long = [7; 300];
    append(&mut log, &long);
    log.append_encoded(&[encoded(frame::MORE, b"b"), encoded(0, b"c")].concat());
    let rest = [encoded(0, &long), encoded(frame::MORE, b"b"), encoded(0, b"c")].concat();
    assert_eq!((first_progress.pending_messages(), second_progress.pending_messages()), (3, 2));
    assert_eq!(second_progress.pending_bytes(), rest.len() as u64);
    let mut copy = Vec::new();
    assert_eq!(second.peek_copy(5, &mut copy), 5);
    assert_eq!(copy, rest[..5]);
    assert_eq!(take(&mut first, usize::MAX, 2), [encoded(0, b"a"), rest.clone()].concat());
    assert_eq!(take(&mut second, usize::MAX, 1), rest);
    assert_eq!((first_progress.pending_messages(), second_progress.pending_messages()), (0, 0));
    assert_eq!((first.pending(), second.pending()), (0, 0));
}

#[test]
fn rewind_returns_to_last_whole_message() {
    let mut log = Log::new();
    let (mut reader, progress) = log.reader().unwrap();
    append(&mut log, b"first");
    log.append_encoded(&[encoded(frame::MORE, b"part"), encoded(0, b"rest")].concat());
    append(&mut log, b"third");
    let stream =
        [encoded(0, b"first"), encoded(frame::MORE, b"part"), encoded(0, b"rest"), encoded(0, b"third")];
    for (written, behind) in [(6, 3), (1, 2), (1, 2), (6, 2), (3, 2), (1, 2), (1, 1)] {
        take(&mut reader, written, 1);
        assert_eq!(progress.pending_messages(), behind);
    }
    reader.rewind();
    assert_eq!(take(&mut reader, 3, 4), stream[3][..3]);
    reader.rewind();
    assert_eq!(take(&mut reader, 3, 4), stream[3][..3]);
    let (frames, messages, written) = unsent(reader);
    assert_eq!((frames, messages, written), (stream[3].clone(), 1, 3));

    let (mut reader, progress) = log.reader().unwrap();
    append(&mut log, b"lost");
    append(&mut log, b"too");
    take(&mut reader, 2, 1);
    reader.discard();
    assert_eq!((reader.pending(), progress.pending_messages()), (0, 0));
    assert_eq!(unsent(reader), (Vec::new(), 0, 0));
}

#[test]
fn a_log_without_readers_stays_as_small_as_one_that_is_read() {
    let mut log = Log::new();
    let body = [1; 1000];
    for _ in 0..10 * CHUNK / body.len() {
        append(&mut log, &body);
    }
    assert_eq!(log.window.len(), 2);
    let (mut reader, _) = log.reader().unwrap();
    for _ in 0..10 * CHUNK / body.len() {
        append(&mut log, &body);
        take(&mut reader, usize::MAX, 1);
    }
    assert!(log.window.len() <= 3);
}

#[test]
fn the_window_ends_where_a_reader_stays_behind() {
    let mut log = Log::new();
    let (mut quick, quick_progress) = log.reader().unwrap();
    let (slow, slow_progress) = log.reader().unwrap();
    let body = [3; 8000];
    let mut sent = 0;
    loop {
        if !log.fits(body.len() + frame::MAX_HEADER) && !log.next_chunk() {
            break;
        }
        log.append(&body);
        sent += 1;
        take(&mut quick, usize::MAX, 3);
    }
    assert_eq!(log.window.len(), WINDOW);
    assert!(log.holds_oldest(&slow_progress) && !log.holds_oldest(&quick_progress));
    let (frames, messages, written) = unsent(slow);
    assert_eq!((messages, written), (sent, 0));
    assert!(frames == encoded(0, &body).repeat(sent as usize));
    assert!(log.next_chunk());
    assert_eq!(log.window.len(), WINDOW);
}

#[test]
fn any_mix_of_readers_gets_the_same_stream() {
    let mut random = XorShift::new(0x1096);
    for _ in 0..if cfg!(miri) { 2 } else { 60 } {
        let mut log = Log::new();
        // All published bytes; the message ends; and each reader with its taken position in the
        // stream.
        let mut stream: Vec<u8> = Vec::new();
        let mut ends = vec![0];
        let mut readers: Vec<(LogReader, Arc<Progress>, usize)> = Vec::new();
        for _ in 0..if cfg!(miri) { 60 } else { 600 } {
            match random.below(10) {
                0 if readers.len() < 5 => {
                    let (reader, progress) = log.reader().unwrap();
                    readers.push((reader, progress, stream.len()));
                }
                1..=4 => {
                    let body = vec![random.below(256) as u8; random.below(6000)];
                    if !log.fits(body.len() + frame::MAX_HEADER) {
                        while !log.next_chunk() {
                            let before = readers.len();
                            readers.retain(|(_, progress, _)| !log.holds_oldest(progress));
                            assert!(readers.len() < before);
                        }
                    }
                    log.append(&body);
                    stream.extend(encoded(0, &body));
                    ends.push(stream.len());
                }
                _ if readers.is_empty() => {}
                5..=7 => {
                    let index = random.below(readers.len());
                    let (reader, progress, at) = &mut readers[index];
                    let taken = take(reader, random.below(20_000), 1 + random.below(3));
                    assert!(taken == stream[*at..*at + taken.len()]);
                    *at += taken.len();
                    let whole = ends.iter().filter(|end| *end <= at).count();
                    assert_eq!(progress.pending_messages(), (ends.len() - whole) as u64);
                }
                8 => {
                    let index = random.below(readers.len());
                    let (reader, _, at) = &mut readers[index];
                    reader.rewind();
                    *at = *ends.iter().filter(|end| *end <= at).max().unwrap();
                }
                _ => {
                    let index = random.below(readers.len());
                    let (reader, _, at) = readers.swap_remove(index);
                    let whole = *ends.iter().filter(|end| **end <= at).max().unwrap();
                    let messages = ends.iter().filter(|end| **end > at).count() as u64;
                    let (frames, count, written) = unsent(reader);
                    assert!(frames == stream[whole..]);
                    assert_eq!((count, written), (messages, (at - whole) as u64));
                }
            }
        }
    }
}
