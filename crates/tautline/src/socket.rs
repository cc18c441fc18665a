//! The socket, as a thread uses it: every call may wait.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use tautline_core::poller::{self, Item, POLLIN, POLLOUT, Watched};
use tautline_core::{self as core, Flags};

use crate::error::{Error, Result};
use crate::kind::{Kind, ManyParts, Receives, Sends, Subscribes};
use crate::message::{Frame, Message, Multipart};
use crate::{Builder, Context, option};

/// A ZeroMQ socket of the kind `K`, used by one thread at a time; it may be moved to another.
///
/// Mostly named by its kind: [`Push`](crate::Push), [`Sub`](crate::Sub), ... Dropping closes it:
/// what is queued is still sent in the background, for at most the [`linger`](Builder::linger)
/// time.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::time::Duration;
/// use tautline::{Context, Error, Pull, Push, Socket, kind};
///
/// let context = Context::new();
/// let mut pull = Pull::new(&context)?;
/// let endpoint = pull.bind("tcp://127.0.0.1:*")?;
/// pull.set_receive_timeout(Duration::from_millis(1))?;
/// assert_eq!(pull.recv().unwrap_err(), Error::WouldBlock);
///
/// // For any kind that sends:
/// fn greet<K: kind::Sends>(socket: &mut Socket<K>) -> tautline::Result<()> {
///     socket.send("hello")
/// }
/// let mut push = Push::builder(&context).connect(&endpoint)?;
/// greet(&mut push)?;
/// pull.set_receive_timeout(None)?;
/// assert_eq!(pull.recv()?, "hello");
///
/// push.disconnect(&endpoint)?;
/// pull.unbind(&endpoint)?;
/// push.close();
/// # Ok(()) }
/// ```
pub struct Socket<K: Kind> {
    pub(crate) inner: core::Socket,
    pub(crate) context: Context,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Socket<K> {
    /// A socket with default options.
    ///
    /// # Errors
    /// [`Error::TooMany`], [`Error::Terminated`].
    pub fn new(context: &Context) -> Result<Self> {
        let inner = context.0.socket(K::TYPE)?;
        #[cfg(feature = "tracing")]
        crate::trace::watch(&inner);
        Ok(Socket { inner, context: context.clone(), kind: PhantomData })
    }

    /// A socket whose options are to be set first.
    pub fn builder(context: &Context) -> Builder<K> {
        Builder::new(context)
    }

    /// Waits for peers at an endpoint, `zmq_bind(3)`: `tcp://127.0.0.1:5555`, `tcp://*:*`,
    /// `ipc:///tmp/name`, `ipc://@abstract`, `inproc://name`. Returns the endpoint with everything
    /// filled in, the port for example; peers can connect to it. In place of an address there may
    /// be the name of an interface, or of a host, which is looked up first: the call waits for the
    /// answer.
    ///
    /// # Errors
    /// [`Error::MalformedEndpoint`], [`Error::UnknownTransport`], [`Error::WrongTransport`],
    /// [`Error::AddressInUse`], [`Error::AddressNotAvailable`], [`Error::NoSuchDevice`],
    /// [`Error::Terminated`].
    pub fn bind(&mut self, endpoint: &str) -> Result<String> {
        self.inner.bind(endpoint).map_err(|error| Error::at(error, &self.inner, endpoint, false))?;
        self.last_endpoint()
    }

    /// The endpoint that was bound or connected last, with everything filled in.
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn last_endpoint(&mut self) -> Result<String> {
        option::text(&mut self.inner, option::LAST_ENDPOINT)
    }

    /// Connects to an endpoint in the background, again and again until the peer is there and
    /// whenever it was lost, `zmq_connect(3)`.
    ///
    /// # Errors
    /// [`Error::MalformedEndpoint`], [`Error::UnknownTransport`], [`Error::WrongTransport`],
    /// [`Error::Terminated`].
    pub fn connect(&mut self, endpoint: &str) -> Result<()> {
        self.inner.connect(endpoint).map_err(|error| Error::at(error, &self.inner, endpoint, true))
    }

    /// Takes a [`bind`](Self::bind) back. Peers that are connected stay so.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the endpoint is not bound, [`Error::MalformedEndpoint`],
    /// [`Error::Terminated`].
    pub fn unbind(&mut self, endpoint: &str) -> Result<()> {
        self.inner.unbind(endpoint).map_err(|error| Error::at(error, &self.inner, endpoint, false))
    }

    /// Takes a [`connect`](Self::connect) back.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the endpoint is not connected, [`Error::MalformedEndpoint`],
    /// [`Error::Terminated`].
    pub fn disconnect(&mut self, endpoint: &str) -> Result<()> {
        self.inner.disconnect(endpoint).map_err(|error| Error::at(error, &self.inner, endpoint, false))
    }

    /// Sets an option by its number in `zmq.h`, for what [`Builder`] has no name for. `value` is in
    /// the form of `zmq_setsockopt(3)`.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// const ZMQ_INVERT_MATCHING: i32 = 74;
    ///
    /// let mut publisher = tautline::Pub::new(&tautline::Context::new())?;
    /// publisher.set_raw_option(ZMQ_INVERT_MATCHING, &1_i32.to_ne_bytes())?;
    /// let mut value = [0; 4];
    /// assert_eq!(publisher.raw_option(ZMQ_INVERT_MATCHING, &mut value)?, 4);
    /// assert_eq!(i32::from_ne_bytes(value), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or an unsuitable value, [`Error::Terminated`].
    pub fn set_raw_option(&mut self, number: i32, value: &[u8]) -> Result<()> {
        option::set(&mut self.inner, number, value)
    }

    /// Reads an option by its number in `zmq.h`, in the form of `zmq_getsockopt(3)`, into `out`.
    /// Returns its length.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option or a buffer that is too small,
    /// [`Error::Terminated`].
    pub fn raw_option(&mut self, number: i32, out: &mut [u8]) -> Result<usize> {
        option::get(&mut self.inner, number, out)
    }

    /// How long a send waits for room; `None`: for ever.
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn set_send_timeout(&mut self, timeout: impl Into<Option<Duration>>) -> Result<()> {
        option::set_duration(&mut self.inner, option::SNDTIMEO, timeout.into())
    }

    /// How long a receive waits; `None`: for ever.
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn set_receive_timeout(&mut self, timeout: impl Into<Option<Duration>>) -> Result<()> {
        option::set_duration(&mut self.inner, option::RCVTIMEO, timeout.into())
    }

    /// For how long what is queued is sent after the socket is dropped; `None`: until it is sent.
    /// See [`Builder::linger`].
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn set_linger(&mut self, linger: impl Into<Option<Duration>>) -> Result<()> {
        option::set_duration(&mut self.inner, option::LINGER, linger.into())
    }

    /// Closes the socket, as dropping it does. Returns at once; [`Context::terminate`] waits until
    /// what is queued is sent.
    pub fn close(self) {}

    fn wait(&mut self, events: i16, timeout: Option<Duration>) -> Result<bool> {
        let mut items = [Item { watched: Watched::Socket(&mut self.inner), events, revents: 0 }];
        Ok(poller::poll(&mut items, timeout)? > 0)
    }
}

impl<K: Kind> Socket<K> {
    /// Sends a message of one part; waits while every peer is at its high-water mark. Borrowed
    /// bytes are encoded straight into the queue of the peer.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// # let mut pull = tautline::Pull::new(&context)?;
    /// # pull.bind("inproc://send")?;
    /// let mut push = tautline::Push::new(&context)?;
    /// push.connect("inproc://send")?;
    /// push.send("text")?;
    /// push.send(b"bytes")?;
    /// push.send(vec![0; 100_000])?; // moved, not copied
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::WouldBlock`] after the send timeout, [`Error::WrongState`], [`Error::Unroutable`],
    /// [`Error::Interrupted`], [`Error::Terminated`]. The message was not sent then.
    #[inline]
    pub fn send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()>
    where
        K: Sends,
    {
        put(&mut self.inner, frame.into(), Flags::NONE)
    }

    /// As [`send`](Self::send), without waiting.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::{Context, Error, Push};
    ///
    /// let mut push = Push::new(&Context::new())?;
    /// assert_eq!(push.try_send("nobody is there"), Err(Error::WouldBlock));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if it would have to wait, and those of [`send`](Self::send).
    #[inline]
    pub fn try_send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()>
    where
        K: Sends,
    {
        put(&mut self.inner, frame.into(), Flags::DONTWAIT)
    }

    /// Whether a message can be sent within `timeout` (`None`: for ever).
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::Terminated`].
    pub fn wait_writable(&mut self, timeout: impl Into<Option<Duration>>) -> Result<bool>
    where
        K: Sends,
    {
        self.wait(POLLOUT, timeout.into())
    }
}

