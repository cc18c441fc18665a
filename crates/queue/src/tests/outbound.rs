//! Tests of `FrameWriter` and `ByteDrain`.

use super::*;

#[test]
fn frames_of_every_length_reach_the_wire() {
    for len in lengths() {
        let (mut writer, mut drain) = outbound();
        let bytes = body(len, 1);
        let mut owned = Message::from_slice(&bytes);
        writer.append(MORE, &bytes).unwrap();
        writer.append_message(0, &mut owned).unwrap();
        assert_eq!(owned.is_empty(), len == 0 || len >= BY_REFERENCE, "only a body by reference is taken");
        writer.publish();
        writer.append(0, b"end").unwrap();
        writer.publish();
        let all = [encoded(MORE, &bytes), encoded(0, &bytes), encoded(0, b"end")].concat();
        assert_eq!(drain.pending(), all.len() as u64);
        assert_eq!(writer.unflushed_bytes(), all.len() as u64);
        assert!(drained(&mut drain, 3) == all, "length {len}");
        assert_eq!((drain.pending(), writer.unflushed_bytes(), writer.in_flight()), (0, 0, 0));
    }
}

#[test]
fn frames_at_every_offset_of_a_segment() {
    let pads: Vec<usize> = if cfg!(miri) { (380..470).step_by(11).collect() } else { (330..550).collect() };
    for pad in pads {
        for len in [0, 1, 5, 255, 256, 1024, 1025, 5000] {
            let (mut writer, mut drain) = outbound();
            let mut all = Vec::new();
            for (i, n) in [pad, len, len, 3].into_iter().enumerate() {
                writer.append(0, &body(n, i)).unwrap();
                writer.publish();
                all.extend(encoded(0, &body(n, i)));
            }
            assert!(drained(&mut drain, 2) == all, "pad {pad}, length {len}");
        }
    }
}

/// Memory of a test, in place of memory that other processes can read.
mod source {
    use super::*;
    use std::alloc::{Layout, alloc, dealloc};
    use tautline_mem::blocks::{self, LargeSource};

    const SIZE: usize = 1 << 20;
    pub(super) static USED: AtomicUsize = AtomicUsize::new(0);
    static BLOCK: AtomicUsize = AtomicUsize::new(0);

    /// A source that has one block of `SIZE` bytes at a time.
    static SOURCE: LargeSource = LargeSource {
        least: 200_000,
        allocate: |size, _| {
            if size > SIZE || USED.swap(1, Ordering::SeqCst) == 1 {
                return std::ptr::null_mut();
            }
            // SAFETY: the layout is not empty.
            let block = unsafe { alloc(layout()) };
            BLOCK.store(block.addr(), Ordering::SeqCst);
            block
        },
        owns: |address| {
            let block = BLOCK.load(Ordering::SeqCst);
            block != 0 && (block..block + SIZE).contains(&address.addr())
        },
        free,
    };

    fn layout() -> Layout {
        Layout::from_size_align(SIZE, blocks::ALIGN).unwrap()
    }

    /// # Safety
    /// `block` comes from `SOURCE`.
    unsafe fn free(block: *mut u8) {
        BLOCK.store(0, Ordering::SeqCst);
        // SAFETY: allocated with this layout.
        unsafe { dealloc(block, layout()) };
        USED.store(0, Ordering::SeqCst);
    }

    pub(super) fn set() {
        blocks::set_large_source(&SOURCE);
    }
}

