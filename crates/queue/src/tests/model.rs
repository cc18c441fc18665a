//! Random traffic between two threads, checked against the expected output.

use super::*;
use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;

const MESSAGES: u64 = if cfg!(miri) { 25 } else { 30_000 };

/// The xorshift64* generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }

    /// Returns a length: mostly short, sometimes around a boundary, rarely large.
    fn length(&mut self) -> usize {
        match self.below(100) {
            0..60 => self.below(80) as usize,
            60..85 => self.below(400) as usize,
            85..97 => self.below(5000) as usize,
            _ if cfg!(miri) => self.below(6000) as usize,
            97..99 => 32_700 + self.below(200) as usize,
            _ => self.below(80_000) as usize,
        }
    }
}

/// Returns the frames of message `n` of a seed, identical for both threads.
fn message(seed: u64, n: u64) -> Vec<(u8, Vec<u8>)> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9) ^ (n + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9));
    if random.below(20) == 0 {
        return vec![(COMMAND, body(random.below(300) as usize, n as usize))];
    }
    let parts = if random.below(4) == 0 { 1 + random.below(4) } else { 1 };
    (0..parts)
        .map(|part| (if part + 1 < parts { MORE } else { 0 }, body(random.length(), (n + part) as usize)))
        .collect()
}

/// Sends all messages, and sometimes one that is rolled back.
fn write_all(writer: &mut FrameWriter, seed: u64, progress: mpsc::Sender<()>) {
    let mut random = Random(seed);
    for n in 0..MESSAGES {
        let frames = message(seed, n);
        while !writer.has_room() {
            thread::yield_now();
        }
        if random.below(10) == 0 {
            writer.append(MORE, &body(random.length(), 1)).unwrap();
            writer.append_message(0, &mut Message::from_vec(body(random.length(), 1))).unwrap();
            writer.rollback();
        }
        for (flags, body) in &frames {
            if random.below(2) == 0 {
                writer.append(*flags, body).unwrap();
            } else {
                writer.append_message(*flags, &mut Message::from_slice(body)).unwrap();
            }
        }
        if frames[0].0 & COMMAND != 0 {
            writer.publish_uncounted()
        } else {
            writer.publish()
        }
        let _ = progress.send(());
    }
}

/// Reads all messages by every available method.
fn read_all(reader: &mut FrameReader, seed: u64) {
    let mut random = Random(seed ^ 0x55);
    for n in 0..MESSAGES {
        for (flags, body) in message(seed, n) {
            while !reader.is_ready() {
                thread::yield_now();
            }
            match random.below(5) {
                0 => {
                    let Some(head) = reader.head() else { panic!("a frame is there") };
                    let Some([first, second]) = reader.peek().unwrap() else { panic!("ready") };
                    assert_eq!((head.flags & !frame::LONG, head.len), (flags, body.len()));
                    assert!([first, second].concat() == body, "message {n}");
                    reader.skip();
                }
                1 => assert_eq!(reader.skip().map(|h| h.len), Some(body.len()), "message {n}"),
                2 => {
                    let mut message = Message::new();
                    assert!(reader.read_message(&mut message).unwrap().is_some());
                    assert!(message.as_slice() == body, "message {n}");
                    assert_eq!(message.more(), flags & MORE != 0);
                }
                _ => assert!(read(reader) == Some((flags, body)), "message {n}"),
            }
        }
    }
    assert!(!reader.is_ready());
}

#[test]
fn inproc_traffic() {
    for (seed, limit) in [(1, 0), (2, 1), (3, 10), (4, 1000)] {
        let (mut writer, mut reader) = inproc();
        writer.set_limit(limit);
        reader.set_credit_every(limit);
        let (progress, _ignored) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| read_all(&mut reader, seed));
            write_all(&mut writer, seed, progress);
        });
        assert_eq!((writer.in_flight(), writer.unflushed_bytes()), (0, 0));
    }
}

#[test]
fn wire_traffic_with_lost_connections() {
    let runs = [(5, 0), (6, 1), (7, 100)];
    for (seed, limit) in runs.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
        let (mut writer, mut drain) = outbound();
        let (mut filler, mut reader) = inbound();
        writer.set_limit(limit);
        let (progress, published) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| write_all(&mut writer, seed, progress));
            scope.spawn(|| read_all(&mut reader, seed));
            let mut random = Random(seed);
            let mut wire = VecDeque::new();
            let mut ended = false;
            while !ended || drain.pending() > 0 || !wire.is_empty() {
                while !ended {
                    match published.try_recv() {
                        Ok(()) => {}
                        Err(mpsc::TryRecvError::Empty) => break,
                        Err(mpsc::TryRecvError::Disconnected) => ended = true,
                    }
                }
                transmit(&mut drain, &mut wire, &mut random);
                arrive(&mut filler, &mut wire, &mut random);
                if random.below(50) == 0 {
                    reconnect(&mut drain, &mut filler, &mut wire);
                }
            }
        });
        assert_eq!(writer.in_flight(), 0);
    }
}

/// Writes some of the pending bytes.
fn transmit(drain: &mut ByteDrain, wire: &mut VecDeque<u8>, random: &mut Random) {
    let mut written = 0;
    let mut slices = [IoSlice::new(&[]); 4];
    let (n, bytes) = drain.slices(&mut slices);
    let most = if random.below(2) == 0 { bytes } else { random.below(bytes + 1) };
    for slice in &slices[..n] {
        let part = (slice.len() as u64).min(most - written);
        wire.extend(&slice[..part as usize]);
        written += part;
    }
    drain.advance(written);
    if written == 0 {
        thread::yield_now();
    }
}

/// Reads some of the bytes on the wire, and publishes the whole messages.
fn arrive(filler: &mut ByteFiller, wire: &mut VecDeque<u8>, random: &mut Random) {
    let n = wire.len().min(random.below(100_000) as usize);
    if random.below(8) == 0 {
        filler.release_spare();
    }
    if random.below(4) == 0 {
        filler.append(&wire.drain(..n).collect::<Vec<u8>>()).unwrap();
    } else {
        let bytes: Vec<u8> = wire.iter().take(n).copied().collect();
        let least = random.below(70_000) as usize;
        let n = filler.fill(least, usize::MAX, |room| Ok(copy(&bytes, room)), || false).unwrap();
        wire.drain(..n);
    }
    let most = random.below(20) as u32;
    let short = filler.next_short_messages(most, None, |_, _| true);
    if short > 0 {
        filler.publish_scanned(short);
    }
    while let Some(scanned) = filler.next_frame(None).expect("well formed") {
        if scanned.header.flags & MORE == 0 {
            filler.keep_last();
            filler.publish_scanned(u32::from(scanned.header.flags & COMMAND == 0));
        }
    }
}

/// Delivers all bytes under way, and then breaks the connection within a message, on both sides.
fn reconnect(drain: &mut ByteDrain, filler: &mut ByteFiller, wire: &mut VecDeque<u8>) {
    filler.append(&wire.drain(..).collect::<Vec<u8>>()).unwrap();
    while let Some(scanned) = filler.next_frame(None).expect("well formed") {
        if scanned.header.flags & MORE == 0 {
            filler.keep_last();
            filler.publish_scanned(u32::from(scanned.header.flags & COMMAND == 0));
        }
    }
    filler.truncate_to_published();
    drain.rewind();
}
