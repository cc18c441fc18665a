//! A socket, and how its program uses it: blocking, without waiting, or with `poll`.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use tautline_core::poller::{self, Item, POLLIN, POLLOUT, PollTarget};
use tautline_core::{Context, Error, Flags, Message, Socket, SocketType, WaitMode, WaitState, WaitStep};

use super::event_checks;
use super::traffic::Parts;
use crate::rng::Rng;
use crate::world;

pub(super) const LINGER: i32 = 17;
pub(super) const SNDHWM: i32 = 23;
pub(super) const RCVHWM: i32 = 24;
pub(super) const RCVTIMEO: i32 = 27;
pub(super) const SNDTIMEO: i32 = 28;
pub(super) const SUBSCRIBE: i32 = 6;
pub(super) const UNSUBSCRIBE: i32 = 7;
pub(super) const CONFLATE: i32 = 54;
pub(super) const MANDATORY: i32 = 33;
pub(super) const IMMEDIATE: i32 = 39;
pub(super) const ROUTING_ID: i32 = 5;
pub(super) const HEARTBEAT_IVL: i32 = 75;
const HEARTBEAT_TTL: i32 = 76;
pub(super) const HEARTBEAT_TIMEOUT: i32 = 77;
const STATISTICS: i32 = 0x5441_0001;
pub(super) const IN_BATCH_SIZE: i32 = 101;
const OUT_BATCH_SIZE: i32 = 102;
const ZMQ_FD: i32 = 14;
const ZMQ_EVENTS: i32 = 15;

/// Method by which a program waits for a socket.
#[derive(Debug, Clone, Copy)]
enum WaitMethod {
    /// With the poll of the library.
    Poll,
    /// With the poll of the system, for ZMQ_FD.
    Descriptor,
    /// With `poll_ready`, as an async task.
    Task,
}

/// Wakes a thread that runs a task.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(super) struct Peer {
    pub(super) socket: Socket,
    pub(super) rng: Rng,
    /// Of this many calls, one does not wait.
    polls: u64,
    waits: WaitMethod,
    /// True if the peer waits for messages without a limit.
    patient: bool,
    /// Limit of the wait, if not patient.
    patience: Duration,
    /// Events of the last poll, which the next call must find.
    promised: i16,
    /// Of this many waits for ZMQ_FD, one is shared with another task, which polls. 0 for none.
    tasks: u64,
    /// Of this many calls, one follows a pause; and the longest pause in microseconds.
    pauses: (u64, u64),
}

impl Peer {
    /// Creates a socket with high-water marks and habits from `rng`.
    pub(super) fn new(context: &Context, kind: SocketType, rng: Rng) -> Self {
        Peer::try_new(context, kind, rng).expect("a context that has not ended")
    }

    /// Creates a socket as `new` does, or returns `None` if the context has ended.
    pub(super) fn try_new(context: &Context, kind: SocketType, rng: Rng) -> Option<Self> {
        let mut rng = rng;
        let mut socket = match context.socket(kind) {
            Err(Error::Terminated) => return None,
            outcome => outcome.unwrap(),
        };
        if rng.chance(2) {
            socket.observe(event_checks::observer());
        }
        let mut set = |option, value: i32| match socket.set_option(option, &value.to_ne_bytes()) {
            Ok(()) | Err(Error::Terminated) => {}
            Err(error) => panic!("option {option}: {error}"),
        };
        for option in [SNDHWM, RCVHWM] {
            set(option, *rng.pick(&[1, 2, 3, 10, 1000, 0]));
        }
        if rng.chance(4) {
            // PINGs, with long but finite timeouts.
            set(HEARTBEAT_IVL, rng.spread(1, 200) as i32);
            set(HEARTBEAT_TIMEOUT, *rng.pick(&[400_000, 1_000_000]));
            set(HEARTBEAT_TTL, *rng.pick(&[0, 0, 400_000]));
        }
        for option in [IN_BATCH_SIZE, OUT_BATCH_SIZE] {
            if rng.chance(12) {
                set(option, rng.spread(30, 10_000) as i32);
            }
        }
        set(LINGER, -1);
        let polls = *rng.pick(&[0, 1, 2, 10]);
        let pauses = (*rng.pick(&[0, 0, 0, 5, 50]), rng.spread(1, 30_000));
        let waits = *rng.pick(&[WaitMethod::Poll, WaitMethod::Descriptor, WaitMethod::Task]);
        Some(Peer {
            socket,
            rng,
            polls,
            waits,
            patient: true,
            patience: Duration::ZERO,
            promised: 0,
            tasks: 0,
            pauses,
        })
    }

