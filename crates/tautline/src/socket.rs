//! The blocking socket: every call may wait.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use tautline_core::poller::{self, Item, POLLIN, POLLOUT, PollTarget};
use tautline_core::{self as core, Flags};

use crate::error::{Error, Result};
use crate::kind::{HasMultipart, Kind, Receives, Sends, Subscribes};
use crate::message::{Frame, Message, Multipart};
use crate::{Builder, Context, option};

/// A ZeroMQ socket of the kind `K`. One thread uses it at a time, and it can move to another
/// thread.
///
/// Usually named by its kind: [`Push`](crate::Push), [`Sub`](crate::Sub), ... Dropping the socket
/// closes it. Queued messages are still sent in the background, for at most the
/// [`linger`](Builder::linger) time.
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
/// assert_eq!(pull.recv().unwrap_err(), Error::TimedOut);
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
    /// Creates a socket with default options.
    ///
    /// # Errors
    /// Returns [`Error::TooManyOpen`] or [`Error::Terminated`].
    pub fn new(context: &Context) -> Result<Self> {
        let mut inner = context.0.socket(K::TYPE)?;
        // A slice must not change, and another process could change the body of a loan.
        option::set_int(&mut inner, option::LOANS, 0)?;
        #[cfg(feature = "tracing")]
        crate::trace::report_events(&inner);
        Ok(Socket { inner, context: context.clone(), kind: PhantomData })
    }

    /// Returns a builder, to set options before the socket is created.
    pub fn builder(context: &Context) -> Builder<K> {
        Builder::new(context)
    }

    /// Accepts peers at an endpoint, `zmq_bind(3)`: `tcp://127.0.0.1:5555`, `tcp://*:*`,
    /// `ipc:///tmp/name`, `ipc://@abstract`, `inproc://name`. Returns the complete endpoint, for
    /// example with the chosen port; peers can connect to it. Instead of an address, the endpoint
    /// can contain the name of a network interface or of a host. A host name is resolved first, and
    /// the call waits for the result.
    ///
    /// # Errors
    /// Returns [`Error::MalformedEndpoint`], [`Error::UnknownTransport`],
    /// [`Error::WrongTransport`], [`Error::AddressInUse`], [`Error::AddressNotAvailable`],
    /// [`Error::NoSuchDevice`] or [`Error::Terminated`].
    pub fn bind(&mut self, endpoint: &str) -> Result<String> {
        self.inner
            .bind(endpoint)
            .map_err(|error| Error::for_endpoint(error, &self.inner, endpoint, false))?;
        self.last_endpoint()
    }

    /// Returns the complete endpoint that was bound or connected last, for example with its port.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn last_endpoint(&mut self) -> Result<String> {
        option::text(&mut self.inner, option::LAST_ENDPOINT)
    }

    /// Connects to an endpoint in the background, `zmq_connect(3)`. Retries until the peer accepts,
    /// and reconnects after each loss.
    ///
    /// # Errors
    /// Returns [`Error::MalformedEndpoint`], [`Error::UnknownTransport`], [`Error::WrongTransport`]
    /// or [`Error::Terminated`].
    pub fn connect(&mut self, endpoint: &str) -> Result<()> {
        self.inner.connect(endpoint).map_err(|error| Error::for_endpoint(error, &self.inner, endpoint, true))
    }

    /// Undoes a [`bind`](Self::bind). Connected peers stay connected.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if the endpoint is not bound, [`Error::MalformedEndpoint`] or
    /// [`Error::Terminated`].
    pub fn unbind(&mut self, endpoint: &str) -> Result<()> {
        self.inner.unbind(endpoint).map_err(|error| Error::for_endpoint(error, &self.inner, endpoint, false))
    }

    /// Undoes a [`connect`](Self::connect).
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if the endpoint is not connected, [`Error::MalformedEndpoint`]
    /// or [`Error::Terminated`].
    pub fn disconnect(&mut self, endpoint: &str) -> Result<()> {
        self.inner
            .disconnect(endpoint)
            .map_err(|error| Error::for_endpoint(error, &self.inner, endpoint, false))
    }

    /// Sets an option by its number in `zmq.h`, for options without a method in [`Builder`].
    /// `value` has the form of `zmq_setsockopt(3)`.
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
    /// Returns [`Error::Invalid`] for an unknown option or an unsuitable value, or
    /// [`Error::Terminated`].
    pub fn set_raw_option(&mut self, number: i32, value: &[u8]) -> Result<()> {
        option::set(&mut self.inner, number, value)
    }

    /// Reads an option by its number in `zmq.h` into `out`, in the form of `zmq_getsockopt(3)`.
    /// Returns the length of the value.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] for an unknown option or a buffer that is too small, or
    /// [`Error::Terminated`].
    pub fn raw_option(&mut self, number: i32, out: &mut [u8]) -> Result<usize> {
        option::get(&mut self.inner, number, out)
    }

    /// Sets how long a send waits for room in the queue. `None`: without limit.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn set_send_timeout(&mut self, timeout: impl Into<Option<Duration>>) -> Result<()> {
        option::set_duration(&mut self.inner, option::SNDTIMEO, timeout.into())
    }

    /// Sets how long a receive waits. `None`: without limit.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn set_receive_timeout(&mut self, timeout: impl Into<Option<Duration>>) -> Result<()> {
        option::set_duration(&mut self.inner, option::RCVTIMEO, timeout.into())
    }

    /// Sets how long queued messages are still sent after the socket is dropped. `None`: until all
    /// are sent. See [`Builder::linger`].
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn set_linger(&mut self, linger: impl Into<Option<Duration>>) -> Result<()> {
        option::set_duration(&mut self.inner, option::LINGER, linger.into())
    }

    /// Closes the socket, like dropping it. Returns at once. [`Context::terminate`] waits until the
    /// queued messages are sent.
    pub fn close(self) {}

    fn wait(&mut self, events: i16, timeout: Option<Duration>) -> Result<bool> {
        let mut items = [Item { watched: PollTarget::Socket(&mut self.inner), events, revents: 0 }];
        Ok(poller::poll(&mut items, timeout)? > 0)
    }
}

