use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use super::region::{CAPACITY, HEADER, Region};
use super::ring::{RegionReader, RegionWriter};
use super::{ASK, MOST_BELLS, PATIENCE, WRITES, take_bells};
use crate::memfd;
use crate::net::Stream;
use crate::net::rights::PeerFd;
use crate::net::transfer::{Sources, Targets, receive_with_rights, send_with_rights, uninit};
use crate::poll::{PollFd, poll};
use tautline_testkit::with_watchdog;

pub(super) fn watched(name: &str, work: impl FnOnce() + Send + 'static) {
    with_watchdog(std::time::Duration::from_secs(300), name, work);
}

/// Creates two ends that may share memory.
fn pair() -> (Stream, Stream) {
    let (near, far) = Stream::pair().unwrap();
    for end in [&near, &far] {
        end.prepare_sharing();
        end.begin_sharing(false);
    }
    (near, far)
}

/// Creates one end that may share memory, and a plain socket for the test.
fn with_plain_end() -> (Stream, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    let near = Stream::from_fd(near.into()).unwrap();
    near.prepare_sharing();
    near.begin_sharing(false);
    (near, far)
}

/// Creates two ends of which the near one already writes into memory.
pub(super) fn switched_pair() -> (Stream, Stream) {
    let (near, far) = pair();
    for _ in 0..=WRITES + 1 {
        assert_eq!(near.write(&[7]).unwrap(), 1);
        assert_eq!(read_some(&far, 10), [7]);
    }
    assert!(far.reads_from_memory());
    (near, far)
}

pub(super) fn read_some(stream: &Stream, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; most];
    let n = read_waiting(stream, &mut bytes);
    bytes.truncate(n);
    bytes
}

/// Reads, and sleeps by the protocol until there is data.
pub(super) fn read_waiting(stream: &Stream, buffer: &mut [u8]) -> usize {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            result => return result.unwrap(),
        }
        if stream.request_wakeup() {
            poll(&mut [PollFd::new(stream.as_fd().as_raw_fd(), PollFd::IN)], None).unwrap();
        }
    }
}

pub(super) fn write_waiting(stream: &Stream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => await_room(stream),
            Err(error) => panic!("{error}"),
        }
    }
}

pub(super) fn await_room(stream: &Stream) {
    let (fd, readable) = stream.space_fd();
    let events = if readable { PollFd::IN } else { PollFd::OUT };
    poll(&mut [PollFd::new(fd.as_raw_fd(), events)], None).unwrap();
}

fn is_ready(fd: impl AsFd, events: i16) -> bool {
    let mut fds = [PollFd::new(fd.as_fd().as_raw_fd(), events)];
    poll(&mut fds, Some(std::time::Duration::ZERO)).unwrap() > 0
}

pub(super) fn would_block<T: std::fmt::Debug>(result: io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Returns the byte at this position of a long stream.
fn byte(at: usize) -> u8 {
    (at ^ at >> 8 ^ at >> 16) as u8
}

/// Returns sizes from 1 to some hundred thousand, mostly small ones.
fn sizes(mut seed: u64) -> impl FnMut() -> usize {
    move || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        1 + (seed >> 40) as usize % (1 << (4 + (seed >> 33) % 15))
    }
}

#[test]
fn bytes_arrive_in_order_for_any_write_sizes() {
    watched("bytes", || {
        const BYTES: usize = 64 << 20;
        let (near, far) = pair();
        let stream: Vec<u8> = (0..BYTES).map(byte).collect();
        let writer = thread::spawn(move || {
            let (mut size, mut at) = (sizes(1), 0);
            while at < BYTES {
                let piece = &stream[at..BYTES.min(at + size())];
                let (first, second) = piece.split_at(piece.len() / 3);
                match near.writev(&[IoSlice::new(first), IoSlice::new(second)]) {
                    Ok(n) => at += n,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => await_room(&near),
                    Err(error) => panic!("{error}"),
                }
            }
            near
        });
        let (mut size, mut at, mut buffer) = (sizes(2), 0, vec![0; 1 << 20]);
        while at < BYTES {
            let n = read_waiting(&far, &mut buffer[..size()]);
            assert!(buffer[..n].iter().enumerate().all(|(i, got)| *got == byte(at + i)), "at {at}");
            at += n;
        }
        assert!(far.reads_from_memory());
        assert!(would_block(far.read(&mut buffer)));
        drop(writer.join().unwrap());
        assert_eq!(read_waiting(&far, &mut buffer), 0, "the end");
    });
}