/// Other tests use large bodies, too: they may have the only block.
#[test]
fn lendable_copies_come_from_the_source_alone() {
    let (mut writer, mut drain) = outbound();
    assert!(!writer.append_lendable(0, &body(300_000, 1)).unwrap(), "there is no source");
    source::set();
    let bytes = body(300_000, 1);
    while !writer.append_lendable(MORE, &bytes).unwrap() {
        std::thread::yield_now();
    }
    assert!(!writer.append_lendable(0, &bytes).unwrap(), "the source has no more memory");
    assert!(!writer.append_lendable(0, &body(1000, 1)).unwrap(), "the body is short");
    writer.append(0, b"end").unwrap();
    writer.publish();
    assert!(drained(&mut drain, 3) == [encoded(MORE, &bytes), encoded(0, b"end")].concat());
    drop((writer, drain));
    let mut message = Message::from_slice(b"short");
    assert!(Message::lendable_copy(message.as_slice()).is_none());
    let freed = AtomicUsize::new(0);
    message = foreign(&bytes, &freed);
    let copy = loop {
        match Message::lendable_copy(message.as_slice()) {
            Some(copy) => break copy,
            None => std::thread::yield_now(),
        }
    };
    assert!(copy.as_slice() == bytes && Message::lendable_copy(copy.as_slice()).is_none());
    drop(copy);
    drop(message);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn nothing_is_visible_before_publish() {
    let (mut writer, mut drain) = outbound();
    assert!(!writer.unpublished());
    writer.append(MORE, b"first").unwrap();
    writer.append(0, &body(10_000, 0)).unwrap();
    assert!(writer.unpublished());
    assert_eq!((drain.pending(), writer.in_flight(), writer.unflushed_bytes()), (0, 0, 0));
    writer.publish();
    assert!(!writer.unpublished());
    assert_eq!((drain.pending(), writer.in_flight()), (7 + 10_009, 1));
}

#[test]
fn a_message_that_was_rolled_back_leaves_no_trace() {
    let big = body(40_000, 9);
    for appended in [0, 10, 5000, 200_000] {
        let freed = AtomicUsize::new(0);
        let (mut writer, mut drain) = outbound();
        let mut all = Vec::new();
        for round in 0..5 {
            writer.append(MORE, &body(appended, 1)).unwrap();
            writer.append_message(MORE, &mut foreign(&big, &freed)).unwrap();
            writer.append(MORE, &body(100, 1)).unwrap();
            writer.append_message(0, &mut foreign(&big, &freed)).unwrap();
            writer.rollback();
            assert!(!writer.unpublished());
            assert_eq!(freed.load(Ordering::SeqCst), (round + 1) * 2);
            writer.append(MORE, &body(round * 1000, round)).unwrap();
            writer.append(0, b"kept").unwrap();
            writer.publish();
            all.extend([encoded(MORE, &body(round * 1000, round)), encoded(0, b"kept")].concat());
            writer.rollback();
        }
        assert_eq!(writer.in_flight(), 5);
        assert!(drained(&mut drain, 4) == all, "{appended}");
    }
}

#[test]
fn a_rollback_after_a_body_by_reference() {
    let (mut writer, mut drain) = outbound();
    let mut all = Vec::new();
    for i in 0..if cfg!(miri) { 5 } else { 100 } {
        let bytes = body(33_000, i);
        writer.append_message(0, &mut Message::from_slice(&bytes)).unwrap();
        writer.publish();
        writer.append(0, b"no").unwrap();
        writer.append_message(0, &mut Message::from_slice(&bytes)).unwrap();
        writer.rollback();
        all.extend(encoded(0, &bytes));
        if i % 3 == 0 {
            assert!(drained(&mut drain, 2) == all);
            all.clear();
        }
    }
    assert!(drained(&mut drain, 2) == all);
}

/// Fills a queue with all kinds of frames. Returns its message boundaries and bytes.
fn mixed(writer: &mut FrameWriter, freed: &AtomicUsize, big: &[u8]) -> (Vec<u64>, Vec<u8>) {
    let (mut boundaries, mut all) = (vec![0], Vec::new());
    let mut end = |writer: &mut FrameWriter, all: &Vec<u8>| {
        writer.publish();
        boundaries.push(all.len() as u64);
    };
    writer.append(0, b"one").unwrap();
    all.extend(encoded(0, b"one"));
    end(writer, &all);
    for part in [&b""[..], &[7; 300]] {
        writer.append(MORE, part).unwrap();
        all.extend(encoded(MORE, part));
    }
    writer.append(0, b"last").unwrap();
    all.extend(encoded(0, b"last"));
    end(writer, &all);
    writer.append(MORE, b"big").unwrap();
    writer.append_message(0, &mut foreign(big, freed)).unwrap();
    all.extend([encoded(MORE, b"big"), encoded(0, big)].concat());
    end(writer, &all);
    writer.append(0, &[8; 20]).unwrap();
    all.extend(encoded(0, &[8; 20]));
    end(writer, &all);
    (boundaries, all)
}

#[test]
fn first_message_can_be_dropped_after_a_rewind() {
    let big = body(33_000, 3);
    for cut in [0, 3, 5, 7, 300, 322, 330, 20_000, 33_336, 33_340, 33_358] {
        let freed = AtomicUsize::new(0);
        let (mut writer, mut drain) = outbound();
        let (boundaries, all) = mixed(&mut writer, &freed, &big);
        drain.pending();
        drain.advance(cut as u64);
        let whole = boundaries.iter().rposition(|&b| b <= cut as u64).unwrap_or(0);
        let is_cut = boundaries[whole] < cut as u64;
        assert_eq!(drain.cut().is_some(), is_cut, "cut {cut}");
        drain.rewind();
        drain.drop_first();
        let left = boundaries.get(whole + 1).map_or(all.len(), |&b| b as usize);
        assert!(pending_bytes(&mut drain) == all[left..], "cut {cut}");
        assert_eq!(writer.in_flight(), 3_u64.saturating_sub(whole as u64), "cut {cut}");
        drop((drain, writer));
        assert_eq!(freed.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_rewind_starts_at_the_message_that_was_written_in_part() {
    let big = body(33_000, 3);
    let total = 5 + 2 + 309 + 6 + 5 + 33_009 + 22;
    let cuts = (0..700).chain((700..total - 60).step_by(997)).chain(total - 60..=total);
    for cut in cuts.step_by(if cfg!(miri) { 83 } else { 1 }) {
        let freed = AtomicUsize::new(0);
        let (mut writer, mut drain) = outbound();
        let (boundaries, all) = mixed(&mut writer, &freed, &big);
        assert_eq!(all.len(), total);
        drain.pending();
        drain.advance(cut as u64);
        let whole = boundaries.iter().rposition(|&b| b <= cut as u64).unwrap_or(0);
        assert_eq!(writer.in_flight(), 4 - whole as u64, "cut {cut}");
        assert_eq!(freed.load(Ordering::SeqCst), usize::from(whole >= 3), "cut {cut}");
        assert!(pending_bytes(&mut drain) == all[cut..]);
        drain.rewind();
        assert!(pending_bytes(&mut drain) == all[boundaries[whole] as usize..], "cut {cut}");
        assert_eq!(drained(&mut drain, 1).len(), total - boundaries[whole] as usize);
        assert_eq!((writer.in_flight(), freed.load(Ordering::SeqCst)), (0, 1));
    }
}

#[test]
fn writes_of_any_size_credit_every_message_once() {
    let big = body(33_000, 3);
    for step in [1, 2, 3, 7, 50, 1000, 4096] {
        if cfg!(miri) && step < 1000 {
            continue;
        }
        let freed = AtomicUsize::new(0);
        let (mut writer, mut drain) = outbound();
        let (boundaries, all) = mixed(&mut writer, &freed, &big);
        drain.pending();
        let mut written = 0;
        while written < all.len() {
            let n = step.min(all.len() - written);
            drain.advance(n as u64);
            written += n;
            let whole = boundaries.iter().rposition(|&b| b <= written as u64).unwrap_or(0);
            assert_eq!(writer.in_flight(), 4 - whole as u64, "step {step}");
        }
    }
}

#[test]
fn the_limit_counts_whole_messages_and_no_commands() {
    let (mut writer, mut drain) = outbound();
    assert_eq!(writer.limit(), 0);
    for limit in [1, 2, 3, 1000] {
        writer.set_limit(limit);
        assert_eq!(writer.limit(), limit);
        for _ in 0..limit {
            writer.append(COMMAND, b"\x09SUBSCRIBE").unwrap();
            writer.publish_uncounted();
            assert!(writer.has_room());
            writer.append(MORE, b"a").unwrap();
            assert!(writer.has_room());
            writer.append(0, b"b").unwrap();
            writer.publish();
        }
        assert!(!writer.has_room());
        // One message and one command are not drained at once, so the drain looks at the frames.
        drain.pending();
        drain.advance(12 + 6);
        assert!(writer.has_room());
        writer.set_limit(0);
        assert!(writer.has_room());
        drained(&mut drain, 8);
        assert_eq!(writer.in_flight(), 0);
    }
}

/// The total number of messages that a queue takes does not depend on the part of the next step
/// that the peer has taken, even if some messages bypassed the queue.
#[test]
fn credit_in_steps_makes_equally_stuck_queues_equally_full() {
    for (taken, beside) in [(0, 0), (1, 0), (24, 0), (25, 0), (74, 0), (3, 74), (100, 1), (0, 49), (500, 0)] {
        let (mut writer, mut drain) = outbound();
        writer.set_limit_in_steps(500);
        (0..beside).for_each(|_| writer.count_bypass());
        let mut sent = beside;
        for _ in 0..taken {
            writer.append(0, b"b").unwrap();
            writer.publish();
        }
        drained(&mut drain, 8);
        sent += taken;
        while writer.has_room() {
            writer.append(0, b"b").unwrap();
            writer.publish();
            sent += 1;
        }
        let through = (taken + beside) / 25 * 25;
        assert_eq!(sent, through + 500, "{taken} taken, {beside} beside");
        assert_eq!(writer.uncredited(), 500);
        assert_eq!(writer.in_flight(), sent - taken - beside);
        drained(&mut drain, 8);
        assert!(writer.has_room());
        assert_eq!(writer.uncredited(), 0);
    }
}

#[test]
fn a_low_mark_gives_credit_for_each_message() {
    let (mut writer, mut drain) = outbound();
    writer.set_limit_in_steps(3);
    for _ in 0..3 {
        writer.append(0, b"b").unwrap();
        writer.publish();
    }
    assert!(!writer.has_room());
    drain.pending();
    drain.advance(3);
    assert!(writer.has_room());
    assert_eq!(writer.uncredited(), 2);
}

#[test]
fn discard_drops_and_counts_everything_published() {
    let big = body(33_000, 3);
    let freed = AtomicUsize::new(0);
    let (mut writer, mut drain) = outbound();
    assert_eq!(drain.discard(), 0);
    mixed(&mut writer, &freed, &big);
    writer.append(MORE, b"unpublished").unwrap();
    drain.pending();
    drain.advance(8);
    assert_eq!(drain.discard(), 3);
    assert_eq!((freed.load(Ordering::SeqCst), writer.in_flight(), drain.pending()), (1, 0, 0));
    writer.append(0, b"rest").unwrap();
    writer.publish();
    assert_eq!(drained(&mut drain, 1), [encoded(MORE, b"unpublished"), encoded(0, b"rest")].concat());
}

#[test]
fn peek_copy_takes_nothing() {
    let (mut writer, mut drain) = outbound();
    let mut out = Vec::new();
    assert_eq!(drain.peek_copy(10, &mut out), 0);
    writer.append(0, &body(6000, 1)).unwrap();
    writer.publish();
    let all = encoded(0, &body(6000, 1));
    assert_eq!((drain.peek_copy(5000, &mut out), drain.peek_copy(usize::MAX, &mut out)), (5000, 6009));
    assert!(out[..5000] == all[..5000] && out[5000..] == all);
    drain.advance(100);
    out.clear();
    assert_eq!(drain.peek_copy(10, &mut out), 10);
    assert_eq!(out, all[100..110]);
}

#[test]
fn either_end_may_go_first() {
    let big = body(33_000, 3);
    for (drain_first, take) in
        [(false, 0), (true, 0), (false, 100), (true, 100), (true, 33_350), (false, 33_350)]
    {
        let freed = AtomicUsize::new(0);
        let (mut writer, mut drain) = outbound();
        mixed(&mut writer, &freed, &big);
        writer.append_message(MORE, &mut foreign(&big, &freed)).unwrap();
        drain.pending();
        drain.advance(take);
        if drain_first {
            drop(drain);
            writer.append_message(0, &mut foreign(&big, &freed)).unwrap();
            writer.publish();
            drop(writer);
            assert_eq!(freed.load(Ordering::SeqCst), 3);
        } else {
            drop(writer);
            drop(drain);
            assert_eq!(freed.load(Ordering::SeqCst), 2);
        }
    }
}

#[test]
fn looking_at_an_unused_chain_does_nothing() {
    let (mut writer, mut drain) = outbound();
    assert!(pending_bytes(&mut drain).is_empty());
    drain.rewind();
    writer.rollback();
    for _ in 0..50 {
        writer.append(0, &body(20_000, 1)).unwrap();
        writer.publish();
        assert_eq!(drained(&mut drain, 9).len(), 20_009);
    }
}

#[test]
fn drained_queue_releases_its_memory() {
    let (mut writer, mut drain) = outbound();
    assert!(writer.release_memory(&mut drain) && !writer.holds_memory());
    for (n, len) in [10, 100, 5000, 0, 70_000, 300].into_iter().enumerate() {
        writer.append(MORE, &body(len, n)).unwrap();
        assert!(!writer.release_memory(&mut drain), "a part is there");
        writer.append_message(0, &mut Message::from_vec(body(len, n))).unwrap();
        writer.publish();
        let all = [encoded(MORE, &body(len, n)), encoded(0, &body(len, n))].concat();
        // Written in part, and then all again.
        assert_eq!(drain.pending(), all.len() as u64);
        drain.advance(all.len() as u64 - 1);
        assert!(!writer.release_memory(&mut drain));
        drain.rewind();
        assert!(!writer.release_memory(&mut drain));
        assert!(drained(&mut drain, 3) == all);
        // A message that is rolled back.
        writer.append(0, &body(len, n)).unwrap();
        assert!(!writer.release_memory(&mut drain));
        writer.rollback();
        assert!(writer.holds_memory());
        assert!(writer.release_memory(&mut drain) && !writer.holds_memory(), "message {n}");
        assert_eq!((drain.pending(), writer.in_flight(), writer.unflushed_bytes()), (0, 0, 0));
        drain.rewind();
        writer.rollback();
        assert_eq!(drain.discard(), 0);
    }
    assert_eq!(writer.written().0, 6);
}

#[test]
fn messages_by_reference_are_dropped_once() {
    let freed = AtomicUsize::new(0);
    let big = body(40_000, 1);
    let (mut writer, mut drain) = outbound();
    for n in 1..=3 {
        writer.append_message(0, &mut foreign(&big, &freed)).unwrap();
        writer.publish();
        assert!(drained(&mut drain, 2) == encoded(0, &big));
        assert!(writer.release_memory(&mut drain));
        assert_eq!(freed.load(Ordering::SeqCst), n);
    }
}

#[test]
fn segments_of_a_lean_queue_stay_small_while_it_is_drained() {
    for lean in [false, true] {
        let (mut writer, mut drain) = outbound();
        if lean {
            writer.set_lean();
        }
        for n in 0..2000 {
            writer.append(0, &body(60, n)).unwrap();
            writer.publish();
            assert!(drained(&mut drain, 2) == encoded(0, &body(60, n)));
        }
        assert_eq!(writer.segment_size() <= 512, lean);
        for n in 0..2000 {
            writer.append(0, &body(60, n)).unwrap();
            writer.publish();
        }
        assert!(writer.segment_size() > 10_000, "the drain is far behind");
        assert!(
            drained(&mut drain, 3) == (0..2000).flat_map(|n| encoded(0, &body(60, n))).collect::<Vec<u8>>()
        );
    }
}

#[test]
fn the_very_first_segment_of_a_lean_queue_holds_little() {
    for lean in [false, true] {
        for len in [0, 5, 40, 100, 1000, 3000] {
            let (mut writer, mut drain) = outbound();
            if lean {
                writer.set_lean();
            }
            let mut rooms = Vec::new();
            for n in 0..3 {
                writer.append(0, &body(len, n)).unwrap();
                rooms.push(writer.segment_space());
                writer.publish();
                assert!(drained(&mut drain, 20) == encoded(0, &body(len, n)));
                assert!(writer.release_memory(&mut drain));
            }
            assert_eq!(rooms[1], rooms[2]);
            assert_eq!(rooms[0] < rooms[1], lean && len <= 100, "length {len}");
        }
    }
}
