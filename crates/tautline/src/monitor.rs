//! Connection events of a socket as typed values, and its counters.
//!
//! [`Socket::monitor`](crate::Socket::monitor) returns a [`Monitor`]: a blocking iterator of
//! [`Event`]s, or a stream after [`Monitor::into_async`].
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
pub use tautline_core::{PeerReport, PeerState};
pub use tautline_host::RouteReport;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::{Context, Pair, Socket, aio};

/// Number of the next monitor, for its name in the process.
// Relaxed: number: each one only has to be unique.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Events of one socket, from [`Socket::monitor`](crate::Socket::monitor).
///
/// The iterator waits for each event. It ends when the closed socket has sent its lingering
/// messages, when the socket gets another monitor, or when the context ends. At most a thousand
/// events are queued. If the program reads too slowly, further events are lost.
#[derive(Debug)]
pub struct Monitor {
    socket: Pair,
    is_finished: bool,
}

impl Monitor {
    fn start(context: &Context, socket: &mut tautline_core::Socket) -> Result<Monitor> {
        let name = format!("inproc://tautline.monitor.{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut events = Pair::builder(context).linger(Duration::ZERO).build()?;
        socket.monitor_in_detail(&name)?;
        events.connect(&name)?;
        Ok(Monitor { socket: events, is_finished: false })
    }

    /// Returns the next event; waits if necessary.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`], also after [`EventKind::Stopped`], or [`Error::Interrupted`].
    pub fn recv(&mut self) -> Result<Event> {
        self.next_event(Pair::recv_multipart)
    }

    /// Returns the next event, without waiting.
    ///
    /// # Errors
    /// Returns [`Error::WouldBlock`] if no event is queued, and the errors of [`recv`](Self::recv).
    pub fn try_recv(&mut self) -> Result<Event> {
        self.next_event(Pair::try_recv_multipart)
    }

    /// Returns the next event; waits for at most `timeout`.
    ///
    /// # Errors
    /// Returns [`Error::TimedOut`] after the timeout, and the errors of [`recv`](Self::recv).
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Event> {
        let deadline = deadline(Some(timeout));
        loop {
            match self.try_recv() {
                Err(Error::WouldBlock) => {}
                outcome => return outcome,
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if !self.socket.wait_readable(left)? {
                return Err(Error::TimedOut);
            }
        }
    }

    /// Converts the monitor for an async program.
    #[must_use]
    pub fn into_async(self) -> aio::Monitor {
        aio::Monitor::new(self.socket.into_async(), self.is_finished)
    }

    fn next_event(&mut self, receive: impl Fn(&mut Pair) -> Result<crate::Multipart>) -> Result<Event> {
        loop {
            if self.is_finished {
                return Err(Error::Terminated);
            }
            if let Some(event) = Event::read(&receive(&mut self.socket)?) {
                self.is_finished = event.kind == EventKind::Stopped;
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
    /// Starts reporting connection events; see [`monitor`](crate::monitor). A socket has one
    /// monitor. A new monitor ends the previous one.
    ///
    /// # Errors
    /// Returns [`Error::TooManyOpen`] or [`Error::Terminated`].
    pub fn monitor(&mut self) -> Result<Monitor> {
        Monitor::start(&self.context, &mut self.inner)
    }

    /// Returns the counters of the socket and its queue lengths. Adds no work per message.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn statistics(&mut self) -> Result<Statistics> {
        Statistics::read(&mut self.inner)
    }

    /// Returns the current peers, with the traffic of each peer. Peers that are still being
    /// connected are included. Adds no work per message. Times of the last activity are only
    /// visible to external tools ([`Context::observe`](crate::Context::observe)).
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::monitor::PeerState;
    /// use tautline::{Context, Dealer, Router};
    ///
    /// let context = Context::new();
    /// let mut router = Router::new(&context)?;
    /// let endpoint = router.bind("tcp://127.0.0.1:*")?;
    /// let mut dealer = Dealer::builder(&context).routing_id("joe").connect(&endpoint)?;
    /// router.wait_for_peers(1, None)?;
    /// dealer.send("hello")?;
    /// router.recv_multipart()?;
    /// let peers = router.peers()?;
    /// assert_eq!((peers[0].state, peers[0].messages_in), (PeerState::Connected, 1));
    /// assert_eq!((&peers[0].routing_id[..], &*peers[0].host), (&b"joe"[..], "127.0.0.1"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn peers(&mut self) -> Result<Vec<PeerReport>> {
        Ok(self.inner.peers()?)
    }

    /// Reports how the program handles its messages to external tools
    /// ([`Context::observe`](crate::Context::observe)): a name, the promised guarantee, and the
    /// program's own counters. A library thread calls `tell` whenever a tool reads the socket. A
    /// later call replaces an earlier one. If the socket is not observed, the call has no effect
    /// and no cost.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use tautline::monitor::RouteReport;
    /// use tautline::{Context, Pull};
    ///
    /// let mut pull = Pull::new(&Context::new())?;
    /// let stored = Arc::new(AtomicU64::new(0));
    /// let seen = stored.clone();
    /// pull.set_route_report(move || {
    ///     let mut report = RouteReport::default();
    ///     (report.name, report.promise) = ("orders".to_owned(), "stored".to_owned());
    ///     report.done = seen.load(Ordering::SeqCst);
    ///     report
    /// });
    /// # Ok(()) }
    /// ```
    pub fn set_route_report(&mut self, tell: impl Fn() -> RouteReport + Send + Sync + 'static) {
        tautline_host::show_route(&self.inner, tell);
    }

    /// Waits until at least `count` peers are connected, for at most `timeout` (`None`: without
    /// limit). Returns false after the timeout.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`], or [`Error::Interrupted`] on a signal: call again.
    pub fn wait_for_peers(&mut self, count: usize, timeout: impl Into<Option<Duration>>) -> Result<bool> {
        outcome(self.inner.wait_for_peers(count, deadline(timeout.into())))
    }

    /// Waits until the peers of a publisher have subscribed to at least `count` different topics,
    /// for at most `timeout` (`None`: without limit). Returns false after the timeout. Messages
    /// that are published later reach these subscribers.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::{Context, Pub, Sub};
    ///
    /// let context = Context::new();
    /// let mut publisher = Pub::new(&context)?;
    /// let endpoint = publisher.bind("tcp://127.0.0.1:*")?;
    /// let mut subscriber = Sub::builder(&context).subscribe("news").connect(&endpoint)?;
    /// publisher.wait_for_subscriptions(1, None)?;
    /// publisher.send("news of today")?;
    /// assert_eq!(subscriber.recv()?, "news of today");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::NotSupported`] for sockets without topics, and the errors of
    /// [`wait_for_peers`](Self::wait_for_peers).
    pub fn wait_for_subscriptions(
        &mut self,
        count: usize,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<bool> {
        outcome(self.inner.wait_for_subscriptions(count, deadline(timeout.into())))
    }
}

impl<K: Kind> aio::Socket<K> {
    /// See [`crate::Socket::monitor`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Socket::monitor`].
    pub fn monitor(&mut self) -> Result<aio::Monitor> {
        self.get_mut().monitor().map(Monitor::into_async)
    }

    /// See [`crate::Socket::peers`].
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn peers(&mut self) -> Result<Vec<PeerReport>> {
        self.get_mut().peers()
    }

    /// See [`crate::Socket::set_route_report`].
    pub fn set_route_report(&mut self, tell: impl Fn() -> RouteReport + Send + Sync + 'static) {
        self.get_mut().set_route_report(tell);
    }

    /// See [`crate::Socket::statistics`].
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn statistics(&mut self) -> Result<Statistics> {
        self.get_mut().statistics()
    }
}

fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|time| Instant::now().checked_add(time))
}

/// Returns true if the wait succeeded before the deadline.
fn outcome(waited: std::result::Result<(), tautline_core::Error>) -> Result<bool> {
    match waited {
        Ok(()) => Ok(true),
        Err(tautline_core::Error::Again) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
