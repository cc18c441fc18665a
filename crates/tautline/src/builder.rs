//! Options that are set before a socket exists. The options for security and for transports have
//! their own files.

mod security;
mod transport;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use tautline_core::Secret;

use crate::error::{Error, Result};
use crate::kind::{Greets, Kind, Probes, Publishes, Receives, Requests, Routes, Sends, Subscribes};
use crate::{Context, Socket, option, socket};

/// Options of a future socket, with Rust types. `zmq_setsockopt(3)` describes each option. The call
/// that creates the socket reports values that are out of range.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::time::Duration;
/// use tautline::{Context, Dealer};
///
/// let context = Context::new();
/// let mut dealer = Dealer::builder(&context)
///     .routing_id("worker-1")
///     .send_hwm(100)
///     .linger(Duration::from_secs(1))
///     .connect("tcp://127.0.0.1:5555")?;
/// # Ok(()) }
/// ```
#[must_use = "a builder makes no socket until `bind`, `connect` or `build` is called"]
pub struct Builder<K: Kind> {
    context: Context,
    /// Options may contain passwords and keys.
    options: Vec<(i32, Secret<Vec<u8>>)>,
    fault: Option<Error>,
    kind: PhantomData<fn() -> K>,
}

/// Creating the socket, and options that all kinds share.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::time::Duration;
/// use tautline::{Context, Dealer, Pull};
///
/// let context = Context::new();
/// let dealer = Dealer::builder(&context)
///     .reconnect_interval(Duration::from_millis(50))
///     .reconnect_interval_max(Duration::from_secs(5))
///     .connect_timeout(Duration::from_secs(3))
///     .handshake_interval(Duration::from_secs(10))
///     .heartbeat_interval(Duration::from_secs(1))
///     .heartbeat_timeout(Duration::from_secs(3))
///     .heartbeat_ttl(Duration::from_secs(3))
///     .immediate(true)
///     .property("X-Version", "7")
///     .connect("tcp://127.0.0.1:5555")?;
/// let newest_only = Pull::builder(&context).conflate(true).ipv6(true).backlog(10).bind("tcp://127.0.0.1:*")?;
///
/// // The call that creates the socket reports values that are out of range, and options that conflict.
/// let absurd = Duration::from_secs(u64::MAX);
/// let error = Dealer::builder(&context).reconnect_interval_max(absurd).build().unwrap_err();
/// assert!(error.to_string().starts_with("ZMQ_RECONNECT_IVL_MAX takes at most 2147483647 ms, not "), "{error}");
/// let error = Dealer::builder(&context).property("no-prefix", "7").build().unwrap_err();
/// assert_eq!(error.to_string(), "ZMQ_METADATA does not take this value of 11 bytes");
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    pub(crate) fn new(context: &Context) -> Self {
        Builder { context: context.clone(), options: Vec::new(), fault: None, kind: PhantomData }
    }

    /// Creates the socket without binding or connecting it.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if an option is out of range, and the errors of [`Socket::new`].
    pub fn build(self) -> Result<Socket<K>> {
        self.make()
    }

    /// Creates a socket with these options; the builder may be used again.
    pub(crate) fn make(&self) -> Result<Socket<K>> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut socket = Socket::new(&self.context)?;
        for (number, value) in &self.options {
            match *number {
                // XSUB subscribes by a message.
                option::SUBSCRIBE => socket::subscribe(&mut socket.inner, value, true)?,
                number => socket.set_raw_option(number, value)?,
            }
        }
        Ok(socket)
    }

    /// Creates the socket and binds it to an endpoint. If the endpoint leaves the port open,
    /// [`Socket::last_endpoint`] returns it.
    ///
    /// # Errors
    /// Returns the errors of [`build`](Self::build) and [`Socket::bind`].
    pub fn bind(self, endpoint: &str) -> Result<Socket<K>> {
        let mut socket = self.build()?;
        socket.bind(endpoint)?;
        Ok(socket)
    }

    /// Creates the socket and connects it to an endpoint.
    ///
    /// # Errors
    /// Returns the errors of [`build`](Self::build) and [`Socket::connect`].
    pub fn connect(self, endpoint: &str) -> Result<Socket<K>> {
        let mut socket = self.build()?;
        socket.connect(endpoint)?;
        Ok(socket)
    }

    /// Sets any option by its number in `zmq.h`, in the form of `zmq_setsockopt(3)`.
    pub fn raw_option(mut self, number: i32, value: &[u8]) -> Self {
        self.options.push((number, Secret::new(value.to_vec())));
        self
    }

    /// Inserts the connection options of `other` before the options set so far: addresses, keys,
    /// certificates, connection timeouts. The options of its queues and of its kind are not copied.
    pub(crate) fn inherit<J: Kind>(mut self, other: &Builder<J>) -> Self {
        let inherited = other.options.iter().filter(|(number, _)| !option::OF_ONE_SOCKET.contains(number));
        self.options.splice(0..0, inherited.cloned().collect::<Vec<_>>());
        self.fault = other.fault.clone().or(self.fault);
        self
    }

    /// True if one of the options with these numbers was set.
    pub(crate) fn has_any(&self, numbers: &[i32]) -> bool {
        self.options.iter().any(|(number, _)| numbers.contains(number))
    }

    fn int(self, number: i32, value: i32) -> Self {
        self.raw_option(number, &value.to_ne_bytes())
    }

    fn count(self, number: i32, value: u32) -> Self {
        match i32::try_from(value) {
            Ok(value) => self.int(number, value),
            Err(_) => self.record_error(option::above_limit_error(number, i32::MAX, value)),
        }
    }

    /// Records `fault`, unless an earlier fault is recorded.
    fn record_error(mut self, fault: Error) -> Self {
        self.fault.get_or_insert(fault);
        self
    }

    fn time(self, number: i32, value: Duration) -> Self {
        match option::millis(number, value) {
            Ok(value) => self.int(number, value),
            Err(fault) => self.record_error(fault),
        }
    }

    fn forever(self, number: i32, value: Option<Duration>) -> Self {
        match value {
            Some(value) => self.time(number, value),
            None => self.int(number, -1),
        }
    }

    /// Sets how long queued messages are still sent after the socket is dropped. `None` means until
    /// all are sent. This is the default of all kinds except SUB and XSUB. With `None`,
    /// [`Context::terminate`] may wait forever for a peer that is absent.
    pub fn linger(self, time: impl Into<Option<Duration>>) -> Self {
        self.forever(option::LINGER, time.into())
    }

    /// Sets the name by which a ROUTER knows this socket, 1 to 255 bytes.
    pub fn routing_id(self, id: impl AsRef<[u8]>) -> Self {
        self.raw_option(option::ROUTING_ID, id.as_ref())
    }

    /// Sets the delay before a lost or refused connection is retried (100 ms). `None`: no retry.
    pub fn reconnect_interval(self, time: impl Into<Option<Duration>>) -> Self {
        self.forever(option::RECONNECT_IVL, time.into())
    }

    /// Sets the maximum reconnect delay. The delay doubles with each failure up to this maximum.
    /// Zero, the default: the delay does not grow.
    pub fn reconnect_interval_max(self, time: Duration) -> Self {
        self.time(option::RECONNECT_IVL_MAX, time)
    }

    /// Sets the timeout of a TCP connect, after which it is retried. Zero: the system's timeout.
    pub fn connect_timeout(self, time: Duration) -> Self {
        self.time(option::CONNECT_TIMEOUT, time)
    }

    /// Sets the timeout of the handshake of a new connection (30 s). Zero: no timeout.
    pub fn handshake_interval(self, time: Duration) -> Self {
        self.time(option::HANDSHAKE_IVL, time)
    }

    /// Sets the interval of heartbeats to a silent peer. Zero, the default: no heartbeats.
    pub fn heartbeat_interval(self, time: Duration) -> Self {
        self.time(option::HEARTBEAT_IVL, time)
    }

    /// Sets how long a peer may be silent before its connection is closed. The default is the
    /// interval.
    pub fn heartbeat_timeout(self, time: Duration) -> Self {
        self.time(option::HEARTBEAT_TIMEOUT, time)
    }

    /// Sets the heartbeat timeout that the peer applies to us.
    pub fn heartbeat_ttl(self, time: Duration) -> Self {
        self.time(option::HEARTBEAT_TTL, time)
    }

    /// Queues messages only for established connections, not for peers that are still being
    /// connected.
    pub fn immediate(self, on: bool) -> Self {
        self.int(option::IMMEDIATE, on.into())
    }

    /// Allows IPv6 addresses and names.
    pub fn ipv6(self, on: bool) -> Self {
        self.int(option::IPV6, on.into())
    }

    /// Sets how many connections may wait to be accepted (100).
    pub fn backlog(self, connections: u32) -> Self {
        self.count(option::BACKLOG, connections)
    }

    /// Adds a property that peers receive with each message
    /// ([`Message::property`](crate::Message::property)). Its name must begin with `X-` and must
    /// not contain a colon.
    pub fn property(self, name: &str, value: &str) -> Self {
        self.raw_option(option::METADATA, format!("{name}:{value}").as_bytes())
    }

    /// Keeps only the newest message in each direction. For messages of one part.
    pub fn conflate(self, on: bool) -> Self {
        self.int(option::CONFLATE, on.into())
    }
}