/// Each end sleeps until the other one has written, so a lost bell hangs the test.
#[test]
fn both_ends_wake_each_other() {
    watched("ping-pong", || {
        let (near, far) = pair();
        let echo = thread::spawn(move || {
            let mut buffer = [0; 100];
            loop {
                match read_waiting(&far, &mut buffer) {
                    0 => return,
                    n => write_waiting(&far, &buffer[..n]),
                }
            }
        });
        for round in 0..20_000_u32 {
            write_waiting(&near, &round.to_le_bytes());
            let mut answer = [0; 4];
            let mut got = 0;
            while got < 4 {
                got += read_waiting(&near, &mut answer[got..]);
            }
            assert_eq!(answer, round.to_le_bytes());
        }
        assert!(near.reads_from_memory());
        drop(near);
        echo.join().unwrap();
    });
}

/// Readers that sleep on the descriptor alone, as an epoll set does, must listen after each read as
/// soon as there is memory.
#[test]
fn waiting_reader_misses_no_wakeup_at_the_switch() {
    watched("switch", || {
        for round in 0..300_usize {
            let (near, far) = pair();
            let total = (WRITES as usize + 20) * (1 + round % 7);
            let writer = thread::spawn(move || {
                (0..WRITES + 20).for_each(|_| write_waiting(&near, &vec![1; 1 + round % 7]));
                near
            });
            let (mut got, mut listens, mut buffer) = (0, true, [0; 64]);
            while got < total {
                if listens {
                    poll(&mut [PollFd::new(far.as_fd().as_raw_fd(), PollFd::IN)], None).unwrap();
                }
                let read = far.read(&mut buffer);
                listens = match &read {
                    _ if !far.reads_from_memory() => true,
                    Ok(_) => far.request_wakeup_again(),
                    Err(_) => far.request_wakeup(),
                };
                got += read.unwrap_or(0);
            }
            drop(writer.join().unwrap());
        }
    });
}

/// Reading the last bytes of the socket may take a bell, so their reader must be told to listen.
#[test]
fn the_last_bytes_of_the_socket_say_that_there_is_memory() {
    let (near, far) = pair();
    (0..ASK).for_each(|_| write_waiting(&near, &[1]));
    (0..ASK).for_each(|_| assert_eq!(read_some(&far, 1), [1]));
    (ASK..=WRITES).for_each(|_| write_waiting(&near, &[1]));
    write_waiting(&near, b"the rest");
    (ASK..=WRITES).for_each(|_| assert_eq!(read_some(&far, 1), [1]));
    assert_eq!(near.write(b"memory").unwrap(), 6);
    assert_eq!(read_some(&far, 100), b"the rest");
    assert!(far.reads_from_memory());
    assert!(!far.request_wakeup_again());
    assert_eq!(read_some(&far, 100), b"memory");
}

#[test]
fn peer_without_sharing_gets_only_the_bytes() {
    watched("plain", || {
        let (near, far) = with_plain_end();
        let sent: Vec<u8> = (0..10_000).map(byte).collect();
        let writer = thread::spawn(move || {
            sent.chunks(3).for_each(|piece| write_waiting(&near, piece));
            sent
        });
        let mut got = Vec::new();
        io::Read::read_to_end(&mut &far, &mut got).unwrap();
        assert_eq!(got, writer.join().unwrap());
    });
}

/// Reads the next byte and returns the descriptors that come with it.
fn enclosed(far: &UnixStream) -> Vec<PeerFd> {
    let mut byte = [0];
    let (n, rights) = receive_with_rights(far.as_fd(), &Targets::one(uninit(&mut byte))).unwrap();
    assert_eq!(n, 1);
    rights
}

