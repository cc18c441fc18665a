use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use super::super::tests::{await_room, read_waiting, ring, switched_pair, watched, would_block};
use super::lease::{HELD, LENT, RETURNED, word};
use super::*;
use crate::children;
use crate::children::tests::WaitingChild;
use crate::lending::{self, Count, DEFAULT_LIMIT as LEAST};
use crate::net::Stream;
use crate::net::rights::PeerFd;
use crate::net::transfer::{self, Sources, Targets, uninit};
use crate::slab;
use crate::slab::tests::{LEAD, body, give, one, trim_all};

/// The byte at this position of a test's stream.
fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// Returns a block with the bytes of the stream from `at` on.
fn block(at: usize, len: usize) -> NonNull<u8> {
    let block = slab::allocate(LEAD, len).unwrap();
    // SAFETY: the block is ours and has `len` bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(body(block), len) };
    bytes.iter_mut().enumerate().for_each(|(i, to)| *to = byte(at + i));
    block
}

fn bytes_of(block: NonNull<u8>, len: usize) -> &'static [u8] {
    // SAFETY: the tests use it only before they free the block.
    unsafe { std::slice::from_raw_parts(body(block), len) }
}

/// Makes the reader map the slab of the test's blocks. Bodies go through the ring until then.
fn make_known(near: &Stream, far: &Stream) {
    let before = slab::lent();
    while slab::lent() < before + 3 {
        let block = block(0, LEAST);
        write_all(near, bytes_of(block, LEAST), || drop(read_all(far, 1)));
        give(block);
        while read_all(far, LEAST).is_some() {}
    }
}

