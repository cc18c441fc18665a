use super::Session;
use crate::conn::intake::ReadOutcome;
use crate::conn::link::{SetKeeper, SharedStage};
use crate::conn::reader::{ReadSet, Reader};
use crate::conn::testbed::{MockIoSide, open, open_with};
use crate::conn::{Flushed, News, SocketInbox, Waker};
#[cfg(unix)]
use std::io::Write;
use std::ops::ControlFlow::{Break, Continue};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tautline_io::net::Stream;
use tautline_io::poll::{self, PollFd};
use tautline_io::reactor::Token;
use tautline_proto::{ProtocolError, command};
use tautline_queue::sync::atomic::AtomicBool;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, lock};

/// A stage that says goodbye in each message of the peer.
struct Farewell;

impl tautline_proto::Stage for Farewell {
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(plain);
    }
    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        out.extend_from_slice(wire);
        Ok(())
    }
    fn is_closed(&self) -> bool {
        true
    }
    fn buffered(&self) -> usize {
        0
    }
}

/// A lost peer may have sent messages before it went. A failed write does not end the reading of
/// these messages.
#[test]
fn failed_write_keeps_received_messages_readable() {
    let asked = Arc::<MockIoSide>::default();
    let (connection, mut writer, peer) = open(&asked, |_| ());
    let message = [&[0, 100][..], &[7; 100]].concat();
    let sent = peer.write(&message.repeat(900)).unwrap();
    assert!(sent > 80_000, "more bytes than one read takes");
    drop(peer);
    writer.append(0, b"nobody takes this").unwrap();
    writer.publish();
    assert!(matches!(connection.try_flush(), Some(Flushed::Lost(_))));
    assert_eq!(connection.try_flush(), Some(Flushed::NoLink), "a lost stream is not written again");
    assert_eq!((asked.unwritable.load(Relaxed), asked.lost.load(Relaxed)), (1, 0));
    assert!(connection.writable_stream().is_none());
    let mut reads = 0;
    while connection.read(Reader::Any).is_continue() {
        reads += 1;
    }
    assert!(reads > 1);
    assert_eq!(asked.lost.load(Relaxed), 1, "the end comes after all bytes");
    let (stream, peer) = Stream::pair().unwrap();
    connection.close();
    let (stream, registration) = (Arc::new(stream), Token(0));
    let session = Session { stream, registration, stage: None, inbound: Vec::new(), leftover: Vec::new() };
    connection.open(1, session, Some(News::Terminated));
    assert_eq!(connection.try_flush(), Some(Flushed::Drained), "unsent messages go to the next session");
    assert_eq!(peer.read(&mut [0; 100]).unwrap(), 19);
}

/// A message that came with the last read of a session can be received. Its receiver, which may
/// sleep, is notified.
#[test]
fn last_message_before_close_is_announced() {
    let goodbye: SharedStage = Arc::new(tautline_queue::sync::Mutex::new(Box::new(Farewell)));
    // The stream continues with an invalid frame, or the stage ends the stream.
    for (stage, last_words) in [(None, &b"\x00\x02hi\xff\x00"[..]), (Some(goodbye), b"\x00\x02hi")] {
        let (connection, _writer, peer) = open_with(&Arc::default(), stage, |_| ());
        connection.set_token(7);
        connection.acknowledge_readable();
        drop(connection.inbox.drain());
        peer.write(last_words).unwrap();
        assert!(connection.read(Reader::Any).is_break());
        let news: Vec<_> = connection.inbox.drain().into_iter().collect();
        assert!(matches!(news[..], [News::Readable(7)]), "{} news", news.len());
    }
}

#[test]
fn a_report_of_room_is_not_lost_while_another_thread_writes() {
    let asked = Arc::new(MockIoSide::default());
    let (connection, mut writer, _peer) = open(&asked, |_| ());

    // More bytes than the kernel takes: write interest is armed, and room will be reported once.
    writer.append(0, &vec![0; 16 << 20]).unwrap();
    writer.publish();
    assert_eq!(connection.pump_now(), Some(Flushed::Blocked));
    assert_eq!((asked.write.load(Relaxed), asked.residual.load(Relaxed)), (1, 0));

    // The report comes while the owner writes. The owner finds the kernel full again and relies on
    // the report.
    let writing = lock(&connection.pump);
    assert_eq!(connection.pump_writable(), None);
    drop(writing);
    assert_eq!((asked.write.load(Relaxed), asked.residual.load(Relaxed)), (1, 1));
}