/// Closes on this thread, so that the other end sees it at once.
fn close_now(fd: PeerFd) {
    let fd = std::mem::ManuallyDrop::new(fd);
    // SAFETY: an open descriptor, which no other code closes.
    drop(unsafe { OwnedFd::from_raw_fd(fd.as_fd().as_raw_fd()) });
}

#[test]
fn a_connection_that_is_not_busy_carries_no_descriptors() {
    let (near, far) = with_plain_end();
    for _ in 1..ASK {
        near.write(&[1]).unwrap();
        assert!(enclosed(&far).is_empty());
    }
    near.write(&[1]).unwrap();
    assert_eq!(enclosed(&far).len(), 1, "the question");
}

/// The peer may not know us yet, so it is asked again, but not for ever.
#[test]
fn peer_that_closes_the_question_gets_no_offer() {
    let (near, far) = with_plain_end();
    let mut asked = Vec::new();
    for write in 1..=4 * PATIENCE {
        near.write(&[1]).unwrap();
        let rights = enclosed(&far);
        assert!(rights.len() < 2, "an offer");
        if !rights.is_empty() {
            asked.push(write);
        }
        rights.into_iter().for_each(close_now);
    }
    assert_eq!(asked, [32, 128, 256, 512, 1024]);
}

/// Like the test `peer_that_closes_the_question_gets_no_offer`, on a system
/// that keeps descriptors away from the peer.
#[cfg(linux_kernel)]
#[test]
fn a_peer_that_takes_no_descriptors_gets_the_bytes() {
    let (near, far) = with_plain_end();
    crate::net::rights::refuse(far.as_fd());
    for _ in 1..=4 * PATIENCE {
        assert_eq!(near.write(&[1]).unwrap(), 1);
        assert!(enclosed(&far).is_empty() || !crate::net::rights::are_refused());
    }
}

/// The end that finishes its handshake first asks too early, and asks again.
#[test]
fn an_end_that_begins_later_is_asked_again() {
    let (near, far) = Stream::pair().unwrap();
    [&near, &far].into_iter().for_each(Stream::prepare_sharing);
    near.begin_sharing(false);
    for _ in 0..3 * ASK {
        assert_eq!(near.write(&[1]).unwrap(), 1);
        assert_eq!(read_some(&far, 10), [1]);
    }
    // Before Linux 6.16 the question arrived, and closing it was the answer.
    crate::net::rights::wait_until_closed();
    far.begin_sharing(false);
    for _ in 0..PATIENCE {
        assert_eq!(near.write(&[1]).unwrap(), 1);
        assert_eq!(read_some(&far, 10), [1]);
    }
    assert!(far.reads_from_memory());
}

#[test]
fn late_answer_leads_to_an_offer() {
    let (near, far) = with_plain_end();
    (0..2 * WRITES).for_each(|_| write_waiting(&near, &[1]));
    let mut questions: Vec<PeerFd> = (0..2 * WRITES).flat_map(|_| enclosed(&far)).collect();
    let question = questions.pop().unwrap();
    assert!(questions.is_empty(), "it is asked once");
    let refused = send_with_rights(question.as_fd(), &Sources::one(&[0]), &[far.as_fd()]);
    if refused.is_err() {
        assert_eq!(crate::net::transfer::send(question.as_fd(), &Sources::one(&[0])).unwrap(), 1);
    }
    (0..2 * ASK).for_each(|_| write_waiting(&near, &[1]));
    let offer: Vec<PeerFd> = (0..2 * ASK).flat_map(|_| enclosed(&far)).collect();
    assert_eq!(offer.len(), 2);
    assert!(Region::accept(&offer[0]).is_ok());
    assert!(!take_bells(question.as_fd()), "it is closed when it is answered");
}

#[test]
fn shared_bytes_are_read_before_the_end() {
    let (near, far) = switched_pair();
    assert_eq!(near.write(b"the last words").unwrap(), 14);
    drop(near);
    assert_eq!(read_some(&far, 100), b"the last words");
    assert!(read_some(&far, 100).is_empty());
    assert!(read_some(&far, 100).is_empty(), "and so it stays");
}

