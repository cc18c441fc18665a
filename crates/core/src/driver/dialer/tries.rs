//! The addresses of a peer. We try them as in RFC 8305 ("happy eyeballs"): IPv6 and IPv4 in turn.
//! Each address gets a head start; then the next one is tried in parallel. We keep the first stream
//! that connects and close the others. The attempt fails only when all addresses have failed.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Attempt, ConnectAttempts, Dialer};
use crate::driver::EventLoop;
use crate::monitor::event;
use crate::transport;
use tautline_io::errno;
use tautline_io::fd::AsRawFd;
use tautline_io::net::{Address, Failure, Stream};
use tautline_io::reactor::{Interest, Mode, Token};
use tautline_io::resolve;
use tautline_queue::sync::{Arc, lock};

/// Head start of an address before the next one is tried in parallel.
const HEAD_START: Duration = Duration::from_millis(250);

/// Maximum number of parallel tries: the answer of a name server may have thousands of addresses.
const MOST_AT_ONCE: usize = 8;

/// An address that the system is connecting to.
pub(super) struct Try {
    stream: Arc<Stream>,
    token: Token,
    /// Timer that ends the try (ZMQ_CONNECT_TIMEOUT).
    timer: u64,
}

impl ConnectAttempts {
    /// True if the timer `key` still has an effect.
    pub(super) fn has_timer(&self, key: u64) -> bool {
        let of_try =
            matches!(&self.attempt, Attempt::Connecting(tries) if tries.iter().any(|one| one.timer == key));
        of_try || [self.retry_timer, self.proxy_timer, self.next_timer].contains(&key)
    }
}

impl Attempt {
    /// Returns the stream that the timer `key` ends, if there is one. `proxy` is the timer of a
    /// proxy request.
    pub(super) fn take_expired(&mut self, key: u64, proxy: u64) -> Option<(Arc<Stream>, Token)> {
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

    /// Removes and returns the try for which `is_it` is true.
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

    /// Closes the streams of an abandoned attempt.
    pub(super) fn abandon(self, turn: &mut EventLoop, of: &Dialer) {
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

impl ConnectAttempts {
    /// Decides the next step for the addresses.
    fn next(&mut self) -> NextTry {
        let under_way = match &self.attempt {
            Attempt::Connecting(tries) => tries.len(),
            _ => 0,
        };
        if under_way >= MOST_AT_ONCE {
            return NextTry::Wait;
        }
        match self.candidates.pop() {
            Some(address) => NextTry::Address(address, self.source.as_deref().copied()),
            None if under_way > 0 => NextTry::Wait,
            None => NextTry::None,
        }
    }
}

impl Dialer {
    /// Handles the resolver's answer.
    pub(super) fn handle_resolution(self: &Arc<Self>, turn: &mut EventLoop, resolved: resolve::LookupResult) {
        if !lock(&self.state).is_waiting() {
            return;
        }
        match resolved {
            Ok(addresses) => {
                let addresses = resolve::interleave_families(addresses);
                let candidates = addresses.into_iter().rev().map(Address::from).collect();
                lock(&self.state).attempts.get_or_insert_default().candidates = candidates;
                self.try_next(turn, errno::EHOSTUNREACH);
            }
            Err(error) => {
                self.handle_address_failure(turn, errno::of(&error).unwrap_or(errno::EHOSTUNREACH), None)
            }
        }
    }

    /// Tries the next address. If it fails at once, tries the following ones. If all addresses have
    /// failed, the attempt fails with the last error. `errno` is the error before this call.
    pub(super) fn try_next(self: &Arc<Self>, turn: &mut EventLoop, mut errno: i32) {
        loop {
            let next = lock(&self.state).attempts.get_or_insert_default().next();
            let (address, source) = match next {
                NextTry::Address(address, source) => (address, source),
                NextTry::Wait => return,
                NextTry::None => return self.handle_attempt_failure(turn, errno),
            };
            show_resolved(self, &address);
            let (error, fd) = match transport::connect(&address, source.as_ref(), &self.options) {
                Ok((stream, true)) => return self.handle_reached(turn, Arc::new(stream)),
                Ok((stream, false)) => {
                    self.emit(event::CONNECT_DELAYED, errno::EINPROGRESS as u32);
                    // On the loopback the peer's system has answered before `connect` returns.
                    let at_once = if address.is_loopback() { stream.finish_connect() } else { Ok(false) };
                    let waiting = match at_once {
                        Ok(true) => return self.handle_reached(turn, Arc::new(stream)),
                        Ok(false) => self.wait_for(turn, stream),
                        Err(error) => Err((stream, error)),
                    };
                    match waiting {
                        Ok(()) => return,
                        Err((stream, error)) => (error, Some(stream.as_fd().as_raw_fd())),
                    }
                }
                Err(Failure { error, fd }) => (error, fd),
            };
            if let Some(fd) = fd {
                self.emit(event::CLOSED, fd as u32);
            }
            errno = errno::of(&error).unwrap_or(0);
        }
    }

    /// Registers a stream that the system is connecting, and starts the timer of the try.
    fn wait_for(
        self: &Arc<Self>,
        turn: &mut EventLoop,
        stream: Stream,
    ) -> Result<(), (Stream, std::io::Error)> {
        let token = match turn.register(self.clone(), stream.as_fd(), Interest::WRITE, Mode::Level) {
            Ok(token) => token,
            Err(error) => return Err((stream, error)),
        };
        let timer = self.options.connect_timeout.map_or(0, |time| turn.set_timer(time, self));
        {
            let mut state = lock(&self.state);
            let way = state.attempts.get_or_insert_default();
            way.attempt.add(Try { stream: Arc::new(stream), token, timer });
            if !way.candidates.is_empty() {
                way.next_timer = turn.set_timer(HEAD_START, self);
            }
        }
        Ok(())
    }

    /// Handles the end of a try: the system has connected, or has failed to.
    pub(super) fn handle_try_end(self: &Arc<Self>, turn: &mut EventLoop, token: Token) {
        let (stream, outcome) = {
            let mut state = lock(&self.state);
            let Some(way) = &mut state.attempts else { return };
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
            Ok(_) => self.handle_reached(turn, stream),
            Err(error) => self.handle_address_failure(turn, errno::of(&error).unwrap_or(0), Some(stream)),
        }
    }
}

/// Reports the address that is about to be tried, unless it is that of a proxy.
fn show_resolved(dialer: &Dialer, address: &Address) {
    if let Some(report) = &dialer.site.report
        && let Address::Inet(address) = address
        && lock(&dialer.state).attempts.as_ref().is_none_or(|way| way.request.is_none())
    {
        let scheme = dialer.name.split_once("://").map_or("tcp", |(scheme, _)| scheme);
        report.set_resolved(&dialer.name, &format!("{scheme}://{address}"));
    }
}

/// The next step for the addresses.
enum NextTry {
    /// Try the first address, with the second one as source.
    Address(Address, Option<SocketAddr>),
    /// Wait for the running tries.
    Wait,
    /// All addresses have failed.
    None,
}