/// An owner that looks for room writes, and arms no write interest when the kernel is full. If the
/// I/O thread meets such an owner and no further event will come, it handles the remaining bytes.
#[test]
fn residual_takes_over_if_another_thread_writes() {
    let asked = Arc::<MockIoSide>::default();
    let (connection, mut writer, _peer) = open(&asked, |_| ());
    writer.append(0, b"it has slipped").unwrap();
    writer.publish();
    let owner = lock(&connection.pump);
    connection.pump_writable();
    assert_eq!(asked.residual.load(Relaxed), 1);
    drop(owner);
    connection.pump_writable();
    assert!(!connection.has_pending());
    assert_eq!((asked.residual.load(Relaxed), asked.write.load(Relaxed)), (1, 0));
}

/// A peer that sends PINGs and does not read gets the answers to its newest PINGs once it reads.
#[test]
fn pongs_that_are_not_read_do_not_pile_up() {
    let (connection, mut writer, peer) = open(&Arc::default(), |_| ());
    writer.append(0, &vec![0; 16 << 20]).unwrap();
    writer.publish();
    assert_eq!(connection.pump_now(), Some(Flushed::Blocked));
    let ping = |number: u32| {
        let mut frame = Vec::new();
        command::put_ping(&mut frame, 0, &number.to_be_bytes());
        frame
    };
    let mut most = 0;
    for number in 0..100_u32 {
        peer.write(&ping(number).repeat(1000)).unwrap();
        while let Continue(ReadOutcome::Bytes { .. }) = connection.read(Reader::Any) {
            most =
                most.max(lock(&connection.control.frames).as_ref().map_or(0, |control| control.pongs.len()));
        }
    }
    assert!((1..=64 * 1024).contains(&most), "{most} bytes");
    // At most one of our own PINGs waits.
    for number in 0..100_u32 {
        connection.send_control(|control| control.ping = ping(number));
    }
    assert_eq!(lock(&connection.control.frames).as_ref().unwrap().ping, ping(99));
}

#[test]
fn no_read_or_write_is_larger_than_the_program_wants() {
    let asked = Arc::new(MockIoSide::default());
    let (connection, mut writer, peer) = open(&asked, |options| {
        options.out_batch_size = Some(1000);
        options.in_batch_size = Some(100);
    });
    let before = lock(&connection.pump).taken.writes;
    for body in [[1; 1200], [2; 1200], [3; 1200]] {
        writer.append(0, &body).unwrap();
    }
    writer.publish();
    assert_eq!(connection.pump_now(), Some(Flushed::Drained));
    // Three frames with headers of 9 bytes.
    assert_eq!(lock(&connection.pump).taken.writes.wrapping_sub(before), 4);

    assert_eq!(peer.write(&[&[0, 248][..], &[7; 248]].concat()).unwrap(), 250);
    let mut intake = lock(&connection.intake);
    let mut found = Default::default();
    assert_eq!(intake.read(&mut found), ReadOutcome::Bytes { published: false });
    assert_eq!(intake.read(&mut found), ReadOutcome::Bytes { published: false });
    assert_eq!(intake.read(&mut found), ReadOutcome::Bytes { published: true });
    assert_eq!(intake.read(&mut found), ReadOutcome::Nothing);
}

#[test]
fn any_writing_thread_notifies_owner_of_room() {
    let asked = Arc::new(MockIoSide::default());
    let (connection, mut writer, _peer) = open(&asked, |_| ());
    connection.inbox.expose();
    let told = || {
        let mut fds = [PollFd::new(connection.inbox.waker().number().unwrap(), PollFd::IN)];
        let told = poll::poll(&mut fds, Some(Duration::ZERO)).unwrap() == 1;
        connection.inbox.waker().clear();
        told
    };
    writer.append(0, b"somebody else writes this").unwrap();
    writer.publish();
    assert_eq!(connection.pump_now(), Some(Flushed::Drained));
    assert!(!told(), "the owner has not asked for room");
    connection.request_room();
    writer.append(0, b"and this").unwrap();
    writer.publish();
    assert_eq!(connection.pump_now(), Some(Flushed::Drained));
    assert!(told());
    assert_eq!(connection.pump_now(), Some(Flushed::Drained));
    assert!(!told(), "once");
}

#[test]
fn residual_retries_if_write_interest_fails() {
    let asked = Arc::<MockIoSide>::default();
    let (connection, mut writer, _peer) = open(&asked, |_| ());
    for refuses in [false, true] {
        asked.refuses.store(refuses, Relaxed);
        // More than the buffers of a socket hold.
        writer.append(0, &vec![0; 16 << 20]).unwrap();
        writer.publish();
        let watched = asked.residual.load(Relaxed);
        assert_eq!(connection.pump_now(), (!refuses).then_some(Flushed::Blocked));
        assert_eq!(asked.residual.load(Relaxed) - watched, u32::from(refuses));
    }
}

/// A keeper of a set to which only the test listens.
#[derive(Default)]
struct Alone(AtomicBool);