/// Options for sending.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::time::Duration;
/// use tautline::{Context, Error, Push};
///
/// let context = Context::new();
/// let mut push = Push::builder(&context)
///     .send_hwm(10)
///     .send_timeout(Duration::from_millis(1))
///     .linger(None) // the default: keep sending queued messages, without a time limit
///     .build()?;
/// assert_eq!(push.send("nobody is there"), Err(Error::TimedOut));
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Sets how many messages may be queued for each peer (1000). 0: no limit.
    pub fn send_hwm(self, messages: u32) -> Self
    where
        K: Sends,
    {
        self.count(option::SNDHWM, messages)
    }

    /// Sets how long a send waits for room in the queue. `None`, the default: without limit.
    pub fn send_timeout(self, time: impl Into<Option<Duration>>) -> Self
    where
        K: Sends,
    {
        self.forever(option::SNDTIMEO, time.into())
    }
}

/// Options for receiving.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::time::Duration;
/// use tautline::{Context, Error, Pull};
///
/// let mut pull = Pull::builder(&Context::new())
///     .receive_hwm(10)
///     .receive_timeout(Duration::from_millis(1))
///     .max_message_size(1 << 20)
///     .max_multipart_size(16 << 20)
///     .bind("tcp://127.0.0.1:*")?;
/// assert_eq!(pull.recv().unwrap_err(), Error::TimedOut);
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Sets how many messages of each peer may be queued for receiving (1000). 0: no limit.
    pub fn receive_hwm(self, messages: u32) -> Self
    where
        K: Receives,
    {
        self.count(option::RCVHWM, messages)
    }

    /// Sets how long a receive waits. `None`, the default: without limit.
    pub fn receive_timeout(self, time: impl Into<Option<Duration>>) -> Self
    where
        K: Receives,
    {
        self.forever(option::RCVTIMEO, time.into())
    }

    /// Sets the maximum size of a message part, in bytes. A peer that sends a longer part is
    /// disconnected. `None`: no limit.
    pub fn max_message_size(self, bytes: impl Into<Option<u64>>) -> Self
    where
        K: Receives,
    {
        self.size(option::MAXMSGSIZE, bytes.into())
    }

    /// Sets the maximum size of a whole message, in bytes: all parts with their headers (2 or 9
    /// bytes each). A peer that sends a longer message is disconnected. `None`, the default: if
    /// parts are limited, 1024 times the longest part, but at least 64 MiB; otherwise no limit.
    pub fn max_multipart_size(self, bytes: impl Into<Option<u64>>) -> Self
    where
        K: Receives,
    {
        self.size(option::MAX_MULTIPART_SIZE, bytes.into())
    }

    fn size(self, number: i32, bytes: Option<u64>) -> Self {
        match bytes.map_or(Ok(-1), i64::try_from) {
            Ok(bytes) => self.raw_option(number, &bytes.to_ne_bytes()),
            Err(_) => {
                self.record_error(option::above_limit_error(number, i64::MAX, bytes.unwrap_or_default()))
            }
        }
    }
}