impl<K: Kind> Socket<K> {
    /// Sends a message of one part. Waits while every peer is at its high-water mark. Borrowed
    /// bytes are encoded directly into the queue of the peer.
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
    /// If the call fails, the message was not sent. Returns [`Error::TimedOut`] after the send
    /// timeout, [`Error::WrongState`], [`Error::Unroutable`], [`Error::Interrupted`] or
    /// [`Error::Terminated`].
    #[inline]
    pub fn send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()>
    where
        K: Sends,
    {
        send_part(&mut self.inner, frame.into(), Flags::NONE)
    }

    /// Sends a part of a message, as [`send`](Self::send) does, but never waits.
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
    /// Returns [`Error::WouldBlock`] if the call would have to wait, and the errors of
    /// [`send`](Self::send).
    #[inline]
    pub fn try_send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()>
    where
        K: Sends,
    {
        send_part(&mut self.inner, frame.into(), Flags::DONTWAIT)
    }

    /// Waits until a message can be sent, for at most `timeout` (`None`: without limit). Returns
    /// false after the timeout.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] or [`Error::Terminated`].
    pub fn wait_writable(&mut self, timeout: impl Into<Option<Duration>>) -> Result<bool>
    where
        K: Sends,
    {
        self.wait(POLLOUT, timeout.into())
    }
}

impl<K: Kind> Socket<K> {
    /// Sends a message of several parts: either all parts or none.
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
    /// Returns [`Error::Invalid`] if there are no parts, and the errors of [`send`](Self::send).
    pub fn send_multipart<'a, I>(&mut self, parts: I) -> Result<()>
    where
        K: Sends + HasMultipart,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        send_parts(&mut self.inner, parts, Flags::NONE)
    }

    /// Sends a message of several parts, as [`send_multipart`](Self::send_multipart) does, but
    /// never waits.
    ///
    /// # Errors
    /// Returns [`Error::WouldBlock`] if the call would have to wait, and the errors of
    /// [`send_multipart`](Self::send_multipart).
    pub fn try_send_multipart<'a, I>(&mut self, parts: I) -> Result<()>
    where
        K: Sends + HasMultipart,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        send_parts(&mut self.inner, parts, Flags::DONTWAIT)
    }
}

impl<K: Kind> Socket<K> {
    /// Receives the next part of a message. Waits until a part arrives. [`Message::has_more`] is
    /// true if more parts follow.
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
    /// Returns [`Error::TimedOut`] after the receive timeout, [`Error::WrongState`],
    /// [`Error::Interrupted`] or [`Error::Terminated`].
    #[inline]
    pub fn recv(&mut self) -> Result<Message>
    where
        K: Receives,
    {
        let mut message = Message::new();
        self.inner
            .recv_message(&mut message.0, Flags::NONE)
            .map_err(|error| Error::for_receive(error, &self.inner, Flags::NONE))?;
        Ok(message)
    }

    /// Receives the next part of a message, if one is queued. Never waits.
    ///
    /// # Errors
    /// Returns [`Error::WouldBlock`] if no message is queued, and the errors of
    /// [`recv`](Self::recv).
    #[inline]
    pub fn try_recv(&mut self) -> Result<Message>
    where
        K: Receives,
    {
        let mut message = Message::new();
        self.inner
            .recv_message(&mut message.0, Flags::DONTWAIT)
            .map_err(|error| Error::for_receive(error, &self.inner, Flags::DONTWAIT))?;
        Ok(message)
    }