impl SetKeeper for Alone {
    fn arm(&self, _: &ReadSet) {}
    fn disarm(&self, _: &ReadSet) {}
    fn start_tick(&self) {}
    fn join_tick(&self, _: Arc<ReadSet>) {}
    fn tick_on(&self) -> &AtomicBool {
        &self.0
    }
}

/// At the high-water mark the set reports a connection at most once more. A thread that waits for
/// the set must not be woken again and again.
#[test]
fn connection_at_hwm_is_silent_until_resumed() {
    let asked = Arc::<MockIoSide>::default();
    let (connection, _writer, peer) = open(&asked, |options| options.receive_hwm = 1);
    let set = set_of(&[&connection]);
    let message = [0, 1, 7];
    for _ in 0..2 {
        peer.write(&message.repeat(4)).unwrap();
        assert!(is_heard(&set));
        set.read_ready();
        assert!(connection.is_paused());
        peer.write(&message).unwrap();
        assert!(!set.read_ready(), "reading stops at the mark");
        assert!(!is_heard(&set));
        lock(&connection.intake).set_limit(0);
        set.resume(&connection);
        assert!(!connection.is_paused());
        lock(&connection.intake).set_limit(1);
    }
}

#[test]
fn peer_close_at_hwm_does_not_wake_forever() {
    let (connection, _writer, peer) = open(&Arc::default(), |options| options.receive_hwm = 1);
    let set = set_of(&[&connection]);
    peer.write(&[0, 1, 7].repeat(4)).unwrap();
    assert!(set.read_ready());
    assert!(connection.is_paused());
    drop(peer);
    let looks = (0..10).take_while(|_| {
        set.read_ready();
        is_heard(&set)
    });
    assert!(looks.count() < 10, "a thread that waits for the set would never sleep");
    lock(&connection.intake).set_limit(0);
    set.resume(&connection);
    assert!(!connection.is_paused(), "reading continues");
}

#[test]
fn read_during_admit_finds_data_of_new_peer() {
    let (connection, _writer, peer) = open(&Arc::default(), |_| ());
    peer.write(&[0, 1, 7]).unwrap();
    let set = set_of(&[]);
    let owner = std::cell::Cell::new(None);
    let hear = || {
        let set = set.clone();
        owner.set(Some(std::thread::spawn(move || set.read_ready())));
    };
    set.admit(connection.clone(), hear).unwrap();
    assert!(owner.take().unwrap().join().unwrap());
}

/// Returns a set with these members that only the test reads.
fn set_of(connections: &[&Arc<super::Connection>]) -> Arc<ReadSet> {
    let inbox: Arc<SocketInbox> = Arc::new(SocketInbox::new(Waker::new()));
    let set = ReadSet::new(inbox, Arc::<Alone>::default()).unwrap();
    for connection in connections {
        set.admit((*connection).clone(), || {}).unwrap();
    }
    set
}

/// True if a listener to the set is notified.
fn is_heard(set: &ReadSet) -> bool {
    poll::poll(&mut [PollFd::new(set.raw_fd(), PollFd::IN)], Some(Duration::ZERO)).unwrap() > 0
}

/// Makes the owner read its only connection until the connection stands apart.
fn read_until_apart(set: &ReadSet, peer: &Stream) {
    for round in 0.. {
        assert!(round < 1000, "the connection never stands apart");
        peer.write(&[0, 1, 7]).unwrap();
        let apart = !is_heard(set);
        let mut arrived = Vec::new();
        assert!(set.read_own(&mut arrived, 1));
        assert_eq!(arrived, [0]);
        if apart {
            return;
        }
    }
}

#[test]
fn only_connection_stands_apart_until_driver_listens() {
    let asked = Arc::<MockIoSide>::default();
    let (connection, _writer, peer) = open(&asked, |options| options.receive_hwm = 0);
    connection.set_token(0);
    let set = set_of(&[&connection]);
    let (other, ..) = open(&asked, |_| ());
    let hand_over = || set.hand_over();
    let add_another = || set.admit(other.clone(), || {}).unwrap();
    for listen in [&hand_over as &dyn Fn(), &add_another] {
        set.acquire();
        read_until_apart(&set, &peer);
        peer.write(&[0, 1, 7]).unwrap();
        assert!(!is_heard(&set));
        listen();
        assert!(is_heard(&set), "the set also reports earlier bytes");
        assert!(set.read_ready());
    }
}

#[test]
fn a_set_that_a_caller_watches_keeps_its_only_connection() {
    let asked = Arc::<MockIoSide>::default();
    let (connection, _writer, peer) = open(&asked, |options| options.receive_hwm = 0);
    connection.set_token(0);
    let set = set_of(&[&connection]);
    set.acquire();
    read_until_apart(&set, &peer);
    set.watched_fd();
    for _ in 0..1000 {
        peer.write(&[0, 1, 7]).unwrap();
        assert!(is_heard(&set));
        assert!(set.read_own(&mut Vec::new(), 1));
    }
}

