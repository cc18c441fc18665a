//! `EnteredSocket`: the calls of one caller on a socket.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tautline_core::poller::{POLLIN, POLLOUT};
use tautline_core::{Error, Flags, Message, SharedGuard, SharedSocket, Socket, wait_in_turns};

use crate::entry::SocketGuard;

/// ZMQ_RCVTIMEO.
const RCVTIMEO: i32 = 27;
/// ZMQ_SNDTIMEO.
const SNDTIMEO: i32 = 28;
/// ZMQ_TAUTLINE_WAIT_PEERS.
pub const WAIT_PEERS: i32 = 0x5441_0006;
/// ZMQ_TAUTLINE_WAIT_SUBSCRIPTIONS.
pub const WAIT_SUBSCRIPTIONS: i32 = 0x5441_0007;

/// Access of one caller to a socket.
pub struct EnteredSocket<'a>(pub(super) Access<'a>);

pub(super) enum Access<'a> {
    One(SocketGuard),
    /// Each call locks the socket, and may wait for the lock. The time is the deadline of a
    /// repeated call.
    Many(Arc<SharedSocket>, Option<Instant>),
    Locked(SharedGuard<'a>),
}

/// The way of a call.
enum Way<'a> {
    /// The caller has exclusive use of the socket.
    Alone(&'a mut Socket),
    Shared(&'a SharedSocket, Option<Instant>),
}

impl EnteredSocket<'_> {
    #[inline(always)]
    fn way(&mut self) -> Result<Way<'_>, Error> {
        match &mut self.0 {
            Access::One(guard) => guard.socket().map(Way::Alone),
            Access::Many(shared, deadline) => Ok(Way::Shared(shared, *deadline)),
            Access::Locked(guard) => guard.socket().map(Way::Alone),
        }
    }

    /// Calls `call`, whose sends, receives and waiting options end at `deadline`, not after
    /// ZMQ_RCVTIMEO or ZMQ_SNDTIMEO. For a caller that repeats an interrupted call. If `deadline`
    /// is `None`, the options apply.
    ///
    /// # Errors
    /// Those of `call`, and [`Error::NotSocket`] if another thread is closing the socket.
    pub fn repeat<T>(
        &mut self,
        deadline: Option<Instant>,
        call: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(deadline) = deadline else { return call(self) };
        if let Access::Many(_, place) = &mut self.0 {
            *place = Some(deadline);
            let result = call(self);
            if let Access::Many(_, place) = &mut self.0 {
                *place = None;
            }
            return result;
        }
        let saved = self.with(|socket| limit_waits(socket, deadline))?;
        let result = call(self);
        // If the socket is being closed, its limits no longer matter.
        let _ = self.with(|socket| set_limits(socket, saved));
        result
    }

    /// Calls `call` with the socket.
    ///
    /// # Errors
    /// Those of `call`, and [`Error::NotSocket`] if another thread is closing the socket.
    #[inline(always)]
    pub fn with<T>(&mut self, call: impl FnOnce(&mut Socket) -> Result<T, Error>) -> Result<T, Error> {
        match self.way()? {
            Way::Alone(socket) => call(socket),
            Way::Shared(shared, _) => shared.with(call),
        }
    }

    /// Sends a part that is copied from `body`; see [`Socket::send`].
    ///
    /// # Errors
    /// As zmq_send(3).
    #[inline(always)]
    pub fn send(&mut self, body: &[u8], flags: Flags) -> Result<(), Error> {
        if let Access::One(guard) = &mut self.0 {
            return guard.socket()?.send(body, flags);
        }
        self.send_shared(body, flags)
    }

    // Sends a message, so that `Socket::send` keeps a single caller and is inlined there.
    #[cold]
    fn send_shared(&mut self, body: &[u8], flags: Flags) -> Result<(), Error> {
        match self.way()? {
            Way::Alone(socket) => socket.send_message(&mut copy_of(body)?, flags),
            Way::Shared(shared, deadline) => match repeated(deadline, flags) {
                None => shared.send(body, flags),
                Some(deadline) => {
                    let mut message = copy_of(body)?;
                    shared.repeat(POLLOUT, deadline, |socket| {
                        socket.send_message(&mut message, without_wait(flags))
                    })
                }
            },
        }
    }

    /// Sends a message part, which is then empty; see [`Socket::send_message`].
    ///
    /// # Errors
    /// As zmq_msg_send(3). The message is then unchanged.
    pub fn send_message(&mut self, message: &mut Message, flags: Flags) -> Result<(), Error> {
        match self.way()? {
            Way::Alone(socket) => socket.send_message(message, flags),
            Way::Shared(shared, deadline) => match repeated(deadline, flags) {
                None => shared.send_message(message, flags),
                Some(deadline) => shared
                    .repeat(POLLOUT, deadline, |socket| socket.send_message(message, without_wait(flags))),
            },
        }
    }

    /// Receives a part into `buffer`, and returns the length of the whole part; see
    /// [`Socket::recv`].
    ///
    /// # Errors
    /// As zmq_recv(3).
    pub fn recv(&mut self, buffer: &mut [u8], flags: Flags) -> Result<usize, Error> {
        match self.way()? {
            Way::Alone(socket) => socket.recv(buffer, flags),
            Way::Shared(shared, deadline) => match repeated(deadline, flags) {
                None => shared.recv(buffer, flags),
                Some(deadline) => {
                    shared.repeat(POLLIN, deadline, |socket| socket.recv(buffer, without_wait(flags)))
                }
            },
        }
    }

    /// Receives a part; see [`Socket::recv_message`].
    ///
    /// # Errors
    /// As zmq_msg_recv(3).
    #[inline(always)]
    pub fn recv_message(&mut self, message: &mut Message, flags: Flags) -> Result<usize, Error> {
        if let Access::One(guard) = &mut self.0 {
            return guard.socket()?.recv_message(message, flags);
        }
        self.recv_message_shared(message, flags)
    }

    #[cold]
    fn recv_message_shared(&mut self, message: &mut Message, flags: Flags) -> Result<usize, Error> {
        match self.way()? {
            Way::Alone(socket) => socket.recv_message(message, flags),
            Way::Shared(shared, deadline) => match repeated(deadline, flags) {
                None => shared.recv_message(message, flags),
                Some(deadline) => shared
                    .repeat(POLLIN, deadline, |socket| socket.recv_message(message, without_wait(flags))),
            },
        }
    }

    /// Sets ZMQ_TAUTLINE_WAIT_PEERS or ZMQ_TAUTLINE_WAIT_SUBSCRIPTIONS, which waits for at most
    /// ZMQ_SNDTIMEO.
    ///
    /// # Errors
    /// As zmq_setsockopt(3).
    pub fn wait_by_option(&mut self, option: i32, value: &[u8]) -> Result<(), Error> {
        match self.way()? {
            Way::Alone(socket) => socket.set_option(option, value),
            Way::Shared(shared, deadline) => wait_shared(shared, option, value, deadline),
        }
    }

    /// Binds the socket; see [`Socket::bind`].
    ///
    /// # Errors
    /// As zmq_bind(3).
    pub fn bind(&mut self, endpoint: &str) -> Result<(), Error> {
        match self.way()? {
            Way::Alone(socket) => socket.bind(endpoint),
            Way::Shared(shared, _) => shared.bind(endpoint),
        }
    }

    /// Ends a binding or a connection; see [`Socket::unbind`] and [`Socket::disconnect`].
    ///
    /// # Errors
    /// As zmq_unbind(3) and zmq_disconnect(3).
    pub fn end(&mut self, endpoint: &str, kind: EndpointKind) -> Result<(), Error> {
        match (self.way()?, kind) {
            (Way::Alone(socket), EndpointKind::Bound) => socket.unbind(endpoint),
            (Way::Alone(socket), EndpointKind::Connected) => socket.disconnect(endpoint),
            (Way::Shared(shared, _), _) => shared.unbind(endpoint),
        }
    }

    /// Returns the end of a wait that began at `started`, by ZMQ_RCVTIMEO or ZMQ_SNDTIMEO. `None`
    /// if the wait has no limit.
    ///
    /// # Errors
    /// [`Error::NotSocket`] if another thread is closing the socket.
    pub fn deadline_since(&mut self, started: Instant, receives: bool) -> Result<Option<Instant>, Error> {
        self.with(|socket| deadline_since(socket, started, if receives { RCVTIMEO } else { SNDTIMEO }))
    }
}

