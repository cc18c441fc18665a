//! [`ReliablePub`]: a PUB that keeps its last messages, and its builder. Requests for kept messages
//! go to another socket, a ROUTER, which [`replay`](super) calls the ring.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tautline_core::Flags;
use tautline_core::poller::POLLOUT;

use super::ring::{KeptMessage, Ring};
use super::server::Server;
use super::{EPOCH, encode, protection};
use crate::error::Result;
use crate::socket::send_parts;
use crate::{Builder, Context, Message, Pub, Router, aio, kind, option};

/// Default number of kept messages, as in vLLM's publisher of KV-cache events.
const KEPT: usize = 10_000;
/// Maximum number of queued answers for each peer that requests kept messages.
const RING_HWM: u32 = 250;
/// Default limit of the size of all kept messages, in bytes.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// Options of a future [`ReliablePub`].
#[must_use = "a builder makes no publisher until `build` is called"]
#[derive(Debug)]
pub struct ReliablePubBuilder {
    context: Context,
    socket: Builder<kind::Pub>,
    /// Builder of the ROUTER that answers requests for kept messages.
    ring: Builder<kind::Router>,
    /// Maximum number of kept messages.
    kept: usize,
    kept_bytes: usize,
    /// Start time of the publisher, in nanoseconds since 1970. By it, subscribers notice a restart.
    epoch: u64,
}

impl ReliablePubBuilder {
    /// Sets the number of kept messages, 10,000 by default.
    pub fn keep(mut self, messages: usize) -> Self {
        self.kept = messages;
        self
    }

    /// Sets the maximum size of all kept messages in bytes, 64 MiB by default.
    pub fn keep_bytes(mut self, bytes: usize) -> Self {
        self.kept_bytes = bytes;
        self
    }

    /// Sets options of the PUB. Connection options, such as keys, also apply to the ring, which is
    /// the ROUTER that answers requests for kept messages: see [Security](super#security).
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # use tautline::{Context, replay::ReliablePub};
    /// let context = Context::new();
    /// let publisher = ReliablePub::builder(&context).with_socket(|socket| socket.send_hwm(100_000)).build()?;
    /// # Ok(()) }
    /// ```
    pub fn with_socket(mut self, options: impl FnOnce(Builder<kind::Pub>) -> Builder<kind::Pub>) -> Self {
        self.socket = options(self.socket);
        self
    }

    /// Sets more options of the ring's ROUTER, which answers requests for kept messages, in
    /// addition to those of [`with_socket`](Self::with_socket).
    pub fn with_ring(mut self, options: impl FnOnce(Builder<kind::Router>) -> Builder<kind::Router>) -> Self {
        self.ring = options(self.ring);
        self
    }

    /// Creates the publisher. Bind or connect it next.
    ///
    /// # Errors
    /// Returns the errors of [`Builder::build`].
    pub fn build(self) -> Result<ReliablePub> {
        Ok(ReliablePub {
            has_certificates: self.socket.has_any(option::CERTIFICATES),
            router: self.ring.inherit(&self.socket).router_mandatory(true),
            socket: self.socket.build()?,
            context: self.context,
            ring: Arc::new(Mutex::new(Ring::new(self.kept, self.kept_bytes))),
            next: 0,
            epoch: self.epoch,
            servers: Vec::new(),
        })
    }
}

/// A PUB that numbers its messages and keeps the last ones; see [`replay`](super). With an
/// [`aio::Pub`] it serves async programs.
///
/// The kept messages are in memory and are lost with the publisher.
#[derive(Debug)]
pub struct ReliablePub<S = Pub> {
    socket: S,
    /// Builder of the ROUTERs, one for each endpoint of [`serve`](Self::serve).
    router: Builder<kind::Router>,
    /// True if the PUB has certificates.
    has_certificates: bool,
    context: Context,
    /// The kept messages.
    ring: Arc<Mutex<Ring>>,
    next: u64,
    /// See `ReliablePubBuilder::epoch`.
    epoch: u64,
    servers: Vec<Server>,
}

/// For threads.
impl ReliablePub {
    /// Returns a builder, to set options first.
    pub fn builder(context: &Context) -> ReliablePubBuilder {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch = u64::try_from(since.as_nanos()).unwrap_or_default();
        ReliablePubBuilder {
            context: context.clone(),
            // The epoch. The ROUTER inherits this property in `build`.
            socket: Pub::builder(context).property(EPOCH, &format!("{epoch:016x}")),
            // Limits the queue of each peer that does not read.
            ring: Router::builder(context).send_hwm(RING_HWM),
            epoch,
            kept: KEPT,
            kept_bytes: KEPT_BYTES,
        }
    }

    /// Creates a publisher with default options.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::new`](crate::Socket::new).
    pub fn new(context: &Context) -> Result<Self> {
        Self::builder(context).build()
    }