/// Bytes in shared memory are read without a look at the socket. Only the socket tells that the
/// peer has ended.
#[test]
#[cfg(unix)]
fn peer_close_is_found_after_shared_memory_is_read() {
    if !tautline_io::net::SHARES_MEMORY {
        return;
    }
    // A few reads, or as many as it takes until the connection stands apart. Also a bell that rings
    // late, after all bytes were read.
    for (rounds, is_late) in [(0, false), (200, false), (0, true), (200, true)] {
        let (connection, _writer, peer) = open(&Arc::default(), |options| options.receive_hwm = 0);
        connection.set_token(0);
        let stream = lock(&connection.intake).stream().cloned().unwrap();
        stream.prepare_sharing();
        stream.begin_sharing(false);
        peer.prepare_sharing();
        peer.begin_sharing(false);
        let set = set_of(&[&connection]);
        set.acquire();
        let talk = || {
            peer.write(&[0, 1, 7]).unwrap();
            while !set.read_own(&mut Vec::new(), 1) {}
        };
        while !stream.reads_from_memory() {
            talk();
        }
        (0..rounds).for_each(|_| talk());
        peer.write(&[0, 1, 7]).unwrap();
        if is_late {
            while !set.read_own(&mut Vec::new(), 1) {}
            while set.read_own(&mut Vec::new(), 1) {}
            let mut bell = UnixStream::from(peer.as_fd().try_clone_to_owned().unwrap());
            bell.write_all(&[0]).unwrap();
        }
        drop(peer);
        let reads: Vec<_> = (0..10).map(|_| set.read_one(&connection)).collect();
        let end = reads.iter().position(|read| *read != Continue(true));
        assert_eq!(end.map(|end| reads[end]), Some(Break(())), "{rounds} {reads:?}");
    }
}

/// The set reports bytes in shared memory even while the socket's buffer is full, because the peer
/// does not read.
#[test]
fn shared_memory_data_is_reported_if_socket_is_full() {
    if !tautline_io::net::SHARES_MEMORY {
        return;
    }
    let (connection, _writer, peer) = open(&Arc::default(), |options| options.in_batch_size = Some(3));
    connection.set_token(0);
    let stream = lock(&connection.intake).stream().cloned().unwrap();
    stream.prepare_sharing();
    stream.begin_sharing(false);
    peer.prepare_sharing();
    peer.begin_sharing(false);
    let (other, ..) = open(&Arc::default(), |_| ());
    let set = set_of(&[&connection, &other]);
    set.acquire();
    while !stream.reads_from_memory() {
        peer.write(&[0, 1, 7]).unwrap();
        while !set.read_own(&mut Vec::new(), 1) {}
    }
    while set.read_own(&mut Vec::new(), 1) {}
    while stream.write(&[0; 4096]).is_ok() {}
    peer.write(&[0, 1, 7].repeat(3)).unwrap();
    for left in (0..3).rev() {
        assert!(is_heard(&set), "{left} messages are left");
        assert!(set.read_own(&mut Vec::new(), 1));
    }
    while is_heard(&set) {
        assert!(!set.read_own(&mut Vec::new(), 1), "a late bell brings no bytes");
    }
    peer.write(&[0, 1, 7]).unwrap();
    assert!(is_heard(&set), "the set listens again");
}

#[test]
fn owner_reads_are_returned_not_announced() {
    let asked = Arc::<MockIoSide>::default();
    let (connections, peers): (Vec<_>, Vec<_>) = (0..2)
        .map(|token| {
            let (connection, _writer, peer) = open(&asked, |_| ());
            connection.set_token(token);
            drop(connection.inbox.drain());
            connection.acknowledge_readable();
            (connection, peer)
        })
        .unzip();
    let set = set_of(&connections.iter().collect::<Vec<_>>());
    let mut arrived = Vec::new();
    assert!(!set.read_own(&mut arrived, 3), "the connections have no bytes on any try");
    peers[1].write(&[0, 1, 7]).unwrap();
    assert!(set.read_own(&mut arrived, 3));
    assert_eq!(arrived, [1]);
    peers[0].write(&[1, 1]).unwrap();
    assert!(!set.read_own(&mut arrived, 3), "the message is incomplete");
    assert_eq!(arrived, [1]);
    assert!(connections.iter().all(|connection| !connection.inbox.has_pending()));
    peers[0].write(&[7, 0, 0]).unwrap();
    assert!(set.read_ready());
    assert!(connections[0].inbox.has_pending(), "a read by another thread is announced");
}