    pub(super) fn set(&mut self, option: i32, value: i32) {
        trace(|| format!("option {option} = {value}"));
        self.set_bytes(option, &value.to_ne_bytes());
    }

    /// If the context has ended, the next call that acts reports it.
    pub(super) fn set_bytes(&mut self, option: i32, value: &[u8]) {
        match self.socket.set_option(option, value) {
            Ok(()) | Err(Error::Terminated) => {}
            Err(error) => panic!("option {option}: {error}"),
        }
    }

    /// Binds if `binds` is true, otherwise connects.
    pub(super) fn bind_or_connect(&mut self, endpoint: &str, binds: bool) {
        let mut endpoint = endpoint.to_owned();
        if !binds && self.rng.chance(4) {
            endpoint = endpoint.replace("tcp://127.0.0.1", "tcp://this.sim");
        }
        if binds && self.rng.chance(8) {
            let other = *self.rng.pick(&["tcp://lo", "tcp://*", "tcp://0.0.0.0"]);
            endpoint = endpoint.replace("tcp://127.0.0.1", other);
        }
        trace(|| format!("{} {endpoint}", if binds { "bind" } else { "connect" }));
        let outcome = if binds { self.socket.bind(&endpoint) } else { self.socket.connect(&endpoint) };
        match outcome {
            // The next call reports `Terminated` as well.
            Ok(()) | Err(Error::Terminated) => {}
            Err(error) => panic!("{endpoint}: {error}"),
        }
    }

    /// Returns one of the numbers of ZMQ_TAUTLINE_STATISTICS.
    pub(super) fn statistic(&mut self, place: usize) -> u64 {
        let mut numbers = [0; 13 * 8];
        self.socket.option(STATISTICS, &mut numbers).unwrap();
        u64::from_ne_bytes(*numbers[8 * place..].first_chunk().expect("a number"))
    }

    /// Limits PINGs to one a second, for workloads with waits of minutes or many peers.
    pub(super) fn limit_pings(&mut self) {
        let mut interval = [0; 4];
        match self.socket.option(HEARTBEAT_IVL, &mut interval) {
            Ok(_) if i32::from_ne_bytes(interval) > 0 => self.set(HEARTBEAT_IVL, 1000),
            Ok(_) | Err(Error::Terminated) => {}
            Err(error) => panic!("the interval of PINGs: {error}"),
        }
    }

    /// Makes each receive time out after some milliseconds.
    pub(super) fn set_receive_timeout(&mut self, millis: i32) {
        self.patient = false;
        self.patience = Duration::from_millis(millis as u64);
        self.set(RCVTIMEO, millis);
    }

    /// Makes all calls non-blocking, each after a poll for room or for a message.
    pub(super) fn always_poll(&mut self) {
        self.polls = 1;
    }

    /// Makes the peer an event loop with two tasks: one waits for ZMQ_FD, the other one polls.
    pub(super) fn run_two_tasks(&mut self) {
        self.waits = WaitMethod::Descriptor;
        self.polls = 1;
        self.tasks = 2;
    }

    /// Simulates other work of the program.
    pub(super) fn pause(&mut self) {
        world::progress();
        if self.rng.chance(self.pauses.0) {
            std::thread::sleep(Duration::from_micros(self.rng.spread(1, self.pauses.1)));
        }
    }

    /// Waits for one of `events`, or for a while.
    fn poll(&mut self, events: i16) -> Result<(), Error> {
        self.promised = 0;
        match self.waits {
            WaitMethod::Poll => {}
            // Thread-safe sockets have no descriptor.
            WaitMethod::Descriptor if !self.socket.is_thread_safe() => {
                return self.wait_for_descriptor(events);
            }
            WaitMethod::Descriptor => {}
            WaitMethod::Task => return self.wait_as_task(events),
        }
        let timeout = self.rng.chance(3).then(|| Duration::from_micros(self.rng.spread(1, 10_000)));
        let mut items = [Item { watched: PollTarget::Socket(&mut self.socket), events, revents: 0 }];
        let outcome = poller::poll(&mut items, timeout);
        self.promised = items[0].revents;
        match outcome {
            Ok(_) | Err(Error::Interrupted) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn wait_as_task(&mut self, events: i16) -> Result<(), Error> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut patience = WaitState::default();
        let gives_up = self.rng.chance(8);
        loop {
            match self.socket.poll_ready(events, &mut patience, WaitMode::IoThread, &waker)? {
                WaitStep::Ready => return Ok(()),
                WaitStep::CheckAgain => {}
                WaitStep::Sleeping if gives_up => {
                    std::thread::park_timeout(Duration::from_micros(self.rng.spread(1, 10_000)));
                    self.socket.stop_waiting(patience);
                    return Ok(());
                }
                WaitStep::Sleeping => std::thread::park(),
            }
        }
    }

    fn wait_for_descriptor(&mut self, events: i16) -> Result<(), Error> {
        let fd = self.number(ZMQ_FD)?;
        loop {
            let there = self.number(ZMQ_EVENTS)?;
            if there & i32::from(events) != 0 {
                self.promised = there as i16;
                return Ok(());
            }
            if self.rng.chance(self.tasks) {
                self.run_other_task()?;
            }
            let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
            // SAFETY: an array of one.
            let outcome = unsafe { libc::poll(fds.as_mut_ptr(), 1, -1) };
            assert!(outcome == 1 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR));
        }
    }

