//! Options that are set before a socket exists. Those of security and of the transports have files
//! of their own.

mod security;
mod transport;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use tautline_core::Secret;

use crate::error::{Error, Result};
use crate::kind::{Asks, Greets, Kind, Probes, Publishes, Receives, Routes, Sends, Subscribes};
use crate::{Context, Socket, option, socket};

/// The options of a socket to be, with Rust types; see `zmq_setsockopt(3)` for each. A value that
/// is out of range is reported when the socket is made.
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
    /// Some are passwords and keys.
    options: Vec<(i32, Secret<Vec<u8>>)>,
    fault: Option<Error>,
    kind: PhantomData<fn() -> K>,
}

/// How the socket is made, and what all kinds have in common.
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
/// // What is out of range is told by the call that makes the socket, and so is an option that does not go with the others.
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

    /// The socket, neither bound nor connected.
    ///
    /// # Errors
    /// [`Error::Invalid`] if an option is out of range; those of [`Socket::new`].
    pub fn build(self) -> Result<Socket<K>> {
        self.make()
    }

    /// A socket with these options, of any number.
    pub(crate) fn make(&self) -> Result<Socket<K>> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut socket = Socket::new(&self.context)?;
        for (number, value) in &self.options {
            match *number {
                // XSUB does it by a message.
                option::SUBSCRIBE => socket::subscribe(&mut socket.inner, value, true)?,
                number => socket.set_raw_option(number, value)?,
            }
        }
        Ok(socket)
    }

    /// The socket, bound to an endpoint. [`Socket::last_endpoint`] tells the port if it was left
    /// open.
    ///
    /// # Errors
    /// Those of [`build`](Self::build) and [`Socket::bind`].
    pub fn bind(self, endpoint: &str) -> Result<Socket<K>> {
        let mut socket = self.build()?;
        socket.bind(endpoint)?;
        Ok(socket)
    }

    /// The socket, connected to an endpoint.
    ///
    /// # Errors
    /// Those of [`build`](Self::build) and [`Socket::connect`].
    pub fn connect(self, endpoint: &str) -> Result<Socket<K>> {
        let mut socket = self.build()?;
        socket.connect(endpoint)?;
        Ok(socket)
    }

    /// Any option by its number in `zmq.h`, in the form of `zmq_setsockopt(3)`.
    pub fn raw_option(mut self, number: i32, value: &[u8]) -> Self {
        self.options.push((number, Secret::new(value.to_vec())));
        self
    }

    /// Puts the options of `other` that are about connections before those set so far: addresses,
    /// keys, certificates, timeouts of connections. Those of its queues and its kind stay behind.
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
            Err(_) => self.refuse(option::too_much(number, i32::MAX, value)),
        }
    }

    /// The first fault is the one that is told.
    fn refuse(mut self, fault: Error) -> Self {
        self.fault.get_or_insert(fault);
        self
    }

    fn time(self, number: i32, value: Duration) -> Self {
        match option::millis(number, value) {
            Ok(value) => self.int(number, value),
            Err(fault) => self.refuse(fault),
        }
    }

    fn forever(self, number: i32, value: Option<Duration>) -> Self {
        match value {
            Some(value) => self.time(number, value),
            None => self.int(number, -1),
        }
    }

    /// For how long what is queued is sent after the socket is dropped. `None`: until it is sent,
    /// the default of all kinds but SUB and XSUB; then [`Context::terminate`] may wait for ever for
    /// a peer that is not there.
    pub fn linger(self, time: impl Into<Option<Duration>>) -> Self {
        self.forever(option::LINGER, time.into())
    }

    /// The name by which a ROUTER knows this socket, 1 to 255 bytes.
    pub fn routing_id(self, id: impl AsRef<[u8]>) -> Self {
        self.raw_option(option::ROUTING_ID, id.as_ref())
    }

    /// After how long a lost or refused connection is tried again (100 ms); `None`: never.
    pub fn reconnect_interval(self, time: impl Into<Option<Duration>>) -> Self {
        self.forever(option::RECONNECT_IVL, time.into())
    }

    /// Up to where that doubles with each failure; zero: it does not (the default).
    pub fn reconnect_interval_max(self, time: Duration) -> Self {
        self.time(option::RECONNECT_IVL_MAX, time)
    }

    /// After how long a TCP connect is given up and tried anew; zero: when the system does.
    pub fn connect_timeout(self, time: Duration) -> Self {
        self.time(option::CONNECT_TIMEOUT, time)
    }

    /// How long a new connection has for its handshake (30 s); zero: any time.
    pub fn handshake_interval(self, time: Duration) -> Self {
        self.time(option::HANDSHAKE_IVL, time)
    }

    /// How often a silent peer is asked for a sign of life; zero: never (the default).
    pub fn heartbeat_interval(self, time: Duration) -> Self {
        self.time(option::HEARTBEAT_IVL, time)
    }

    /// After how long without a sign of life a connection is lost. The default is the interval.
    pub fn heartbeat_timeout(self, time: Duration) -> Self {
        self.time(option::HEARTBEAT_TIMEOUT, time)
    }

    /// After how long without a sign of life from us the peer shall give us up.
    pub fn heartbeat_ttl(self, time: Duration) -> Self {
        self.time(option::HEARTBEAT_TTL, time)
    }

    /// Queue messages only for connections that are complete, not for peers still to be reached.
    pub fn immediate(self, on: bool) -> Self {
        self.int(option::IMMEDIATE, on.into())
    }

    /// Allow IPv6 addresses and names.
    pub fn ipv6(self, on: bool) -> Self {
        self.int(option::IPV6, on.into())
    }

    /// How many connections may wait to be accepted (100).
    pub fn backlog(self, connections: u32) -> Self {
        self.count(option::BACKLOG, connections)
    }

    /// A property that peers find with each message
    /// ([`Message::property`](crate::Message::property)). Its name must begin with `X-` and have no
    /// colon.
    pub fn property(self, name: &str, value: &str) -> Self {
        self.raw_option(option::METADATA, format!("{name}:{value}").as_bytes())
    }

    /// Keep the newest message only, in each direction. For messages of one part.
    pub fn conflate(self, on: bool) -> Self {
        self.int(option::CONFLATE, on.into())
    }
}

