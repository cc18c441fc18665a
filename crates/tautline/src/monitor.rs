//! What happens to a socket's connections, as typed events; and what it has done so far, as
//! numbers.
//!
//! [`Socket::monitor`](crate::Socket::monitor) gives a [`Monitor`]: a blocking iterator, or by
//! [`Monitor::into_async`] a stream of [`Event`]s.
//! [`Socket::statistics`](crate::Socket::statistics) needs no monitor.
//!
//! ```
//! # fn main() -> tautline::Result<()> {
//! use tautline::monitor::EventKind;
//! use tautline::{Context, Pull, Push};
//!
//! let context = Context::new();
//! let mut sink = Pull::new(&context)?;
//! let events = sink.monitor()?;
//! let endpoint = sink.bind("tcp://127.0.0.1:*")?;
//! let source = Push::builder(&context).connect(&endpoint)?;
//!
//! for event in events {
//!     println!("{event}");
//!     if let EventKind::HandshakeSucceeded = event.kind {
//!         break;
//!     }
//! }
//! # drop(source);
//! # Ok(()) }
//! ```

mod event;
mod statistics;

pub use event::{Claim, Event, EventKind, HandshakeError};
pub use statistics::Statistics;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::{Context, Pair, Socket, aio};

/// Names the monitors of the process.
// Relaxed: number: only that it differs.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The events of one socket, from [`Socket::monitor`](crate::Socket::monitor).
///
/// As an iterator it waits for each event, and ends when the socket is closed and has sent what it
/// lingers for, gets another monitor, or the context ends. A program that reads too slowly misses
/// events: a thousand are kept.
#[derive(Debug)]
pub struct Monitor {
    socket: Pair,
    over: bool,
}

impl Monitor {
    fn start(context: &Context, socket: &mut tautline_core::Socket) -> Result<Monitor> {
        let name = format!("inproc://tautline.monitor.{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut events = Pair::builder(context).linger(Duration::ZERO).build()?;
        socket.monitor_in_detail(&name)?;
        events.connect(&name)?;
        Ok(Monitor { socket: events, over: false })
    }

    /// The next event; waits until there is one.
    ///
    /// # Errors
    /// [`Error::Terminated`], also after [`EventKind::Stopped`]; [`Error::Interrupted`].
    pub fn recv(&mut self) -> Result<Event> {
        self.next_event(Pair::recv_multipart)
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if there is none, and those of [`recv`](Self::recv).
    pub fn try_recv(&mut self) -> Result<Event> {
        self.next_event(Pair::try_recv_multipart)
    }

    /// The next event, if there is one within this time.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if there was none, and those of [`recv`](Self::recv).
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Event> {
        if !self.over {
            self.socket.wait_readable(Some(timeout))?;
        }
        self.try_recv()
    }

    /// The same events for an async program.
    #[must_use]
    pub fn into_async(self) -> aio::Monitor {
        aio::Monitor::new(self.socket.into_async(), self.over)
    }

    fn next_event(&mut self, receive: impl Fn(&mut Pair) -> Result<crate::Multipart>) -> Result<Event> {
        loop {
            if self.over {
                return Err(Error::Terminated);
            }
            if let Some(event) = Event::read(&receive(&mut self.socket)?) {
                self.over = event.kind == EventKind::Stopped;
                return Ok(event);
            }
        }
    }
}

impl Iterator for Monitor {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            match self.recv() {
                Ok(event) => return Some(event),
                Err(Error::Interrupted) => {}
                Err(_) => return None,
            }
        }
    }
}

impl<K: Kind> Socket<K> {
    /// From now on tells what happens to the connections; see [`monitor`](crate::monitor). A socket
    /// has one monitor: an earlier one ends.
    ///
    /// # Errors
    /// [`Error::TooMany`], [`Error::Terminated`].
    pub fn monitor(&mut self) -> Result<Monitor> {
        Monitor::start(&self.context, &mut self.inner)
    }

    /// What the socket has done so far, and what waits in it now. Costs the messages nothing.
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn statistics(&mut self) -> Result<Statistics> {
        Statistics::read(&mut self.inner)
    }
}

impl<K: Kind> aio::Socket<K> {
    /// See [`crate::Socket::monitor`].
    ///
    /// # Errors
    /// Those of [`crate::Socket::monitor`].
    pub fn monitor(&mut self) -> Result<aio::Monitor> {
        self.get_mut().monitor().map(Monitor::into_async)
    }

    /// See [`crate::Socket::statistics`].
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn statistics(&mut self) -> Result<Statistics> {
        self.get_mut().statistics()
    }
}
