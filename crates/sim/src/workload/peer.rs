//! A socket, and how its program uses it: blocking, without waiting, or with `poll`.

use std::time::Duration;

use tautline_core::poller::{self, Item, POLLIN, POLLOUT, Watched};
use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};

use super::traffic::Parts;
use crate::rng::Rng;
use crate::world;

pub(super) const LINGER: i32 = 17;
pub(super) const SNDHWM: i32 = 23;
pub(super) const RCVHWM: i32 = 24;
pub(super) const RCVTIMEO: i32 = 27;
pub(super) const SNDTIMEO: i32 = 28;
pub(super) const SUBSCRIBE: i32 = 6;
pub(super) const MANDATORY: i32 = 33;
pub(super) const IMMEDIATE: i32 = 39;
pub(super) const ROUTING_ID: i32 = 5;
const HEARTBEAT_IVL: i32 = 75;
const HEARTBEAT_TIMEOUT: i32 = 77;
const ZMQ_FD: i32 = 14;
const ZMQ_EVENTS: i32 = 15;

pub(super) struct Peer {
    pub(super) socket: Socket,
    pub(super) rng: Rng,
    /// Of how many calls one does not wait.
    polls: u64,
    /// It waits for ZMQ_FD.
    by_descriptor: bool,
    /// It waits for a message for ever.
    patient: bool,
    /// For how long, if not.
    patience: Duration,
    /// Of how many calls one comes after a pause, and the longest of them, in microseconds.
    pauses: (u64, u64),
}

impl Peer {
    /// With high-water marks and habits from `rng`.
    pub(super) fn new(context: &Context, kind: SocketType, rng: Rng) -> Self {
        Peer::try_new(context, kind, rng).expect("a context that has not ended")
    }

    /// As `new`; none if the context has ended.
    pub(super) fn try_new(context: &Context, kind: SocketType, rng: Rng) -> Option<Self> {
        let mut rng = rng;
        let mut socket = match context.socket(kind) {
            Err(Error::Terminated) => return None,
            outcome => outcome.unwrap(),
        };
        for option in [SNDHWM, RCVHWM] {
            let mark: i32 = *rng.pick(&[1, 2, 3, 10, 1000, 0]);
            socket.set_option(option, &mark.to_ne_bytes()).unwrap();
        }
        if rng.chance(4) {
            // PINGs, whose answers may take long.
            let interval = rng.spread(1, 200) as i32;
            socket.set_option(HEARTBEAT_IVL, &interval.to_ne_bytes()).unwrap();
            socket.set_option(HEARTBEAT_TIMEOUT, &1_000_000_i32.to_ne_bytes()).unwrap();
        }
        socket.set_option(LINGER, &(-1_i32).to_ne_bytes()).unwrap();
        let polls = *rng.pick(&[0, 1, 2, 10]);
        let pauses = (*rng.pick(&[0, 0, 0, 5, 50]), rng.spread(1, 30_000));
        let by_descriptor = rng.chance(3);
        Some(Peer { socket, rng, polls, by_descriptor, patient: true, patience: Duration::ZERO, pauses })
    }

    pub(super) fn set(&mut self, option: i32, value: i32) {
        self.socket.set_option(option, &value.to_ne_bytes()).unwrap();
    }

    pub(super) fn set_bytes(&mut self, option: i32, value: &[u8]) {
        self.socket.set_option(option, value).unwrap();
    }

    /// Binds, or connects, whichever `binds` says.
    pub(super) fn join(&mut self, endpoint: &str, binds: bool) {
        say(|| format!("{} {endpoint}", if binds { "bind" } else { "connect" }));
        let outcome = if binds { self.socket.bind(endpoint) } else { self.socket.connect(endpoint) };
        match outcome {
            // The next call says so, too.
            Ok(()) | Err(Error::Terminated) => {}
            Err(error) => panic!("{endpoint}: {error}"),
        }
    }

    /// From now on a receive ends after some milliseconds.
    pub(super) fn give_up_after(&mut self, millis: i32) {
        self.patient = false;
        self.patience = Duration::from_millis(millis as u64);
        self.set(RCVTIMEO, millis);
    }

    /// The program does something else.
    pub(super) fn pause(&mut self) {
        if self.rng.chance(self.pauses.0) {
            std::thread::sleep(Duration::from_micros(self.rng.spread(1, self.pauses.1)));
        }
    }

