//! Observation of a process: a counters file, and copies of messages on request.

use std::io::{Cursor, Read as _, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tautline_core::{Error, SocketType};
use tautline_observe::tap::{Direction, Frame, Request};
use tautline_observe::{ReadError, Reading};

use super::patterns::QUIET;
use super::peer::{HEARTBEAT_IVL, LINGER, Peer};
use super::traffic::MessageProfile;
use super::{Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

const FILE: &str = "/sim/run/tautline/4242";
const TAP: &str = "/sim/run/tautline/4242.tap";

/// A pipeline in observed contexts, a tool that reads the counters, and tools that request copies.
/// The counters grow, and finally equal the number of sent messages.
pub(super) fn shown(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let (kind, lossy, ledger) = (stage.kind, stage.lossy, stage.ledger());
    let hub = if stage.transport == "inproc" { stage.contexts[0].clone() } else { tautline_host::context() };
    let mut is_shown = false;
    for context in stage.contexts.iter().chain([&hub]) {
        match context.observe() {
            Ok(()) => is_shown = true,
            // The file system has no room for the file.
            Err(error) => assert_eq!(error, Error::Os(libc::ENOSPC)),
        }
        // A second call has no effect.
        let _ = context.observe();
    }
    let count = kind.count(rng, 200);
    let mut pull = Peer::new(&hub, SocketType::Pull, fork(rng));
    // No PINGs: two ends that are closed may wait for each other to read them.
    pull.set(HEARTBEAT_IVL, 0);
    pull.bind_or_connect(&endpoint, true);
    if lossy {
        pull.set_receive_timeout(QUIET);
    }
    let ends = Arc::new(AtomicBool::new(false));
    let mut tools = Vec::new();
    for _ in 0..rng.between(0, 3) {
        let (mut rng, ends) = (fork(rng), ends.clone());
        tools.push(spawn("tap", move || tap(kind, &mut rng, &ends)));
    }
    let (mut reader_rng, over) = (fork(rng), ends.clone());
    tools.push(spawn("reader", move || check_counters(&mut reader_rng, &over)));
    let (context, sender_rng, at) = (stage.context(rng), fork(rng), endpoint.clone());
    let done = Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    let sender = spawn("push", move || {
        let mut push = Peer::new(&context, SocketType::Push, sender_rng);
        push.set(HEARTBEAT_IVL, 0);
        push.bind_or_connect(&at, false);
        // Tools connect while messages flow.
        let pauses = push.rng.chance(2);
        for number in 0..count {
            if pauses && push.rng.chance(u64::from(count / 8 + 1)) {
                std::thread::sleep(Duration::from_micros(push.rng.spread(10, 3_000_000)));
            }
            push.send(&kind.message(0, number)).unwrap_or_else(|error| panic!("{error}"));
        }
        if lossy {
            push.set(LINGER, 20_000);
        }
        while !lossy && !is_done.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    let mut heard = 0;
    while heard < count {
        match pull.recv() {
            Ok(parts) => {
                ledger.record(0, &parts);
                heard += 1;
            }
            Err(Error::Again) if lossy => break,
            Err(error) => panic!("{error}"),
        }
    }
    // The file system has room from now on, so the counters must appear. The observing thread may
    // stall for a while.
    world::with(|world| world.kernel.faults.no_memory = 0);
    let mut seconds = 0;
    while is_shown && !lossy && !counts_all(u64::from(count)) {
        seconds += 1;
        assert!(seconds < 60, "{count} messages are not shown");
        std::thread::sleep(Duration::from_secs(1));
    }
    done.store(true, SeqCst);
    join(vec![sender]);
    ledger.check_complete(&[(0, count)]);
    ends.store(true, SeqCst);
    join(tools);
    drop(pull);
    stage.contexts.push(hub);
    for context in std::mem::take(&mut stage.contexts) {
        while let Err(error) = context.terminate() {
            assert_eq!(error, Error::Interrupted, "terminate");
        }
    }
    assert!(!Path::new(FILE).exists() && !Path::new(TAP).exists(), "files are left");
}

/// True if all messages are counted. A context without room for its file is not shown.
fn counts_all(count: u64) -> bool {
    let Some(reading) = read() else { return false };
    let shown = |name: &str, counts: (u64, u64)| {
        let mut all = reading.sockets.iter().filter(|socket| socket.type_name == name);
        all.all(|socket| (socket.messages_in, socket.messages_out) == counts)
    };
    shown("PULL", (count, 0)) && shown("PUSH", (0, count))
}

/// Returns the counters, or `None` if the file is missing or constantly rewritten.
fn read() -> Option<Reading> {
    match tautline_observe::read(Path::new(FILE)) {
        Ok(reading) => Some(reading),
        Err(ReadError::Missing | ReadError::Busy) => None,
        // The file is incomplete before its first snapshot.
        Err(ReadError::Incomplete) => None,
        Err(fault) => panic!("{fault}"),
    }
}

/// Reads now and then, and checks that counters never decrease.
fn check_counters(rng: &mut Rng, ends: &AtomicBool) {
    let mut before = Reading::default();
    while !ends.load(SeqCst) {
        std::thread::sleep(Duration::from_micros(rng.spread(1_000, 3_000_000)));
        let Some(reading) = read() else { continue };
        for socket in &reading.sockets {
            let Some(earlier) = before.socket(socket.id) else { continue };
            let numbers = [
                (earlier.messages_in, socket.messages_in),
                (earlier.messages_out, socket.messages_out),
                (earlier.bytes_in, socket.bytes_in),
                (earlier.bytes_out, socket.bytes_out),
            ];
            assert!(numbers.iter().all(|(earlier, now)| earlier <= now), "{earlier:?}, and then {socket:?}");
            assert_eq!((earlier.since, earlier.context), (socket.since, socket.context));
        }
        let sockets = reading.sockets.len();
        assert!(
            reading.peers.iter().all(|peer| reading.socket(peer.socket).is_some()),
            "of {sockets} sockets"
        );
        before = reading;
    }
}

/// Requests copies, or sends an invalid request. Each copy must be of a sent message.
fn tap(kind: MessageProfile, rng: &mut Rng, ends: &AtomicBool) {
    std::thread::sleep(Duration::from_micros(rng.spread(1, 500_000)));
    let Ok(mut stream) = UnixStream::connect(TAP) else { return };
    stream.set_nonblocking(true).unwrap();
    let mut request = Request::default();
    if rng.chance(2) {
        request.direction = Some(*rng.pick(&[Direction::In, Direction::Out]));
        (request.every, request.bytes) = (rng.between(0, 3), rng.between(0, 50));
    }
    let makes_sense = !rng.chance(4);
    let text = match makes_sense {
        true => request.to_text(),
        false => (*rng.pick(&["TAP 1\nwhat=7\n\n", "", "TAP 1\n", "\n\n"])).to_owned(),
    };
    let mut left = text.as_bytes();
    let mut heard = Vec::new();
    let stays = rng.chance(2);
    loop {
        let events = if left.is_empty() { libc::POLLIN } else { libc::POLLIN | libc::POLLOUT };
        let mut fds = [libc::pollfd { fd: stream.as_raw_fd(), events, revents: 0 }];
        // SAFETY: an array of one.
        unsafe { libc::poll(fds.as_mut_ptr(), 1, 500) };
        if let Ok(n) = stream.write(left) {
            left = &left[n..];
        }
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(n) => heard.extend_from_slice(&bytes[..n]),
            Err(_) if fds[0].revents & (libc::POLLERR | libc::POLLHUP) != 0 => break,
            Err(_) => {}
        }
        if ends.load(SeqCst) || !stays && rng.chance(20) {
            break;
        }
        world::progress();
    }
    drop(stream);
    if !makes_sense {
        assert!(heard.is_empty() || heard.starts_with(b"ERROR "), "an answer to nonsense");
        return;
    }
    let Some(frames) = heard.strip_prefix(b"OK\n") else { return assert!(heard.len() < 3, "another answer") };
    let mut frames = Cursor::new(frames);
    while let Some(frame) = Frame::read(&mut frames).unwrap() {
        let Frame::Copy(copy) = frame else { continue };
        let Some(head) = copy.parts[0].bytes.first_chunk::<8>() else { continue };
        let [sender, number] = [0, 4].map(|at| u32::from_be_bytes(*head[at..].first_chunk().expect("four")));
        let sent = kind.message(sender, number);
        let is_same = copy.parts.len() == sent.len()
            && copy
                .parts
                .iter()
                .zip(&sent)
                .all(|(copy, sent)| copy.length == sent.len() as u64 && sent.starts_with(&copy.bytes));
        assert!(is_same, "the copy of message {number} of {sender} is of another");
        assert!(request.direction.is_none_or(|direction| direction == copy.direction));
    }
}