/// Options for peers with routing ids.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Error, Router};
///
/// let mut router = Router::builder(&Context::new()).router_mandatory(true).router_handover(true).build()?;
/// assert_eq!(router.send_multipart(["nobody", "hello"]), Err(Error::Unroutable));
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Returns [`Error::Unroutable`] for a message without a matching peer, instead of dropping it.
    /// At the high-water mark, the send waits instead of dropping.
    pub fn router_mandatory(self, on: bool) -> Self
    where
        K: Routes,
    {
        self.int(option::ROUTER_MANDATORY, on.into())
    }

    /// Lets a new peer take over the routing id of a connected peer.
    pub fn router_handover(self, on: bool) -> Self
    where
        K: Routes,
    {
        self.int(option::ROUTER_HANDOVER, on.into())
    }
}

/// Announcing the socket to a ROUTER.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Dealer, Router};
///
/// let context = Context::new();
/// let mut router = Router::builder(&context).bind("inproc://probed")?;
/// let dealer = Dealer::builder(&context).routing_id("me").probe_router(true).connect("inproc://probed")?;
/// assert_eq!(router.recv_multipart()?, tautline::Multipart::from(["me", ""]));
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Sends an empty message to a ROUTER peer as soon as it is connected, to announce this socket.
    pub fn probe_router(self, on: bool) -> Self
    where
        K: Probes,
    {
        self.int(option::PROBE_ROUTER, on.into())
    }
}