    /// Waits until one of `events` is there: with the library's poll, or with the system's and
    /// ZMQ_FD.
    fn poll(&mut self, events: i16) -> Result<(), Error> {
        if self.by_descriptor {
            return self.wait_for_descriptor(events);
        }
        let timeout = self.rng.chance(3).then(|| Duration::from_micros(self.rng.spread(1, 10_000)));
        let mut items = [Item { watched: Watched::Socket(&mut self.socket), events, revents: 0 }];
        match poller::poll(&mut items, timeout) {
            Ok(_) | Err(Error::Interrupted) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn wait_for_descriptor(&mut self, events: i16) -> Result<(), Error> {
        let fd = self.number(ZMQ_FD)?;
        loop {
            if self.number(ZMQ_EVENTS)? & i32::from(events) != 0 {
                return Ok(());
            }
            let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
            // SAFETY: an array of one.
            let outcome = unsafe { libc::poll(fds.as_mut_ptr(), 1, -1) };
            assert!(outcome == 1 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR));
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
        say(|| format!("send {} = {outcome:?}", named(parts)));
        outcome
    }

    fn send_all(&mut self, parts: &[Vec<u8>]) -> Result<(), Error> {
        self.pause();
        let polls = self.rng.chance(self.polls);
        for (at, part) in parts.iter().enumerate() {
            let more = if at + 1 < parts.len() { Flags::MORE.0 } else { 0 };
            loop {
                let flags = Flags(more | if polls { Flags::DONTWAIT.0 } else { 0 });
                let outcome = match self.rng.chance(2) {
                    true => self.socket.send(part, flags),
                    false => self.socket.send_message(&mut Message::from_vec(part.clone()), flags),
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
        say(|| "recv".to_owned());
        let outcome = self.recv_all();
        say(|| format!("recv = {:?}", outcome.as_deref().map(named)));
        outcome
    }

    fn recv_all(&mut self) -> Result<Parts, Error> {
        // A call that is interrupted begins anew, and so does its time.
        let start = std::time::Instant::now();
        self.pause();
        let polls = self.rng.chance(self.polls) && self.patient;
        let mut parts = Vec::new();
        let mut message = Message::new();
        loop {
            let flags = if polls { Flags::DONTWAIT } else { Flags::NONE };
            match self.socket.recv_message(&mut message, flags) {
                Ok(_) => {
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
    pub(super) fn send_or_not(&mut self, parts: &[Vec<u8>]) -> Result<(), Error> {
        let before = (std::mem::replace(&mut self.polls, 0), self.rng.chance(2));
        let outcome = match before.1 {
            true => self.send(parts),
            false => self.send_at_once(parts),
        };
        self.polls = before.0;
        outcome
    }

    fn send_at_once(&mut self, parts: &[Vec<u8>]) -> Result<(), Error> {
        for (at, part) in parts.iter().enumerate() {
            let more = if at + 1 < parts.len() { Flags::MORE.0 } else { 0 };
            loop {
                match self.socket.send(part, Flags(more | Flags::DONTWAIT.0)) {
                    Ok(()) => break,
                    Err(Error::Interrupted) => {}
                    Err(error) => {
                        assert_eq!(at, 0, "a part of a message is refused after the first one: {error}");
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// REQ: a request, or its reply, may be lost, and it asks again.
    pub(super) fn tolerate_losses(&mut self) {
        // ZMQ_REQ_CORRELATE, ZMQ_REQ_RELAXED.
        self.set(52, 1);
        self.set(53, 1);
        self.give_up_after(60_000);
        self.set(LINGER, 0);
    }

    /// REQ: asks a question, to which the answer is the question.
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
    pub(super) fn recv_or_not(&mut self) -> Result<Parts, Error> {
        let mut parts = Vec::new();
        let mut message = Message::new();
        loop {
            match self.socket.recv_message(&mut message, Flags::DONTWAIT) {
                Ok(_) => {
                    parts.push(message.as_slice().to_vec());
                    if !message.more() {
                        return Ok(parts);
                    }
                }
                Err(Error::Interrupted) => {}
                Err(error) => {
                    assert!(parts.is_empty(), "the rest of a message is not there: {error}");
                    return Err(error);
                }
            }
        }
    }

    /// Does nothing for some microseconds.
    pub(super) fn wait_a_moment(&mut self) {
        std::thread::sleep(Duration::from_micros(self.rng.spread(10, 2000)));
    }
}

/// What a message is called in the story: sender and number, and the length of each part.
fn named(parts: &[Vec<u8>]) -> String {
    let head = parts.iter().find_map(|part| part.first_chunk::<8>().map(|head| u64::from_be_bytes(*head)));
    let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
    head.map_or("?".to_owned(), |head| format!("{}/{}", head >> 32, head as u32))
        + &format!(" of {lengths:?} bytes")
}

/// A line of the story.
pub(super) fn say(text: impl FnOnce() -> String) {
    world::with(|world| world.say(&text()));
}