impl<K: Kind> Socket<K> {
    /// Sends a message of several parts, all or none of them.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// # let mut pull = tautline::Pull::new(&context)?;
    /// # pull.bind("inproc://parts")?;
    /// let mut push = tautline::Push::new(&context)?;
    /// push.connect("inproc://parts")?;
    /// push.send_multipart(["head", "body"])?;
    /// # assert_eq!(pull.recv_multipart()?.len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] without any part, and those of [`send`](Self::send).
    pub fn send_multipart<'a, I>(&mut self, parts: I) -> Result<()>
    where
        K: Sends + ManyParts,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        put_all(&mut self.inner, parts, Flags::NONE)
    }

    /// As [`send_multipart`](Self::send_multipart), without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if it would have to wait, and those of
    /// [`send_multipart`](Self::send_multipart).
    pub fn try_send_multipart<'a, I>(&mut self, parts: I) -> Result<()>
    where
        K: Sends + ManyParts,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        put_all(&mut self.inner, parts, Flags::DONTWAIT)
    }
}

impl<K: Kind> Socket<K> {
    /// Receives the next part of a message; waits until one is there. [`Message::has_more`] tells
    /// whether others follow.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// # let mut pull = tautline::Pull::builder(&context).bind("inproc://recv")?;
    /// # let mut push = tautline::Push::builder(&context).connect("inproc://recv")?;
    /// push.send_multipart(["head", "body"])?;
    /// let head = pull.recv()?;
    /// assert!(head.has_more());
    /// let body = pull.recv()?;
    /// assert_eq!((head.as_str(), body.as_str()), (Ok("head"), Ok("body")));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::WouldBlock`] after the receive timeout, [`Error::WrongState`],
    /// [`Error::Interrupted`], [`Error::Terminated`].
    #[inline]
    pub fn recv(&mut self) -> Result<Message>
    where
        K: Receives,
    {
        let mut message = Message::new();
        self.inner
            .recv_message(&mut message.0, Flags::NONE)
            .map_err(|error| Error::receiving(error, &self.inner))?;
        Ok(message)
    }