/// Writes all bytes. Calls `full` whenever there is no room.
fn write_all(near: &Stream, bytes: &[u8], mut full: impl FnMut()) {
    let mut at = 0;
    while at < bytes.len() {
        match near.write(&bytes[at..]) {
            Ok(n) => at += n,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => full(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads the available bytes, at most `most`.
fn read_all(far: &Stream, most: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; most];
    let n = far.read(&mut bytes).ok().filter(|n| *n > 0)?;
    bytes.truncate(n);
    Some(bytes)
}

#[test]
fn stream_with_loans_is_whole() {
    watched("loans", || {
        let _one = one();
        let (near, far) = switched_pair();
        let before = slab::lent();
        let lengths: Vec<usize> =
            (0..300).map(|i| [40, LEAST, 9, LEAST + 4097, 100_000, 3 << 20, 1][i * i % 7]).collect();
        let total: usize = lengths.iter().sum();
        let writer = thread::spawn(move || {
            let mut at = 0;
            for len in lengths {
                // The other large bodies are copied to a slab.
                let in_slab = (len >= LEAST && at % 2 == 0).then(|| block(at, len));
                let plain: Vec<u8> = (at..at + len).map(byte).collect();
                let bytes = in_slab.map_or(&plain[..], |block| bytes_of(block, len));
                let mut done = 0;
                while done < len {
                    match near.writev(&[IoSlice::new(&bytes[done..])]) {
                        Ok(n) => done += n,
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => await_room(&near),
                        Err(error) => panic!("{error}"),
                    }
                }
                at += len;
                // The memory may be used for the next body only after the reader has read this one.
                in_slab.into_iter().for_each(give);
            }
            near
        });
        let (mut at, mut buffer) = (0, vec![0; 1 << 20]);
        while at < total {
            let most = [7, 5000, 1 << 20, 60_000][at % 4];
            let n = read_waiting(&far, &mut buffer[..most]);
            assert!(n > 0 && buffer[..n].iter().enumerate().all(|(i, got)| *got == byte(at + i)), "at {at}");
            at += n;
        }
        drop(writer.join().unwrap());
        assert_eq!(read_waiting(&far, &mut buffer), 0, "the end");
        assert!(slab::lent() > before + 50, "{} loans", slab::lent() - before);
    });
}

/// The memory of the body is free after the write.
#[test]
fn bodies_elsewhere_are_copied_once_and_lent() {
    watched("elsewhere", || {
        let _one = one();
        let (near, far) = switched_pair();
        make_known(&near, &far);
        far.adopt_loans();
        assert!(near.lends());
        for len in [LEAST, LEAST + 1, 1 << 20] {
            let mut bytes: Vec<u8> = (0..len).map(byte).collect();
            let before = slab::lent();
            assert_eq!(near.writev(&[IoSlice::new(b"header"), IoSlice::new(&bytes)]).unwrap(), 6 + len);
            assert_eq!(slab::lent(), before + 1);
            bytes.fill(0xFF);
            assert_eq!(read_all(&far, 100).unwrap(), b"header");
            let loan = take_loan(&far);
            // SAFETY: the body of the loan.
            let seen = unsafe { std::slice::from_raw_parts(loan.as_ptr(), loan.length()) };
            assert!(seen.len() == len && seen.iter().enumerate().all(|(i, got)| *got == byte(i)));
        }
        assert_eq!(near.write(&[1; LEAST - 1]).unwrap(), LEAST - 1, "through the ring");
        assert_eq!(read_all(&far, LEAST).unwrap().len(), LEAST - 1);
        drop((near, far));
        parted::end_returned();
        assert_eq!(trim_all(), 0);
    });
}

/// A receiver takes whole bodies. The rest of one would be copied once more.
#[test]
fn body_that_began_in_the_ring_goes_on_there() {
    watched("rest", || {
        let _one = one();
        let (near, far) = switched_pair();
        let bytes: Vec<u8> = (0..5 << 20).map(byte).collect();
        let before = slab::lent();
        // The reader does not know the slab yet.
        let mut at = near.write(&bytes).unwrap();
        assert!(at > 0 && at < bytes.len(), "{at}");
        let mut read = Vec::new();
        while at < bytes.len() {
            read.extend(read_all(&far, 1 << 20).unwrap_or_default());
            at += near.write(&bytes[at..]).unwrap_or(0);
        }
        assert_eq!(slab::lent(), before);
        while let Some(more) = read_all(&far, 1 << 20) {
            read.extend(more);
        }
        assert!(read == bytes);
        assert_eq!(near.write(&bytes).unwrap(), bytes.len());
        assert_eq!(slab::lent(), before + 1, "the next body is lent");
    });
}

#[test]
fn reader_that_takes_nothing_bounds_the_loans() {
    watched("bounds", || {
        let _one = one();
        let (near, far) = switched_pair();
        make_known(&near, &far);
        let large = block(0, 1 << 20);
        let bytes = bytes_of(large, 1 << 20);
        let before = slab::lent();
        let mut sent = 0;
        while let Ok(n) = near.write(bytes) {
            sent += n;
        }
        assert_eq!((slab::lent() - before, sent), (2, 2 << 20));
        // Room for the next one, although the reader holds a part of the first.
        assert_eq!(read_all(&far, 10).unwrap().len(), 10);
        assert_eq!(near.write(bytes).unwrap(), 1 << 20);
        let mut left = 3 << 20;
        left -= 10;
        while let Some(read) = read_all(&far, 1 << 20) {
            left -= read.len();
        }
        assert_eq!(left, 0);
        give(large);
    });
}

/// A body above the limit for waiting bytes is lent if no other loan waits.
#[test]
fn a_single_body_may_have_any_length() {
    watched("long", || {
        let _one = one();
        let (near, far) = switched_pair();
        let long = 40 << 20;
        let block = block(0, long);
        let mut lent = 0;
        for _ in 0..5 {
            let before = slab::lent();
            write_all(&near, bytes_of(block, long), || drop(read_all(&far, 1 << 20)));
            while read_all(&far, 1 << 20).is_some() {}
            lent += slab::lent() - before;
        }
        assert!(lent >= 3, "{lent}");
        give(block);
    });
}

#[test]
fn ends_that_go_return_the_memory() {
    watched("ends", || {
        let _one = one();
        for reader_goes_first in [true, false] {
            let (near, far) = switched_pair();
            make_known(&near, &far);
            for len in [LEAST, 1 << 20] {
                let block = block(0, len);
                assert_eq!(near.write(bytes_of(block, len)).unwrap(), len);
                give(block);
            }
            assert_eq!(read_all(&far, 10).unwrap().len(), 10);
            assert_ne!(trim_all(), 0, "a slab with loans is in use");
            let (first, second) = if reader_goes_first { (far, near) } else { (near, far) };
            drop(first);
            drop(second);
            parted::end_returned();
            assert_eq!(trim_all(), 0);
        }
    });
}

/// The writer may be gone: the reader still has the bytes.
#[test]
fn loans_outlive_the_writer() {
    watched("outlive", || {
        let _one = one();
        let (near, far) = switched_pair();
        make_known(&near, &far);
        let block = block(3, 1 << 20);
        assert_eq!(near.write(bytes_of(block, 1 << 20)).unwrap(), 1 << 20);
        give(block);
        drop(near);
        // It would have the memory of the body, had the loan ended.
        let other = self::block(100, 1 << 20);
        let (mut at, mut buffer) = (0, vec![0; 10_000]);
        while at < 1 << 20 {
            let n = read_waiting(&far, &mut buffer);
            assert!(n > 0 && buffer[..n].iter().enumerate().all(|(i, got)| *got == byte(3 + at + i)));
            at += n;
        }
        assert_eq!(read_waiting(&far, &mut buffer), 0);
        give(other);
        drop(far);
        parted::end_returned();
        assert_eq!(trim_all(), 0);
    });
}

/// Entries that cannot be end the stream, and no signal comes.
#[test]
fn impossible_loans_are_an_error() {
    let _one = one();
    let block = block(0, LEAST);
    let lease = slab::lend(body(block), LEAST).unwrap();
    let lie = |change: &dyn Fn(&LoanArea)| {
        let (_producer, mut consumer, region) = ring();
        let area = region.loans();
        let (mine, yours) = UnixStream::pair().unwrap();
        let fd = lease.file.as_fd();
        transfer::send_with_rights(mine.as_fd(), &Sources::one(&[0]), &[fd]).unwrap();
        area.slabs[0].store(lease.file.length as u64 | slab_state::OFFERED, SeqCst);
        area.changes.store(1, SeqCst);
        let place = &area.places[5];
        area.lane[0].store(5, SeqCst);
        place.offset.store(lease.offset as u64, SeqCst);
        place.length.store(LEAST as u64, SeqCst);
        place.word.store(word(9, LENT), SeqCst);
        area.end.store(1, SeqCst);
        change(area);
        let mut bytes = [0; 100];
        let yours = Arc::new(PeerFd::from(OwnedFd::from(yours)));
        let taken = consumer.take(&Targets::one(uninit(&mut bytes)), &yours, false);
        taken.map(|n| bytes[..n].to_vec())
    };
    assert_eq!(lie(&|_| ()).unwrap(), (0..100).map(byte).collect::<Vec<_>>());
    let lies: [&dyn Fn(&LoanArea); 14] = [
        &|area| area.end.store(PLACES as u32 + 1, SeqCst),
        &|area| area.end.store(u32::MAX, SeqCst),
        &|area| area.lane[0].store(PLACES as u8, SeqCst),
        &|area| area.places[5].at.store(1, SeqCst),
        &|area| area.places[5].at.store(u64::MAX, SeqCst),
        &|area| area.places[5].slab.store(1, SeqCst),
        &|area| area.places[5].slab.store(u32::MAX, SeqCst),
        &|area| area.places[5].offset.store(u64::MAX, SeqCst),
        &|area| area.places[5].offset.store(16 << 20, SeqCst),
        &|area| area.places[5].offset.store(1, SeqCst),
        &|area| area.places[5].length.store(0, SeqCst),
        &|area| area.places[5].length.store(u64::MAX, SeqCst),
        &|area| area.places[5].word.store(word(9, RETURNED), SeqCst),
        &|area| area.slabs[0].store(4096 | slab_state::OFFERED, SeqCst),
    ];
    for (at, change) in lies.iter().enumerate() {
        assert_eq!(lie(change).unwrap_err().raw_os_error(), Some(libc::EPROTO), "lie {at}");
    }
    drop(lease);
    give(block);
}

/// A faulty reader writes any values. It keeps the writer's memory until it is gone at most.
#[test]
fn lying_reader_harms_only_itself() {
    watched("liar", || {
        let _one = one();
        let (producer, consumer, region) = ring();
        let (mine, yours) = UnixStream::pair().unwrap();
        let mut producer = producer;
        producer.switch(0, true);
        let area = region.loans();
        let mut seen = 0;
        for round in 0..2000_u32 {
            let block = block(0, LEAST);
            let written =
                producer.put(&Sources::one(bytes_of(block, LEAST)), Some(mine.as_fd()), || true).unwrap();
            assert!(written == 0 || written == LEAST);
            give(block);
            for (at, place) in area.places.iter().enumerate() {
                let lie = [0, LENT, HELD, RETURNED][(round as usize + at) % 4];
                place.word.store(word(round / 100 % 3, lie), SeqCst);
            }
            area.slabs[round as usize % SLABS].store(u64::from(round % 8), SeqCst);
            region.header().head.0.store(region.header().tail.0.load(SeqCst), SeqCst);
            seen += u32::from(written > 0);
        }
        assert!(seen > 100, "{seen}");
        drop((consumer, yours));
        keep(producer, mine.into());
        assert_eq!(trim_all(), 0);
    });
}

#[test]
fn memory_that_is_no_slab_is_refused() {
    let _one = one();
    let block = block(0, LEAST);
    let lease = slab::lend(body(block), LEAST).unwrap();
    let plain = crate::memfd::create(lease.file.length).unwrap();
    crate::memfd::seal(&plain, crate::memfd::FIXED_LENGTH).unwrap();
    for (fd, length, fits) in [
        (lease.file.as_fd(), lease.file.length, true),
        (lease.file.as_fd(), lease.file.length - 4096, false),
        (lease.file.as_fd(), 0, false),
        (plain.as_fd(), lease.file.length, false),
    ] {
        let memory = PeerFd::from(fd.try_clone_to_owned().unwrap());
        assert_eq!(borrower::accepts(memory, length), fits, "{length} of {}", fd.as_raw_fd());
    }
    drop(lease);
    give(block);
}

#[test]
fn nothing_is_read_before_it_is_there() {
    let _one = one();
    let (near, far) = switched_pair();
    make_known(&near, &far);
    assert!(would_block(far.read(&mut [0])));
    assert!(far.request_wakeup());
    let block = block(0, LEAST);
    assert_eq!(near.write(bytes_of(block, LEAST)).unwrap(), LEAST);
    assert!(!far.request_wakeup());
    give(block);
}

/// Reads until a loan comes, and takes it.
fn take_loan(far: &Stream) -> Loan {
    loop {
        match far.read(&mut [0; 100]) {
            Err(error) if crate::net::is_loan(&error) => {
                return far.take_loan(|_| true).unwrap().unwrap();
            }
            Ok(0) => panic!("the end"),
            _ => thread::yield_now(),
        }
    }
}

/// A reader writes to its bodies. The next body in the same place still arrives unchanged.
#[test]
fn written_bodies_do_not_spoil_later_ones() {
    watched("exposure", || {
        let _one = one();
        let (near, far) = switched_pair();
        far.adopt_loans();
        let len = LEAST + 3 * 4096;
        let mut places = std::collections::HashSet::new();
        for round in 0..600 {
            let loan = loop {
                let (block, before) = (block(round, len), slab::lent());
                assert_eq!(near.write(bytes_of(block, len)).unwrap(), len);
                give(block);
                if slab::lent() > before {
                    break take_loan(&far);
                }
                // A slab that the reader does not know yet: the bytes came through the ring.
                while read_all(&far, len).is_some() {}
            };
            let body = loan.expose().unwrap();
            places.insert(body);
            // SAFETY: the body of the loan, which only this test uses.
            let bytes = unsafe { std::slice::from_raw_parts_mut(body, len) };
            assert!(bytes.iter().enumerate().all(|(i, got)| *got == byte(round + i)), "round {round}");
            for i in 0..round % 7 {
                bytes[(i * 5077 * (round + 1)) % len] = 0xFF;
            }
            // The sender's memory, and the mapping for reading, are as before.
            // SAFETY: the body of the loan.
            let seen = unsafe { std::slice::from_raw_parts(loan.as_ptr(), len) };
            assert!(seen.iter().enumerate().all(|(i, got)| *got == byte(round + i)), "round {round}");
            assert_eq!(loan.expose(), Some(body));
        }
        assert!(places.len() < 300, "the blocks are reused");
    });
}

/// A program may close all descriptors and open other files with the same numbers.
#[test]
fn exposure_needs_no_descriptor_of_before() {
    watched("descriptors", || {
        let _one = one();
        let (near, far) = switched_pair();
        far.adopt_loans();
        let exposed = |at| {
            let loan = borrow(&near, &far, at, LEAST);
            let body = loan.expose().unwrap();
            // SAFETY: the body of the loan, which only this test uses.
            let bytes = unsafe { std::slice::from_raw_parts_mut(body, LEAST) };
            assert!(bytes.iter().enumerate().all(|(i, got)| *got == byte(at + i)), "body {at}");
            bytes.fill(0xFF);
        };
        (0..4).for_each(exposed);
        let zeroes = std::fs::File::open("/dev/zero").unwrap();
        let mut replaced = 0;
        for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
            if std::fs::read_link(entry.path()).is_ok_and(|to| to.ends_with("pagemap")) {
                let number = entry.file_name().to_str().unwrap().parse().unwrap();
                // SAFETY: integers. Nothing owns the number that is replaced.
                assert!(unsafe { libc::dup2(zeroes.as_raw_fd(), number) } >= 0);
                replaced += 1;
            }
        }
        assert!(replaced > 0, "the page map is open");
        (4..40).for_each(exposed);
    });
}

/// Makes the reader map the slab of a body, and returns the number of its loans.
fn loans_of(near: &Stream, far: &Stream, len: usize) -> u64 {
    let before = slab::lent();
    let block = block(0, len);
    for _ in 0..5 {
        write_all(near, bytes_of(block, len), || drop(read_all(far, 1)));
        while read_all(far, len).is_some() {}
    }
    give(block);
    slab::lent() - before
}

#[test]
fn bodies_from_the_limit_on_are_lent() {
    watched("limit", || {
        let _one = one();
        let (near, far) = switched_pair();
        make_known(&near, &far);
        assert_eq!(loans_of(&near, &far, 65_536), 0);
        lending::configure(Some("65536".as_ref()));
        assert_eq!(loans_of(&near, &far, 65_535), 0);
        assert_eq!(loans_of(&near, &far, 65_536), 5);
        lending::configure(Some(LEAST.to_string().as_ref()));
        assert_eq!(lending::least(), LEAST);
    });
}

/// Sends bodies until one is lent, and takes it.
fn borrow(near: &Stream, far: &Stream, at: usize, len: usize) -> Loan {
    loop {
        let (block, before) = (block(at, len), slab::lent());
        assert_eq!(near.write(bytes_of(block, len)).unwrap(), len);
        give(block);
        if slab::lent() > before {
            return take_loan(far);
        }
        // A slab that the reader does not know yet: the bytes came through the ring.
        while read_all(far, len).is_some() {}
    }
}

/// The parent has returned the body, and the sender sends more.
#[test]
fn forked_child_of_a_reader_keeps_its_body() {
    watched("child", || {
        let _one = one();
        let (near, far) = switched_pair();
        far.adopt_loans();
        let loan = borrow(&near, &far, 5, LEAST);
        let exposed = borrow(&near, &far, 6, LEAST);
        let places = [loan.as_ptr(), exposed.expose().unwrap()];
        let child = WaitingChild::fork(
            |_| (),
            || {
                places.iter().zip([5, 6]).all(|(place, at)| {
                    // SAFETY: the body of a loan, which the child has, too.
                    let bytes = unsafe { std::slice::from_raw_parts(*place, LEAST) };
                    bytes.iter().enumerate().all(|(i, got)| *got == byte(at + i))
                })
            },
        );
        let mut closing = WaitingChild::fork(|_| (), || true);
        closing.await_first();
        drop((loan, exposed));
        closing.end();
        for at in 100..200 {
            let other = borrow(&near, &far, at, LEAST);
            assert!(!places.contains(&other.as_ptr()), "the memory is used again");
        }
        child.end();
        await_return(near, far);
    });
}

/// Ends the connection, and waits until all its memory is given back.
fn await_return(near: Stream, far: Stream) {
    drop((far, near));
    while trim_all() > 0 {
        children::sweep();
        parted::end_returned();
        thread::yield_now();
    }
}

/// A child drops its copies of everything.
#[test]
fn forked_child_returns_nothing() {
    watched("copies", || {
        let _one = one();
        let (near, far) = switched_pair();
        far.adopt_loans();
        let loan = borrow(&near, &far, 5, LEAST);
        let waiting = block(6, LEAST);
        assert_eq!(near.write(bytes_of(waiting, LEAST)).unwrap(), LEAST);
        give(waiting);
        // SAFETY: both are dropped in the child, which has copies.
        let [near_copy, far_copy] = [&near, &far].map(|stream| unsafe { std::ptr::read(stream) });
        // SAFETY: as above.
        let loan_copy = unsafe { std::ptr::read(&loan) };
        let copies = std::mem::ManuallyDrop::new((loan_copy, near_copy, far_copy));
        let child = WaitingChild::fork(
            |_| {
                drop(std::mem::ManuallyDrop::into_inner(copies));
            },
            || true,
        );
        child.end();
        let other = block(7, LEAST);
        for (i, got) in [&loan, &take_loan(&far)].into_iter().enumerate() {
            // SAFETY: the body of a loan.
            let bytes = unsafe { std::slice::from_raw_parts(got.as_ptr(), LEAST) };
            assert!(bytes.iter().enumerate().all(|(at, got)| *got == byte(5 + i + at)));
        }
        give(other);
        drop(loan);
        await_return(near, far);
    });
}

/// Both ends are silent. The thread ends the loans, and the reader gives up slabs of the writer.
#[test]
fn silent_connections_give_back_their_slabs() {
    watched("silent", || {
        let _one = one();
        let (near, far) = switched_pair();
        far.adopt_loans();
        let loan = borrow(&near, &far, 0, LEAST);
        let block = block(1, LEAST);
        assert_eq!(near.write(bytes_of(block, LEAST)).unwrap(), LEAST);
        give(block);
        let other = take_loan(&far);
        drop((loan, other));
        // The thread ends the loans. `trim_all` makes all idle slabs old enough.
        while trim_all() > 0 {
            thread::yield_now();
        }
        while borrower::has_mapped_slabs() {
            thread::yield_now();
        }
        drop((near, far));
    });
}

/// The writer's end is gone, and the reader returns the body later.
#[test]
fn ended_connections_give_back_their_slabs() {
    watched("ended", || {
        let _one = one();
        let (near, far) = switched_pair();
        far.adopt_loans();
        let loan = borrow(&near, &far, 0, LEAST);
        drop((near, far));
        assert_ne!(trim_all(), 0);
        drop(loan);
        while trim_all() > 0 {
            thread::yield_now();
        }
    });
}

/// Each body of at least 64 KiB is counted once, and so is each end of a loan.
#[test]
fn counts_name_the_reasons() {
    watched("counts", || {
        let _one = one();
        let (near, far) = switched_pair();
        make_known(&near, &far);
        far.adopt_loans();
        caretaker::tidy();
        let before = lending::counts();
        let since = |count: Count| lending::counts()[count as usize] - before[count as usize];
        let heap = vec![0; LEAST];
        for len in [LEAST - 1, lending::LOWEST_LIMIT - 1] {
            assert_eq!(near.write(&heap[..len]).unwrap(), len);
            while read_all(&far, len).is_some() {}
        }
        assert_eq!([Count::NoSlab, Count::Short, Count::Lent].map(since), [0, 1, 0]);
        let loan = borrow(&near, &far, 0, LEAST);
        loan.expose().unwrap();
        assert_eq!([Count::Lent, Count::HeldBytes].map(since), [1, LEAST as u64]);
        assert_eq!([Count::Adopted, Count::Exposed, Count::Returned].map(since), [1, 1, 0]);
        drop(loan);
        await_return(near, far);
        assert_eq!([Count::Returned, Count::HeldBytes].map(since), [1, 0]);
    });
}