    /// Publishes a message. Returns its number: 0 for the first message, then increasing by one.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::send`](crate::Socket::send). A failed message gets no number
    /// and is not kept.
    pub fn send(&mut self, topic: impl Into<Message>, body: impl Into<Message>) -> Result<u64> {
        let mut message = KeptMessage { number: self.next, topic: topic.into(), body: body.into() };
        publish(&mut self.socket, &self.ring, &mut message, Flags::NONE)?;
        self.next += 1;
        Ok(message.number)
    }

    /// Converts the publisher for an async program.
    #[must_use]
    pub fn into_async(self) -> ReliablePub<aio::Pub> {
        self.with_other(Pub::into_async)
    }
}

/// For tasks.
impl ReliablePub<aio::Pub> {
    /// Publishes a message. Returns its number: 0 for the first message, then increasing by one.
    ///
    /// Cancel safe: if the future is dropped early, no message was sent, and none is kept.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # smol::block_on(async {
    /// use tautline::{Context, replay::ReliablePub};
    ///
    /// let mut publisher = ReliablePub::new(&Context::new())?.into_async();
    /// publisher.bind("tcp://127.0.0.1:*")?;
    /// publisher.serve("tcp://127.0.0.1:*")?;
    /// assert_eq!(publisher.send("prices/gold", "1980").await?, 0);
    /// assert_eq!(publisher.send("prices/gold", "1981").await?, 1);
    /// # Ok(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`aio::Socket::send`]. A failed message gets no number and is not
    /// kept.
    pub async fn send(&mut self, topic: impl Into<Message>, body: impl Into<Message>) -> Result<u64> {
        let mut message = KeptMessage { number: self.next, topic: topic.into(), body: body.into() };
        let ring = &self.ring;
        let attempt = |socket: &mut Pub| publish(socket, ring, &mut message, Flags::DONTWAIT);
        self.socket.retry_until_ready(POLLOUT, attempt).await?;
        self.next += 1;
        Ok(message.number)
    }

    /// Converts the publisher for a thread.
    #[must_use]
    pub fn into_blocking(self) -> ReliablePub {
        self.with_other(aio::Pub::into_blocking)
    }
}

/// Sends and keeps a message. A refused message stays unchanged.
fn publish(socket: &mut Pub, ring: &Mutex<Ring>, message: &mut KeptMessage, flags: Flags) -> Result<()> {
    let KeptMessage { number, topic, body } = message;
    let parts = [topic.share(), Message::from(&encode(*number)), body.share()];
    // Send under the lock that each request also takes. A subscriber that misses the message then
    // finds it in the ring.
    let mut ring = ring.lock().unwrap_or_else(PoisonError::into_inner);
    send_parts(&mut socket.inner, parts, flags)?;
    ring.push(KeptMessage { number: *number, topic: mem::take(topic), body: mem::take(body) });
    Ok(())
}

impl<S: AsMut<Pub>> ReliablePub<S> {
    /// Replaces the socket by its other form.
    fn with_other<T>(self, convert: impl FnOnce(S) -> T) -> ReliablePub<T> {
        ReliablePub {
            socket: convert(self.socket),
            router: self.router,
            has_certificates: self.has_certificates,
            context: self.context,
            ring: self.ring,
            next: self.next,
            epoch: self.epoch,
            servers: self.servers,
        }
    }

    /// Accepts subscribers at an endpoint. Returns the endpoint with its port.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::bind`](crate::Socket::bind).
    pub fn bind(&mut self, endpoint: &str) -> Result<String> {
        self.socket.as_mut().bind(endpoint)
    }

    /// Connects to a subscriber or a proxy.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::connect`](crate::Socket::connect).
    pub fn connect(&mut self, endpoint: &str) -> Result<()> {
        self.socket.as_mut().connect(endpoint)
    }

    /// Answers requests for kept messages at an endpoint, from its own thread. Returns the endpoint
    /// with its port. Peers need the same keys or passwords as at the PUB.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::bind`](crate::Socket::bind) and
    /// [`Socket::new`](crate::Socket::new); [`Error::Invalid`](crate::Error::Invalid) if the
    /// endpoint would be less protected than the PUB.
    pub fn serve(&mut self, endpoint: &str) -> Result<String> {
        let mut router = self.router.make()?;
        protection::compare(self.socket.as_mut(), self.has_certificates, &mut router, endpoint)?;
        protection::expect_server(&mut router, endpoint)?;
        let bound = router.bind(endpoint)?;
        self.servers.push(Server::start(&self.context, router, self.ring.clone(), encode(self.epoch))?);
        Ok(bound)
    }

    /// Returns the number of the next message.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Returns the number of kept messages.
    pub fn kept_messages(&self) -> usize {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the PUB, for its options, statistics and monitor.
    pub fn socket(&mut self) -> &mut S {
        &mut self.socket
    }
}