/// Returns a message with a copy of `body`.
fn copy_of(body: &[u8]) -> Result<Message, Error> {
    Message::try_from_slice(body).ok_or(Error::NoMemory)
}

/// Sets the limits of both directions to the time until `deadline`. Returns the former limits, in
/// milliseconds.
fn limit_waits(socket: &mut Socket, deadline: Instant) -> Result<[i32; 2], Error> {
    let saved = [limit(socket, RCVTIMEO)?, limit(socket, SNDTIMEO)?];
    let left = deadline.saturating_duration_since(Instant::now());
    // Rounded up, so that the call does not end early.
    let left = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    set_limits(socket, [left; 2])?;
    Ok(saved)
}

fn set_limits(socket: &mut Socket, limits: [i32; 2]) -> Result<(), Error> {
    socket.set_option(RCVTIMEO, &limits[0].to_ne_bytes())?;
    socket.set_option(SNDTIMEO, &limits[1].to_ne_bytes())
}

fn limit(socket: &mut Socket, option: i32) -> Result<i32, Error> {
    let mut value = [0; 4];
    socket.option(option, &mut value)?;
    Ok(i32::from_ne_bytes(value))
}

fn deadline_since(socket: &mut Socket, started: Instant, option: i32) -> Result<Option<Instant>, Error> {
    let limit = u64::try_from(limit(socket, option)?).ok();
    Ok(limit.and_then(|limit| started.checked_add(Duration::from_millis(limit))))
}

/// Waits by an option, so that other callers get their turn.
fn wait_shared(
    shared: &SharedSocket,
    option: i32,
    value: &[u8],
    deadline: Option<Instant>,
) -> Result<(), Error> {
    let number = <[u8; 4]>::try_from(value).map(i32::from_ne_bytes);
    let count = number.ok().and_then(|number| usize::try_from(number).ok()).ok_or(Error::Invalid)?;
    let deadline = match deadline {
        Some(deadline) => Some(deadline),
        None => shared.with(|socket| deadline_since(socket, Instant::now(), SNDTIMEO))?,
    };
    wait_in_turns(shared, deadline, |socket, end| {
        if option == WAIT_PEERS {
            socket.wait_for_peers(count, Some(end))
        } else {
            socket.wait_for_subscriptions(count, Some(end))
        }
    })
}

/// Returns the end of the wait of a repeated call. `None` if the call does not wait, or is not
/// repeated.
fn repeated(deadline: Option<Instant>, flags: Flags) -> Option<Instant> {
    deadline.filter(|_| flags.0 & Flags::DONTWAIT.0 == 0)
}

fn without_wait(flags: Flags) -> Flags {
    Flags(flags.0 | Flags::DONTWAIT.0)
}

/// Origin of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointKind {
    /// The socket is bound to it.
    Bound,
    /// The socket connects to it.
    Connected,
}