/// Sending.
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
///     .linger(None) // the default: what is queued is sent, however long that takes
///     .build()?;
/// assert_eq!(push.send("nobody is there"), Err(Error::WouldBlock));
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// How many messages may wait for each peer (1000); 0: any number.
    pub fn send_hwm(self, messages: u32) -> Self
    where
        K: Sends,
    {
        self.count(option::SNDHWM, messages)
    }

    /// How long a send waits for room; `None`: for ever, the default.
    pub fn send_timeout(self, time: impl Into<Option<Duration>>) -> Self
    where
        K: Sends,
    {
        self.forever(option::SNDTIMEO, time.into())
    }
}

/// Receiving.
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
/// assert_eq!(pull.recv().unwrap_err(), Error::WouldBlock);
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// How many messages of each peer may wait to be received (1000); 0: any number.
    pub fn receive_hwm(self, messages: u32) -> Self
    where
        K: Receives,
    {
        self.count(option::RCVHWM, messages)
    }

    /// How long a receive waits; `None`: for ever, the default.
    pub fn receive_timeout(self, time: impl Into<Option<Duration>>) -> Self
    where
        K: Receives,
    {
        self.forever(option::RCVTIMEO, time.into())
    }

    /// The longest message part that a peer may send, in bytes; a peer that sends a longer one is
    /// disconnected. `None`: any length.
    pub fn max_message_size(self, bytes: impl Into<Option<u64>>) -> Self
    where
        K: Receives,
    {
        self.size(option::MAXMSGSIZE, bytes.into())
    }

    /// The longest message that a peer may send, in bytes, all of its parts with their headers (2
    /// or 9 bytes each); a peer that sends a longer one is disconnected. `None`, the default: 1024
    /// times the longest part, and no less than 64 MiB, if parts are limited; else any length.
    pub fn max_multipart_size(self, bytes: impl Into<Option<u64>>) -> Self
    where
        K: Receives,
    {
        self.size(option::MAX_MULTIPART_SIZE, bytes.into())
    }

    fn size(self, number: i32, bytes: Option<u64>) -> Self {
        match bytes.map_or(Ok(-1), i64::try_from) {
            Ok(bytes) => self.raw_option(number, &bytes.to_ne_bytes()),
            Err(_) => self.refuse(option::too_much(number, i64::MAX, bytes.unwrap_or_default())),
        }
    }
}