    /// As [`recv`](Self::recv), without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if nothing is there, and those of [`recv`](Self::recv).
    #[inline]
    pub fn try_recv(&mut self) -> Result<Message>
    where
        K: Receives,
    {
        let mut message = Message::new();
        self.inner
            .recv_message(&mut message.0, Flags::DONTWAIT)
            .map_err(|error| Error::receiving(error, &self.inner))?;
        Ok(message)
    }

    /// Receives the next part into the caller's buffer, without any allocation. Returns the length
    /// of the part; if that is more than the buffer has, the rest is lost.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// # let mut pull = tautline::Pull::builder(&context).bind("inproc://into")?;
    /// # let mut push = tautline::Push::builder(&context).connect("inproc://into")?;
    /// push.send("12345")?;
    /// let mut buffer = [0; 16];
    /// let len = pull.recv_into(&mut buffer)?;
    /// assert_eq!(&buffer[..len], b"12345");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn recv_into(&mut self, buffer: &mut [u8]) -> Result<usize>
    where
        K: Receives,
    {
        self.inner.recv(buffer, Flags::NONE).map_err(|error| Error::receiving(error, &self.inner))
    }

    /// Whether a message can be received within `timeout` (`None`: for ever).
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::Terminated`].
    pub fn wait_readable(&mut self, timeout: impl Into<Option<Duration>>) -> Result<bool>
    where
        K: Receives,
    {
        self.wait(POLLIN, timeout.into())
    }
}

impl<K: Kind> Socket<K> {
    /// Receives a whole message.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::Message;
    /// # let context = tautline::Context::new();
    /// # let mut pull = tautline::Pull::builder(&context).bind("inproc://whole")?;
    /// # let mut push = tautline::Push::builder(&context).connect("inproc://whole")?;
    ///
    /// push.send_multipart(["head", "body"])?;
    /// match <[Message; 2]>::try_from(pull.recv_multipart()?) {
    ///     Ok([head, body]) => assert!(head == "head" && body == "body"),
    ///     Err(other) => println!("a message of {} parts", other.len()),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_multipart(&mut self) -> Result<Multipart>
    where
        K: Receives + ManyParts,
    {
        take_all(&mut self.inner, Flags::NONE)
    }

    /// As [`recv_multipart`](Self::recv_multipart), without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if nothing is there, and those of [`recv`](Self::recv).
    pub fn try_recv_multipart(&mut self) -> Result<Multipart>
    where
        K: Receives + ManyParts,
    {
        take_all(&mut self.inner, Flags::DONTWAIT)
    }
}

impl<K: Kind> Socket<K> {
    /// Subscribes to all messages whose first part begins with `prefix`; an empty prefix is
    /// everything. It takes a moment to reach the publishers.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// let mut subscriber = tautline::Sub::new(&context)?;
    /// subscriber.subscribe("weather.")?;
    /// subscriber.subscribe([0x17])?;
    /// subscriber.unsubscribe("weather.")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn subscribe(&mut self, prefix: impl AsRef<[u8]>) -> Result<()>
    where
        K: Subscribes,
    {
        subscribe(&mut self.inner, prefix.as_ref(), true)
    }

    /// Takes one subscription to `prefix` back.
    ///
    /// # Errors
    /// [`Error::Terminated`].
    pub fn unsubscribe(&mut self, prefix: impl AsRef<[u8]>) -> Result<()>
    where
        K: Subscribes,
    {
        subscribe(&mut self.inner, prefix.as_ref(), false)
    }
}

/// As the async socket is to its own.
impl<K: Kind> AsMut<Socket<K>> for Socket<K> {
    fn as_mut(&mut self) -> &mut Socket<K> {
        self
    }
}

impl<K: Kind> fmt::Debug for Socket<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Sends one part.
#[inline(always)] // so that the kind of frame is known where it was made
pub(crate) fn put(socket: &mut core::Socket, frame: Frame<'_>, flags: Flags) -> Result<()> {
    match frame {
        Frame::Borrowed(bytes) => socket.send(bytes, flags),
        Frame::Owned(mut message) => socket.send_message(&mut message.0, flags),
    }
    .map_err(|error| Error::sending(error, socket))
}

/// Sends all parts. Only the first one can be refused: the others are taken by the peer that took
/// it.
pub(crate) fn put_all<'a, I>(socket: &mut core::Socket, parts: I, flags: Flags) -> Result<()>
where
    I: IntoIterator,
    I::Item: Into<Frame<'a>>,
{
    put_each(parts, flags, |part, flags| put(socket, part, flags))
}

/// All parts, each sent by `put`.
pub(crate) fn put_each<'a, I>(
    parts: I,
    flags: Flags,
    mut put: impl FnMut(Frame<'a>, Flags) -> Result<()>,
) -> Result<()>
where
    I: IntoIterator,
    I::Item: Into<Frame<'a>>,
{
    let mut parts = parts.into_iter();
    let mut part = parts.next().ok_or_else(|| Error::invalid("a message has one part at least"))?.into();
    for next in parts {
        put(part, Flags(flags.0 | Flags::MORE.0))?;
        part = next.into();
    }
    put(part, flags)
}

/// Receives all parts of a message; they are there as soon as the first one is.
pub(crate) fn take_all(socket: &mut core::Socket, flags: Flags) -> Result<Multipart> {
    take_each(|| {
        let mut part = Message::new();
        socket.recv_message(&mut part.0, flags).map_err(|error| Error::receiving(error, socket))?;
        Ok(part)
    })
}

/// All parts, each received by `take`.
pub(crate) fn take_each(mut take: impl FnMut() -> Result<Message>) -> Result<Multipart> {
    let mut parts = Vec::new();
    loop {
        let part = take()?;
        let more = part.has_more();
        parts.push(part);
        if !more {
            return Ok(parts.into());
        }
    }
}

/// By an option or by a message, as the type wants it.
pub(crate) fn subscribe(socket: &mut core::Socket, prefix: &[u8], on: bool) -> Result<()> {
    if crate::kind::subscribes_by_message(socket.socket_type()) {
        return Ok(socket.send(&[&[u8::from(on)], prefix].concat(), Flags::NONE)?);
    }
    option::set(socket, if on { option::SUBSCRIBE } else { option::UNSUBSCRIBE }, prefix)
}