#[test]
fn polling_reader_notices_the_end() {
    let (near, far) = switched_pair();
    drop(near);
    let mut looks = 0;
    while would_block(far.read(&mut [0; 10])) {
        looks += 1;
        assert!(looks < 100_000);
    }
    assert_eq!(far.read(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn writer_notices_closed_reader() {
    let (near, far) = switched_pair();
    drop(far);
    let mut writes = 0;
    let error = loop {
        match near.write(&[0; 65536]) {
            Ok(_) => writes += 1,
            Err(error) => break error,
        }
        assert!(writes < 1000);
    };
    assert_eq!(error.raw_os_error().unwrap_or(libc::EPIPE), libc::EPIPE, "{error}");
}

/// The peer may have read the published data. A writer that counts it as unwritten would send it
/// twice.
#[test]
fn bytes_visible_before_reader_closed_count_as_written() {
    let (near, far) = switched_pair();
    assert!(far.request_wakeup());
    drop(far);
    assert_eq!(near.write(&[1; 100]).unwrap(), 100, "though nobody hears the bell");
    assert!(near.write(&[1; 100]).is_err());

    let (near, far) = switched_pair();
    let mut room = 0;
    while let Ok(n @ 1..) = near.write(&[1; 100_000]) {
        room += n;
    }
    assert_eq!(far.read(&mut vec![0; 50_000]).unwrap(), 50_000);
    drop(far);
    assert_eq!(near.write(&[1; 100_000]).unwrap(), 50_000, "of {room}");
    assert!(near.write(&[1; 100_000]).is_err());
}

#[test]
fn writer_is_woken_when_space_is_free() {
    let (near, far) = switched_pair();
    let mut written = 0;
    while let Ok(n) = near.write(&[1; 10_000]) {
        written += n;
    }
    assert!(would_block(near.write(&[1])));
    let (room, readable) = near.space_fd();
    assert!(readable);
    assert!(!is_ready(room, PollFd::IN));
    assert_eq!(far.read(&mut [0; 100]).unwrap(), 100);
    assert!(!is_ready(room, PollFd::IN), "not for every bit of it");
    assert_eq!(far.read(&mut vec![0; written / 2]).unwrap(), written / 2);
    assert!(is_ready(room, PollFd::IN));
    assert_eq!(near.write(&[2; 10]).unwrap(), 10);
    // The bell that was rung is not received twice.
    while near.write(&[3; 10_000]).is_ok() {}
    assert!(!is_ready(room, PollFd::IN));
}

#[test]
fn the_descriptor_tells_a_reader_that_listens_of_bytes() {
    let (near, far) = switched_pair();
    let readable = || is_ready(&far, PollFd::IN);
    assert!(far.request_wakeup());
    assert!(far.request_wakeup_again(), "still");
    assert!(!readable());
    near.write(b"one").unwrap();
    assert!(readable());
    near.write(b"two").unwrap();
    assert_eq!(read_some(&far, 4), b"onet");
    assert!(!far.request_wakeup_again(), "there is something now");
    assert_eq!(read_some(&far, 4), b"wo");
    // No bell was requested.
    assert!(would_block(far.read(&mut [0])));
    near.write(b"three").unwrap();
    assert!(!far.request_wakeup());
    assert_eq!(read_some(&far, 10), b"three");
    assert!(far.request_wakeup_again());
    assert!(!readable());
    let _room = near.space_fd();
    drop(near);
    assert!(readable());
    assert!(!far.request_wakeup(), "the end is something to read");
}

#[test]
fn several_buffers_are_filled_in_turn() {
    let (near, far) = switched_pair();
    near.writev(&[IoSlice::new(b""), IoSlice::new(b"abc"), IoSlice::new(b"defg")]).unwrap();
    let (mut none, mut first, mut second) = ([], [0; 2], [0; 9]);
    let mut buffers = [&mut none[..], &mut first, &mut second].map(IoSliceMut::new);
    assert_eq!(far.readv(&mut buffers).unwrap(), 7);
    assert_eq!((&first, &second[..5]), (b"ab", &b"cdefg"[..]));
}

/// A correct peer rings once per request.
#[test]
fn a_peer_that_rings_without_being_asked_to_is_at_its_end() {
    let (near, far) = switched_pair();
    near.write(b"memory").unwrap();
    send_past_memory(&near, &[0; MOST_BELLS]);
    assert_eq!(read_some(&far, 10), b"memory");
    assert!(!far.request_wakeup());
    assert_eq!(far.read(&mut [0; 10]).unwrap(), 0);
}

fn send_past_memory(stream: &Stream, bytes: &[u8]) {
    let sent = crate::net::transfer::send(stream.as_fd(), &Sources::one(bytes));
    assert_eq!(sent.unwrap(), bytes.len());
}

// ---- descriptors that are not taken

/// Before the handshake, the descriptors of a peer are not answered, rung or mapped.
#[test]
fn descriptors_of_a_peer_that_is_not_known_are_not_looked_at() {
    for memory in [None, Some(Region::create().unwrap().1)] {
        let (near, far) = UnixStream::pair().unwrap();
        let near = Stream::from_fd(near.into()).unwrap();
        near.prepare_sharing();
        crate::net::rights::allow(near.as_fd());
        let (mut mine, yours) = UnixStream::pair().unwrap();
        let rights: Vec<_> = memory.iter().map(AsFd::as_fd).chain([yours.as_fd()]).collect();
        assert_eq!(send_with_rights(far.as_fd(), &Sources::one(&[5]), &rights).unwrap(), 1);
        drop(yours);
        assert_eq!(read_some(&near, 10), [5]);
        assert_eq!(io::Read::read(&mut mine, &mut [0]).unwrap(), 0, "it is closed");
    }
}

/// A peer that is not asked may not offer further descriptors.
#[cfg(linux_kernel)]
#[test]
fn once_there_is_memory_descriptors_are_refused() {
    let (near, far) = switched_pair();
    let sent = send_with_rights(near.as_fd(), &Sources::one(&[0]), &[far.as_fd()]);
    assert!(sent.is_err() || !crate::net::rights::are_refused());
}

/// The receiving end has space for fewer descriptors than an offer has. The partial offer is
/// closed, and the stream continues.
#[test]
fn an_offer_that_arrives_in_part_is_none() {
    watched("part of an offer", || {
        let (far, near) = with_plain_end();
        let (_region, memory) = Region::create().unwrap();
        let three = [memory.as_fd(), near.as_fd(), near.as_fd()];
        // Exceeds the buffer, which has the same effect as reaching the process's limit: the kernel
        // cuts the list.
        send_rights(&near, b"hello", &three);
        assert_eq!(read_some(&far, 10), b"hello");
        assert!(!far.reads_from_memory());
        drop(near);
        assert!(read_some(&far, 10).is_empty(), "no descriptor of the other end was kept");
    });
}

/// Sends any number of descriptors along.
fn send_rights(stream: &UnixStream, bytes: &[u8], rights: &[std::os::fd::BorrowedFd<'_>]) {
    let mut control = [0_u64; 16];
    let mut iov = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let length = size_of_val(rights) as u32;
    // SAFETY: a struct of integers and pointers, with space for a header and the descriptors behind
    // `msg_control`.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&mut iov, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(length) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        ((*header).cmsg_level, (*header).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        (*header).cmsg_len = libc::CMSG_LEN(length) as _;
        let data = libc::CMSG_DATA(header).cast::<i32>();
        rights.iter().enumerate().for_each(|(i, fd)| data.add(i).write_unaligned(fd.as_raw_fd()));
        assert_eq!(libc::sendmsg(stream.as_raw_fd(), &message, 0), bytes.len() as isize);
    }
}

// ---- a peer that means harm

fn memory(size: usize, seals: libc::c_int) -> OwnedFd {
    let fd = memfd::create_empty(0).unwrap();
    // SAFETY: the descriptor is open; the calls take integers.
    unsafe {
        assert_eq!(libc::ftruncate(fd.as_raw_fd(), size as libc::off_t), 0);
        assert_eq!(libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals), 0);
    }
    fd
}

#[test]
fn only_memory_of_the_known_size_is_mapped() {
    let (_region, good) = Region::create().unwrap();
    assert!(Region::accept(&PeerFd::from(good)).is_ok());
    let (size, seals) = (HEADER + CAPACITY, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW);
    let bad = [
        ("may shrink", memory(size, libc::F_SEAL_GROW)),
        ("may grow", memory(size, libc::F_SEAL_SHRINK)),
        ("too small", memory(size - 1, seals)),
        ("too large", memory(size + 1, seals)),
        ("empty", memory(0, seals)),
        ("does not say what it is", memory(size, seals)),
        ("a file", File::open("/proc/self/exe").unwrap().into()),
        ("a socket", UnixStream::pair().unwrap().0.into()),
    ];
    for (what, fd) in bad {
        assert!(Region::accept(&PeerFd::from(fd)).is_err(), "{what}");
    }
}

/// Returns a region mapped at both ends.
pub(super) fn ring() -> (RegionWriter, RegionReader, Region) {
    let (region, fd) = Region::create().unwrap();
    let fd = PeerFd::from(fd);
    let twice = || Region::accept(&fd).unwrap();
    (RegionWriter::new(twice()), RegionReader::new(twice(), true), region)
}

#[test]
fn positions_that_cannot_be_are_an_error() {
    let (mut producer, mut consumer, region) = ring();
    let mut bytes = [1; 100];
    let capacity = CAPACITY as u64;
    let (bell, _other) = UnixStream::pair().unwrap();
    let bell = Arc::new(PeerFd::from(OwnedFd::from(bell)));
    let mut take =
        |consumer: &mut RegionReader| consumer.take(&Targets::one(uninit(&mut bytes)), &bell, false);
    for tail in [capacity + 1, u64::MAX, u64::MAX - 50] {
        region.header().tail.0.store(tail, SeqCst);
        assert_eq!(take(&mut consumer).unwrap_err().raw_os_error(), Some(libc::EPROTO), "{tail}");
    }
    region.header().tail.0.store(capacity, SeqCst);
    assert_eq!(take(&mut consumer).unwrap(), 100, "whatever is there");
    let put = |producer: &mut RegionWriter| producer.put(&Sources::one(&[2; 5000]), None, || true);
    while put(&mut producer).unwrap() > 0 {}
    for head in [capacity + 101, u64::MAX] {
        region.header().head.0.store(head, SeqCst);
        assert_eq!(put(&mut producer).unwrap_err().raw_os_error(), Some(libc::EPROTO), "{head}");
    }
}

/// With any position of the switch and any number of bells, the reader gets bytes or an error, and
/// does not hang.
#[test]
fn hostile_region_content_is_harmless() {
    watched("lies", || {
        for switch_at in [0, 1, 6, 7, 1000, u64::MAX] {
            let (far, near) = with_plain_end();
            let (region, memory) = Region::create().unwrap();
            let (_mine, yours) = UnixStream::pair().unwrap();
            let sent =
                send_with_rights(near.as_fd(), &Sources::one(b"hello"), &[memory.as_fd(), yours.as_fd()]);
            assert_eq!(sent.unwrap(), 5);
            region.header().switch_at.0.store(switch_at, SeqCst);
            region.header().switched.store(1, SeqCst);
            region.header().tail.0.store(10, SeqCst);
            (&near).write_all(&[0; 300]).unwrap();
            drop(near);
            let (mut total, mut buffer) = (0, [0; 64]);
            while let n @ 1.. = read_waiting(&far, &mut buffer) {
                total += n;
            }
            assert!(total <= 316, "{total}");
        }
    });
}

#[test]
fn descriptors_that_are_no_offer_are_closed() {
    let null: OwnedFd = File::open("/dev/null").unwrap().into();
    for company in [None, Some(null)] {
        let (far, near) = with_plain_end();
        // The only writing end of the pipe travels to the peer, so the reading end shows when it is
        // closed.
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors, both ours alone.
        let (reading, writing) = unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
        };
        let rights: Vec<_> = company.iter().map(AsFd::as_fd).chain([writing.as_fd()]).collect();
        assert_eq!(send_with_rights(near.as_fd(), &Sources::one(&[5]), &rights).unwrap(), 1);
        drop(writing);
        assert_eq!(read_some(&far, 10), [5]);
        poll(&mut [PollFd::new(reading.as_raw_fd(), 0)], None).unwrap();
        assert!(!far.reads_from_memory());
    }
}