/// Peers with routing ids.
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
    /// Report messages that no peer can be found for as [`Error::Unroutable`] instead of dropping
    /// them, and wait for room instead of dropping at the high-water mark.
    pub fn router_mandatory(self, on: bool) -> Self
    where
        K: Routes,
    {
        self.int(option::ROUTER_MANDATORY, on.into())
    }

    /// A new peer with the routing id of another one takes its place.
    pub fn router_handover(self, on: bool) -> Self
    where
        K: Routes,
    {
        self.int(option::ROUTER_HANDOVER, on.into())
    }
}

/// Telling a ROUTER.
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
    /// Tell a ROUTER at the other end that this socket is there, by an empty message, as soon as it
    /// is connected.
    pub fn probe_router(self, on: bool) -> Self
    where
        K: Probes,
    {
        self.int(option::PROBE_ROUTER, on.into())
    }
}

/// Subscribing.
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
    /// Subscribes to all messages whose first part begins with `prefix`; an empty prefix is
    /// everything. May be called several times.
    pub fn subscribe(self, prefix: impl AsRef<[u8]>) -> Self
    where
        K: Subscribes,
    {
        self.raw_option(option::SUBSCRIBE, prefix.as_ref())
    }
}

/// Publishing.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::time::Duration;
/// use tautline::{Context, Pub};
///
/// // Waits for slow subscribers, a second at most, instead of leaving them out.
/// let publisher = Pub::builder(&Context::new())
///     .no_drop(true)
///     .send_timeout(Duration::from_secs(1))
///     .max_subscriptions(64 << 20)
///     .bind("tcp://127.0.0.1:*")?;
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Refuse a message that a subscriber has no room for, instead of dropping it for that
    /// subscriber.
    pub fn no_drop(self, on: bool) -> Self
    where
        K: Publishes,
    {
        self.int(option::XPUB_NODROP, on.into())
    }

    /// What the subscriptions of one peer may take, in bytes of memory (512 MiB: one to four
    /// million topics); a peer that goes beyond is disconnected. `None`: any number. Zero is an
    /// error.
    pub fn max_subscriptions(self, bytes: impl Into<Option<u64>>) -> Self
    where
        K: Publishes,
    {
        self.size(option::MAX_SUBSCRIPTIONS, bytes.into())
    }
}

/// Messages when a peer comes and when it goes.
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
    /// What each new peer gets first, as if it had been sent to it.
    pub fn hello_message(self, message: impl AsRef<[u8]>) -> Self
    where
        K: Greets,
    {
        self.raw_option(option::HELLO_MSG, message.as_ref())
    }
}

impl Builder<crate::kind::Router> {
    /// What is received when a peer is gone, as if it had sent it.
    pub fn disconnect_message(self, message: impl AsRef<[u8]>) -> Self {
        self.raw_option(option::DISCONNECT_MSG, message.as_ref())
    }
}

/// What a publisher sees of its subscribers.
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
    /// Show every subscription, not only the first one to each topic.
    pub fn verbose(self, on: bool) -> Self {
        self.int(option::XPUB_VERBOSE, on.into())
    }

    /// Show every unsubscription too, not only the last one of each topic.
    pub fn verboser(self, on: bool) -> Self {
        self.int(option::XPUB_VERBOSER, on.into())
    }

    /// What a new subscriber gets first, if it has subscribed to its beginning.
    pub fn welcome_message(self, message: impl AsRef<[u8]>) -> Self {
        self.raw_option(option::XPUB_WELCOME_MSG, message.as_ref())
    }
}

/// Asking again.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Req};
///
/// let mut client = Req::builder(&Context::new()).relaxed(true).correlate(true).connect("tcp://127.0.0.1:5555")?;
/// client.send("question")?;
/// client.send("the same question, since no answer came")?; // would be an error otherwise
/// # client.set_linger(Some(std::time::Duration::ZERO))?;
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Number the questions, so that an answer to an earlier one is recognised and dropped.
    pub fn correlate(self, on: bool) -> Self
    where
        K: Asks,
    {
        self.int(option::REQ_CORRELATE, on.into())
    }

    /// Allow a new question before the answer to the last one has come. To be used with
    /// [`correlate`](Self::correlate).
    pub fn relaxed(self, on: bool) -> Self
    where
        K: Asks,
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