    /// Receives the next part into the caller's buffer, without allocating. Returns the length of
    /// the part. If the part is longer than the buffer, the excess bytes are lost.
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
    /// Returns the errors of [`recv`](Self::recv).
    #[inline]
    pub fn recv_into(&mut self, buffer: &mut [u8]) -> Result<usize>
    where
        K: Receives,
    {
        self.inner
            .recv(buffer, Flags::NONE)
            .map_err(|error| Error::for_receive(error, &self.inner, Flags::NONE))
    }

    /// Waits until a message can be received, for at most `timeout` (`None`: without limit).
    /// Returns false after the timeout.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] or [`Error::Terminated`].
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
    /// Returns the errors of [`recv`](Self::recv).
    pub fn recv_multipart(&mut self) -> Result<Multipart>
    where
        K: Receives + HasMultipart,
    {
        recv_parts(&mut self.inner, Flags::NONE)
    }

    /// Receives a whole message, if one is queued. Never waits.
    ///
    /// # Errors
    /// Returns [`Error::WouldBlock`] if no message is queued, and the errors of
    /// [`recv`](Self::recv).
    pub fn try_recv_multipart(&mut self) -> Result<Multipart>
    where
        K: Receives + HasMultipart,
    {
        recv_parts(&mut self.inner, Flags::DONTWAIT)
    }
}

impl<K: Kind> Socket<K> {
    /// Subscribes to all messages whose first part begins with `prefix`. An empty prefix matches
    /// every message. The subscription takes a moment to reach the publishers.
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
    /// Returns [`Error::Terminated`].
    pub fn subscribe(&mut self, prefix: impl AsRef<[u8]>) -> Result<()>
    where
        K: Subscribes,
    {
        subscribe(&mut self.inner, prefix.as_ref(), true)
    }

    /// Cancels one subscription to `prefix`.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn unsubscribe(&mut self, prefix: impl AsRef<[u8]>) -> Result<()>
    where
        K: Subscribes,
    {
        subscribe(&mut self.inner, prefix.as_ref(), false)
    }
}

/// Lets generic code such as [`topics`](crate::topics) take a blocking or an async socket.
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
pub(crate) fn send_part(socket: &mut core::Socket, frame: Frame<'_>, flags: Flags) -> Result<()> {
    match frame {
        Frame::Borrowed(bytes) => socket.send(bytes, flags),
        Frame::Owned(mut message) => socket.send_message(&mut message.0, flags),
    }
    .map_err(|error| Error::for_send(error, socket, flags))
}

/// Sends all parts. Only the first part can be refused. The peer that takes it takes the others.
pub(crate) fn send_parts<'a, I>(socket: &mut core::Socket, parts: I, flags: Flags) -> Result<()>
where
    I: IntoIterator,
    I::Item: Into<Frame<'a>>,
{
    send_each_part(parts, flags, |part, flags| send_part(socket, part, flags))
}

/// Sends all parts, each by a call of `put`.
pub(crate) fn send_each_part<'a, I>(
    parts: I,
    flags: Flags,
    mut put: impl FnMut(Frame<'a>, Flags) -> Result<()>,
) -> Result<()>
where
    I: IntoIterator,
    I::Item: Into<Frame<'a>>,
{
    let mut parts = parts.into_iter();
    let mut part = parts.next().ok_or_else(Error::no_parts)?.into();
    for next in parts {
        put(part, Flags(flags.0 | Flags::MORE.0))?;
        part = next.into();
    }
    put(part, flags)
}

/// Receives all parts of a message. They are all queued as soon as the first one is.
pub(crate) fn recv_parts(socket: &mut core::Socket, flags: Flags) -> Result<Multipart> {
    recv_each_part(|| {
        let mut part = Message::new();
        socket.recv_message(&mut part.0, flags).map_err(|error| Error::for_receive(error, socket, flags))?;
        Ok(part)
    })
}

/// Receives all parts, each by a call of `take`.
pub(crate) fn recv_each_part(mut take: impl FnMut() -> Result<Message>) -> Result<Multipart> {
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

/// Subscribes or unsubscribes by an option or by a message, depending on the socket type.
pub(crate) fn subscribe(socket: &mut core::Socket, prefix: &[u8], on: bool) -> Result<()> {
    if crate::kind::subscribes_by_message(socket.socket_type()) {
        let message = [&[u8::from(on)], prefix].concat();
        return socket.send(&message, Flags::NONE).map_err(Error::for_limit);
    }
    option::set(socket, if on { option::SUBSCRIBE } else { option::UNSUBSCRIBE }, prefix)
}