/// Options for subscribing.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Pub, Sub};
///
/// let weather = Sub::builder(&Context::new())
///     .subscribe("Lund ")
///     .subscribe("Malmö ")
///     .connect("tcp://127.0.0.1:5556")?;
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Subscribes to all messages whose first part begins with `prefix`. An empty prefix matches
    /// every message. Can be called several times.
    pub fn subscribe(self, prefix: impl AsRef<[u8]>) -> Self
    where
        K: Subscribes,
    {
        self.raw_option(option::SUBSCRIBE, prefix.as_ref())
    }
}

/// Options for publishing.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::time::Duration;
/// use tautline::{Context, Pub};
///
/// // Waits up to a second for slow subscribers, instead of skipping them.
/// let publisher = Pub::builder(&Context::new())
///     .no_drop(true)
///     .send_timeout(Duration::from_secs(1))
///     .max_subscriptions(64 << 20)
///     .bind("tcp://127.0.0.1:*")?;
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Refuses a message if a subscriber's queue is full, instead of dropping it for that
    /// subscriber.
    pub fn no_drop(self, on: bool) -> Self
    where
        K: Publishes,
    {
        self.int(option::XPUB_NODROP, on.into())
    }

    /// Limits the memory for the subscriptions of one peer, in bytes (512 MiB: one to four million
    /// topics). A peer that exceeds the limit is disconnected. `None`: no limit. Zero is an error.
    pub fn max_subscriptions(self, bytes: impl Into<Option<u64>>) -> Self
    where
        K: Publishes,
    {
        self.size(option::MAX_SUBSCRIPTIONS, bytes.into())
    }
}

/// Messages for a new peer and for a lost peer.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Dealer, Router};
///
/// let context = Context::new();
/// let mut router = Router::builder(&context).disconnect_message("gone").build()?;
/// let endpoint = router.bind("tcp://127.0.0.1:*")?;
/// let dealer = Dealer::builder(&context).routing_id("me").hello_message("hello").connect(&endpoint)?;
/// assert_eq!(router.recv_multipart()?, tautline::Multipart::from(["me", "hello"]));
/// drop(dealer);
/// assert_eq!(router.recv_multipart()?, tautline::Multipart::from(["me", "gone"]));
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Sets a message that is sent to each new peer first.
    pub fn hello_message(self, message: impl AsRef<[u8]>) -> Self
    where
        K: Greets,
    {
        self.raw_option(option::HELLO_MSG, message.as_ref())
    }
}

impl Builder<crate::kind::Router> {
    /// Sets a message that this socket receives when a peer disconnects, as if the peer had sent
    /// it.
    pub fn disconnect_message(self, message: impl AsRef<[u8]>) -> Self {
        self.raw_option(option::DISCONNECT_MSG, message.as_ref())
    }
}

/// Subscription messages that a publisher receives.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Sub, XPub};
///
/// let context = Context::new();
/// let mut publisher =
///     XPub::builder(&context).verbose(true).verboser(true).welcome_message("news").bind("inproc://news")?;
/// let mut subscriber = Sub::builder(&context).connect("inproc://news")?;
/// subscriber.subscribe("news")?;
/// assert_eq!(publisher.recv()?, b"\x01news");
/// assert_eq!(subscriber.recv()?, "news");
/// # Ok(()) }
/// ```
impl Builder<crate::kind::XPub> {
    /// Receives every subscription, not only the first one to each topic.
    pub fn verbose(self, on: bool) -> Self {
        self.int(option::XPUB_VERBOSE, on.into())
    }

    /// Also receives every unsubscription, not only the last one of each topic.
    pub fn verboser(self, on: bool) -> Self {
        self.int(option::XPUB_VERBOSER, on.into())
    }

    /// Sets a message that each new subscriber receives first, if its subscription matches.
    pub fn welcome_message(self, message: impl AsRef<[u8]>) -> Self {
        self.raw_option(option::XPUB_WELCOME_MSG, message.as_ref())
    }
}

/// Repeating a request.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Req};
///
/// let mut client = Req::builder(&Context::new()).relaxed(true).correlate(true).connect("tcp://127.0.0.1:5555")?;
/// client.send("question")?;
/// client.send("the same question, since no answer came")?; // without `relaxed`, this is an error
/// # client.set_linger(Some(std::time::Duration::ZERO))?;
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Numbers the requests, so that the reply to an earlier request is recognised and dropped.
    pub fn correlate(self, on: bool) -> Self
    where
        K: Requests,
    {
        self.int(option::REQ_CORRELATE, on.into())
    }

    /// Allows a new request before the reply to the last one has arrived. Use it with
    /// [`correlate`](Self::correlate).
    pub fn relaxed(self, on: bool) -> Self
    where
        K: Requests,
    {
        self.int(option::REQ_RELAXED, on.into())
    }
}

impl<K: Kind> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("kind", &K::TYPE.name())
            .field("options", &self.options.len())
            .finish()
    }
}
