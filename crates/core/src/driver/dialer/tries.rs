//! The addresses of a peer. They are tried as RFC 8305 ("happy eyeballs") has it: IPv6 and IPv4 in
//! turn, each with a head start before the next one, which is tried beside it. The first that
//! connects is taken, and the others are closed. Only when none is left has the attempt failed.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Attempt, Dialer, Way};
use crate::driver::Turn;
use crate::monitor::event;
use crate::sync::{Arc, lock};
use crate::transport;
use tautline_io::errno;
use tautline_io::fd::AsRawFd;
use tautline_io::net::{Address, Failure, Stream};
use tautline_io::reactor::{Interest, Mode, Token};
use tautline_io::resolve;

/// How long an address is tried before the next one is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// The most that are tried at once: the answer of a name server may have thousands.
const MOST_AT_ONCE: usize = 8;

/// An address that the system is connecting to.
pub(super) struct Try {
    stream: Arc<Stream>,
    token: Token,
    /// Ends it (ZMQ_CONNECT_TIMEOUT).
    timer: u64,
}

impl Attempt {
    /// What the timer `key` ends, if it ends anything. `proxy` is the timer of a proxy that is
    /// asked.
    pub(super) fn out_of_time(&mut self, key: u64, proxy: u64) -> Option<(Arc<Stream>, Token)> {
        match self {
            Attempt::Connecting(_) => self.take(|one| one.timer == key).map(|one| (one.stream, one.token)),
            Attempt::Asking(stream, token, _) if key == proxy => {
                let over = (stream.clone(), *token);
                *self = Attempt::Waiting;
                Some(over)
            }
            _ => None,
        }
    }

    /// Takes out the try that `is_it` knows.
    fn take(&mut self, is_it: impl Fn(&Try) -> bool) -> Option<Try> {
        let Attempt::Connecting(tries) = self else { return None };
        let taken = tries.iter().position(is_it).map(|at| tries.remove(at));
        if tries.is_empty() {
            *self = Attempt::Waiting;
        }
        taken
    }

    fn add(&mut self, one: Try) {
        match self {
            Attempt::Connecting(tries) => tries.push(one),
            _ => *self = Attempt::Connecting(vec![one]),
        }
    }

    /// Closes the streams of what is not waited for any more.
    pub(super) fn abandon(self, turn: &mut Turn, of: &Dialer) {
        let mut close = |stream: Arc<Stream>, token: Token| {
            turn.unregister(token, stream.as_fd());
            of.emit(event::CLOSED, stream.as_fd().as_raw_fd() as u32);
        };
        match self {
            Attempt::Waiting => {}
            Attempt::Asking(stream, token, _) => close(stream, token),
            Attempt::Connecting(tries) => tries.into_iter().for_each(|one| close(one.stream, one.token)),
        }
    }
}

impl Way {
    /// What there is to do about the addresses.
    fn next(&mut self) -> Next {
        let under_way = match &self.attempt {
            Attempt::Connecting(tries) => tries.len(),
            _ => 0,
        };
        if under_way >= MOST_AT_ONCE {
            return Next::Wait;
        }
        match self.candidates.pop() {
            Some(address) => Next::Address(address, self.source.as_deref().copied()),
            None if under_way > 0 => Next::Wait,
            None => Next::None,
        }
    }
}

impl Dialer {
    /// The resolver's answer.
    pub(super) fn resolved(self: &Arc<Self>, turn: &mut Turn, resolved: resolve::Outcome) {
        if !lock(&self.state).is_waiting() {
            return;
        }
        match resolved {
            Ok(addresses) => {
                let addresses = resolve::by_turns(addresses);
                let candidates = addresses.into_iter().rev().map(Address::from).collect();
                lock(&self.state).way.get_or_insert_default().candidates = candidates;
                self.try_next(turn, errno::EHOSTUNREACH);
            }
            Err(error) => self.failed(turn, errno::of(&error).unwrap_or(errno::EHOSTUNREACH), None),
        }
    }

    /// Tries the next address, and those after it as long as they fail at once. If none is left,
    /// and none is being tried, the attempt has failed, with the last error; `errno` is the one
    /// before.
    pub(super) fn try_next(self: &Arc<Self>, turn: &mut Turn, mut errno: i32) {
        loop {
            let next = lock(&self.state).way.get_or_insert_default().next();
            let (address, source) = match next {
                Next::Address(address, source) => (address, source),
                Next::Wait => return,
                Next::None => return self.exhausted(turn, errno),
            };
            let (error, fd) = match transport::connect(&address, source.as_ref(), &self.options) {
                Ok((stream, true)) => return self.arrived(turn, Arc::new(stream)),
                Ok((stream, false)) => match self.wait_for(turn, stream) {
                    Ok(()) => return,
                    Err((stream, error)) => (error, Some(stream.as_fd().as_raw_fd())),
                },
                Err(Failure { error, fd }) => (error, fd),
            };
            if let Some(fd) = fd {
                self.emit(event::CLOSED, fd as u32);
            }
            errno = errno::of(&error).unwrap_or(0);
        }
    }

    /// Leaves it to the system to connect.
    fn wait_for(self: &Arc<Self>, turn: &mut Turn, stream: Stream) -> Result<(), (Stream, std::io::Error)> {
        let token = match turn.register(self.clone(), stream.as_fd(), Interest::WRITE, Mode::Level) {
            Ok(token) => token,
            Err(error) => return Err((stream, error)),
        };
        let timer = self.options.connect_timeout.map_or(0, |time| turn.after(time, self));
        {
            let mut state = lock(&self.state);
            let way = state.way.get_or_insert_default();
            way.attempt.add(Try { stream: Arc::new(stream), token, timer });
            if !way.candidates.is_empty() {
                way.next_timer = turn.after(HEAD_START, self);
            }
        }
        self.emit(event::CONNECT_DELAYED, errno::EINPROGRESS as u32);
        Ok(())
    }

    /// The system has connected, or failed to.
    pub(super) fn answered(self: &Arc<Self>, turn: &mut Turn, token: Token) {
        let (stream, outcome) = {
            let mut state = lock(&self.state);
            let Some(way) = &mut state.way else { return };
            let Attempt::Connecting(tries) = &way.attempt else { return };
            let Some(one) = tries.iter().find(|one| one.token == token) else { return };
            let (stream, outcome) = (one.stream.clone(), one.stream.finish_connect());
            if matches!(outcome, Ok(false)) {
                return;
            }
            way.attempt.take(|one| one.token == token);
            (stream, outcome)
        };
        turn.unregister(token, stream.as_fd());
        match outcome {
            Ok(_) => self.arrived(turn, stream),
            Err(error) => self.failed(turn, errno::of(&error).unwrap_or(0), Some(stream)),
        }
    }
}

/// What there is to do about the addresses.
enum Next {
    /// To try this one, from that one.
    Address(Address, Option<SocketAddr>),
    /// To wait for those that are being tried.
    Wait,
    /// Nothing.
    None,
}