    /// Another task polls. The waiting task does not learn the result.
    fn run_other_task(&mut self) -> Result<(), Error> {
        if self.rng.chance(2) {
            self.sleep_briefly();
        }
        let events = *self.rng.pick(&[POLLIN, POLLIN, POLLOUT, POLLIN | POLLOUT]);
        let micros = if self.rng.chance(2) { 0 } else { self.rng.spread(1, 3_000) };
        let mut items = [Item { watched: PollTarget::Socket(&mut self.socket), events, revents: 0 }];
        match poller::poll(&mut items, Some(Duration::from_micros(micros))) {
            Ok(_) | Err(Error::Interrupted) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn number(&mut self, option: i32) -> Result<i32, Error> {
        let mut value = [0; 4];
        loop {
            match self.socket.option(option, &mut value) {
                Ok(_) => return Ok(i32::from_ne_bytes(value)),
                Err(Error::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends all parts.
    pub(super) fn send(&mut self, parts: &[Vec<u8>]) -> Result<(), Error> {
        let outcome = self.send_all(parts);
        world::progress();
        trace(|| format!("send {} = {outcome:?}", named(parts)));
        outcome
    }

    fn send_all(&mut self, parts: &[Vec<u8>]) -> Result<(), Error> {
        self.pause();
        if !self.rng.chance(8) {
            return self.send_parts(parts);
        }
        let cork = self.socket.cork();
        let outcome = self.send_parts(parts);
        drop(cork);
        if self.rng.chance(2) {
            self.socket.flush()
        } else {
            self.socket.end_batch()
        }
        outcome
    }

    fn send_parts(&mut self, parts: &[Vec<u8>]) -> Result<(), Error> {
        let polls = self.rng.chance(self.polls);
        for (at, part) in parts.iter().enumerate() {
            let more = if at + 1 < parts.len() { Flags::MORE.0 } else { 0 };
            loop {
                let flags = Flags(more | if polls { Flags::DONTWAIT.0 } else { 0 });
                let outcome = match self.rng.below(6) {
                    0..=2 => self.socket.send(part, flags),
                    3 => self.socket.send_message(&mut Message::from_owner(part.clone()), flags),
                    4 => self.socket.send_message(&mut Message::from_slice(part).share(), flags),
                    _ => self.socket.send_message(&mut Message::from_vec(part.clone()), flags),
                };
                match outcome {
                    Ok(()) => break,
                    Err(Error::Interrupted) => {}
                    Err(Error::Again) if polls => {
                        assert_eq!(at, 0, "a part of a message is refused after the first one");
                        self.poll(POLLOUT)?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Receives a message.
    pub(super) fn recv(&mut self) -> Result<Parts, Error> {
        trace(|| "recv".to_owned());
        let outcome = self.recv_all();
        world::progress();
        trace(|| format!("recv = {:?}", outcome.as_deref().map(named)));
        outcome
    }

    fn recv_all(&mut self) -> Result<Parts, Error> {
        // An interrupted call starts anew, with a new timeout.
        let start = std::time::Instant::now();
        self.pause();
        let polls = self.rng.chance(self.polls) && self.patient;
        let mut parts = Vec::new();
        let mut message = Message::new();
        loop {
            let flags = if polls { Flags::DONTWAIT } else { Flags::NONE };
            match self.socket.recv_message(&mut message, flags) {
                Ok(_) => {
                    self.promised = 0;
                    parts.push(message.as_slice().to_vec());
                    if !message.more() {
                        return Ok(parts);
                    }
                }
                Err(Error::Interrupted) if !self.patient && start.elapsed() >= self.patience => {
                    return Err(Error::Again);
                }
                Err(Error::Interrupted) => {}
                Err(Error::Again) if polls => {
                    assert!(parts.is_empty(), "the rest of a message is not there");
                    assert_eq!(self.promised & POLLIN, 0, "POLLIN without a message to receive");
                    self.poll(POLLIN)?;
                }
                Err(error) => {
                    assert!(parts.is_empty() || error == Error::Terminated, "the rest of a message: {error}");
                    return Err(error);
                }
            }
        }
    }
}

impl Peer {
    /// Sends without waiting, or for at most the socket's timeout.
    pub(super) fn try_send(&mut self, parts: &[Vec<u8>]) -> Result<(), Error> {
        let before = (std::mem::replace(&mut self.polls, 0), self.rng.chance(2));
        let outcome = match before.1 {
            true => self.send(parts),
            false => self.send_dontwait(parts),
        };
        self.polls = before.0;
        outcome
    }

    /// Sends without waiting.
    pub(super) fn send_dontwait(&mut self, parts: &[Vec<u8>]) -> Result<(), Error> {
        world::progress();
        for (at, part) in parts.iter().enumerate() {
            let more = if at + 1 < parts.len() { Flags::MORE.0 } else { 0 };
            loop {
                match self.socket.send(part, Flags(more | Flags::DONTWAIT.0)) {
                    Ok(()) => break,
                    Err(Error::Interrupted) => {}
                    Err(error) => {
                        let is_late = at > 0 && error != Error::Terminated;
                        assert!(!is_late, "a part of a message is refused after the first one: {error}");
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// REQ: tolerates lost requests and replies by sending again.
    pub(super) fn tolerate_losses(&mut self) {
        // ZMQ_REQ_CORRELATE, ZMQ_REQ_RELAXED.
        self.set(52, 1);
        self.set(53, 1);
        self.set_receive_timeout(60_000);
        self.set(LINGER, 0);
    }

    /// REQ: sends a question. The expected answer is the question.
    pub(super) fn ask(&mut self, question: &[Vec<u8>], lossy: bool) {
        for _ in 0..50 {
            self.send(question).unwrap_or_else(|error| panic!("{error}"));
            match self.recv() {
                Ok(answer) => return assert!(answer == question, "another answer"),
                Err(Error::Again) if lossy => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("no answer after 50 questions");
    }

    /// Receives without waiting.
    pub(super) fn try_recv(&mut self) -> Result<Parts, Error> {
        world::progress();
        let mut parts = Vec::new();
        let mut message = Message::new();
        loop {
            match self.socket.recv_message(&mut message, Flags::DONTWAIT) {
                Ok(_) => {
                    self.promised = 0;
                    parts.push(message.as_slice().to_vec());
                    if !message.more() {
                        return Ok(parts);
                    }
                }
                Err(Error::Interrupted) => {}
                Err(error) => {
                    let is_late = !parts.is_empty() && error != Error::Terminated;
                    assert!(!is_late, "the rest of a message is not there: {error}");
                    return Err(error);
                }
            }
        }
    }

    /// Pauses for some microseconds.
    pub(super) fn sleep_briefly(&mut self) {
        std::thread::sleep(Duration::from_micros(self.rng.spread(10, 2000)));
    }
}

/// Receives a part of a message within `patience`. An interrupted call starts anew, and would
/// restart the socket's own timeout.
pub(super) fn receive(socket: &mut Socket, message: &mut Message, patience: Duration) -> Result<(), Error> {
    let start = std::time::Instant::now();
    loop {
        match socket.recv_message(message, Flags::NONE) {
            Ok(_) => {
                world::progress();
                return Ok(());
            }
            Err(Error::Interrupted) if start.elapsed() < patience => {}
            Err(Error::Interrupted) => return Err(Error::Again),
            Err(error) => return Err(error),
        }
    }
}

/// Describes a message for the trace: sender, number, and the length of each part.
fn named(parts: &[Vec<u8>]) -> String {
    // Skips the routing ID that some peers have.
    let mut rest = parts.iter().filter(|part| *part != b"the same");
    let head = rest.find_map(|part| part.first_chunk::<8>().map(|head| u64::from_be_bytes(*head)));
    let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
    head.map_or("?".to_owned(), |head| format!("{}/{}", head >> 32, head as u32))
        + &format!(" of {lengths:?} bytes")
}

/// Prints a line of the trace.
pub(super) fn trace(text: impl FnOnce() -> String) {
    world::with(|world| world.say(&text()));
}
