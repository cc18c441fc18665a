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
pub use tautline_core::{PeerReport, PeerState, RouteReport};

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

    /// The peers now, with what has gone to each of them and come from it. One that is still being
    /// connected to is among them. Costs the messages nothing. Times of the last activity are only
    /// seen from outside ([`Context::observe`](crate::Context::observe)).
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
    /// [`Error::Terminated`].
    pub fn peers(&mut self) -> Result<Vec<PeerReport>> {
        Ok(self.inner.peers()?)
    }

    /// Shows, with the socket, what the program does with its messages, to tools that look at the
    /// process from outside ([`Context::observe`](crate::Context::observe)): a name, what is
    /// promised, and the program's own counts. `tell` is asked at each look, on a thread of the
    /// library. A later call takes the place of an earlier one. Without effect, and cost, if the
    /// socket is not observed.
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
    /// pull.show_route(move || {
    ///     let mut report = RouteReport::default();
    ///     (report.name, report.promise) = ("orders".to_owned(), "stored".to_owned());
    ///     report.done = seen.load(Ordering::SeqCst);
    ///     report
    /// });
    /// # Ok(()) }
    /// ```
    pub fn show_route(&mut self, tell: impl Fn() -> RouteReport + Send + Sync + 'static) {
        tautline_core::show_route(&self.inner, tell);
    }

    /// Waits until at least `count` peers are connected, for `timeout` (`None`: for ever). Whether
    /// they are.
    ///
    /// # Errors
    /// [`Error::Terminated`]; [`Error::Interrupted`] by a signal: call again.
    pub fn wait_for_peers(&mut self, count: usize, timeout: impl Into<Option<Duration>>) -> Result<bool> {
        outcome(self.inner.wait_for_peers(count, deadline(timeout.into())))
    }

    /// Waits until the peers of a publisher have subscribed to at least `count` different topics,
    /// for `timeout` (`None`: for ever). Whether they have. What is published then reaches them.
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
    /// [`Error::NotSupported`] for sockets without topics, and as
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
    /// Those of [`crate::Socket::monitor`].
    pub fn monitor(&mut self) -> Result<aio::Monitor> {
        self.get_mut().monitor().map(Monitor::into_async)
    }

    /// See [`crate::Socket::peers`].
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn peers(&mut self) -> Result<Vec<PeerReport>> {
        self.get_mut().peers()
    }

    /// See [`crate::Socket::show_route`].
    pub fn show_route(&mut self, tell: impl Fn() -> RouteReport + Send + Sync + 'static) {
        self.get_mut().show_route(tell);
    }

    /// See [`crate::Socket::statistics`].
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn statistics(&mut self) -> Result<Statistics> {
        self.get_mut().statistics()
    }
}

fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|time| Instant::now().checked_add(time))
}

/// Whether what was waited for has come before the deadline.
fn outcome(waited: std::result::Result<(), tautline_core::Error>) -> Result<bool> {
    match waited {
        Ok(()) => Ok(true),
        Err(tautline_core::Error::Again) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
