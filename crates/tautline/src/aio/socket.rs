//! The async socket: every call that may wait is a future.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use tautline_core::poller::{POLLIN, POLLOUT};
use tautline_core::{self as core, Flags};

use super::park::Park;
use crate::batch::{frames, multiparts, try_send_frame};
use crate::error::{Error, Result};
use crate::kind::{Addresses, HasMultipart, Kind, Receives, Sends, Subscribes};
use crate::message::{Frame, Message, Multipart};
use crate::routing::{self, RoutingId};
use crate::socket::{send_parts, subscribe};

/// A ZeroMQ socket of the kind `K` for async programs, from [`crate::Socket::into_async`].
///
/// A task that both sends and receives uses `select!` over [`recv`](Self::recv) and its other
/// sources, and sends in between. The future of [`recv`](Self::recv) can be dropped at any time.
/// Kinds that send and receive independently can be [split](Self::split).
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// use tautline::{Context, Error, Rep, Req};
///
/// let context = Context::new();
/// let mut service = Rep::new(&context)?.into_async();
/// let endpoint = service.bind("tcp://127.0.0.1:*")?;
/// let mut client = Req::builder(&context).connect(&endpoint)?.into_async();
///
/// client.send_multipart(["question", "2"]).await?;
/// let question = service.recv_multipart().await?;
/// service.send(format!("{} parts", question.len())).await?;
/// assert_eq!(client.recv().await?, "2 parts");
/// assert!(matches!(client.try_recv(), Err(Error::WrongState(_))));
/// # Ok(()) })
/// # }
/// ```
pub struct Socket<K: Kind> {
    pub(super) socket: crate::Socket<K>,
    park: Park,
    /// Message of the `Sink` that waits for room in a peer's queue.
    #[cfg(feature = "futures")]
    pub(super) unsent_message: Option<Multipart>,
}

impl<K: Kind> crate::Socket<K> {
    /// Converts the socket for an async program. Options stay in force, except the timeouts, which
    /// only apply to threads. Use the timeouts of your runtime instead.
    #[must_use]
    pub fn into_async(self) -> Socket<K> {
        Socket {
            socket: self,
            park: Park::default(),
            #[cfg(feature = "futures")]
            unsent_message: None,
        }
    }
}

impl<K: Kind> AsMut<crate::Socket<K>> for Socket<K> {
    fn as_mut(&mut self) -> &mut crate::Socket<K> {
        self.get_mut()
    }
}

/// Configuration, and conversion to a blocking socket.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// use std::time::Duration;
/// use tautline::{Context, Pull, Push};
///
/// let context = Context::new();
/// let mut pull = Pull::new(&context)?.into_async();
/// let endpoint = pull.bind("tcp://127.0.0.1:*")?;
/// let mut push = Push::new(&context)?.into_async();
/// push.connect(&endpoint)?;
/// push.get_mut().set_linger(Some(Duration::from_secs(1)))?;
/// push.send("hello").await?;
/// push.flush(); // rarely needed, see `tautline::Socket::flush`
/// assert_eq!(pull.into_blocking().recv()?, "hello");
/// # Ok(()) })
/// # }
/// ```
impl<K: Kind> Socket<K> {
    /// Converts the socket for a thread.
    #[must_use]
    pub fn into_blocking(self) -> crate::Socket<K> {
        self.socket
    }

    /// Returns the inner socket.
    pub fn get_ref(&self) -> &crate::Socket<K> {
        &self.socket
    }

    /// Returns the inner socket, for every call that does not wait: options, endpoints, the `try_`
    /// methods. Its blocking calls would block the executor.
    pub fn get_mut(&mut self) -> &mut crate::Socket<K> {
        &mut self.socket
    }

    /// See [`crate::Socket::bind`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Socket::bind`].
    pub fn bind(&mut self, endpoint: &str) -> Result<String> {
        self.socket.bind(endpoint)
    }

    /// See [`crate::Socket::connect`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Socket::connect`].
    pub fn connect(&mut self, endpoint: &str) -> Result<()> {
        self.socket.connect(endpoint)
    }

    /// Polls until a retry of the operation of `events` is worthwhile.
    pub(crate) fn poll_wait(&mut self, cx: &mut Context<'_>, events: i16) -> Poll<Result<()>> {
        self.park.poll(cx, &mut self.socket.inner, events).map_err(Error::from)
    }

    /// True if a wait of the `Stream` or the `Sink` is still registered.
    #[cfg(feature = "futures")]
    pub(super) fn is_waiting(&self) -> bool {
        self.park.is_waiting()
    }

    /// Abandons the current wait.
    pub(crate) fn stop_waiting(&mut self) {
        self.park.cancel_wait(&mut self.socket.inner);
    }

    /// See [`crate::Socket::flush`].
    pub fn flush(&mut self) {
        self.socket.flush();
    }

    /// Repeats `attempt` until it no longer returns `WouldBlock`.
    pub(crate) async fn retry_until_ready<T>(
        &mut self,
        events: i16,
        mut attempt: impl FnMut(&mut crate::Socket<K>) -> Result<T>,
    ) -> Result<T> {
        loop {
            match attempt(&mut self.socket) {
                Err(Error::WouldBlock) => {
                    let wait = WaitGuard(self);
                    poll_fn(|cx| wait.0.poll_wait(cx, events)).await?;
                }
                outcome => return outcome,
            }
        }
    }
}

/// A wait in progress. If it is dropped early, it restores the state before the wait.
struct WaitGuard<'a, K: Kind>(&'a mut Socket<K>);

impl<K: Kind> Drop for WaitGuard<'_, K> {
    fn drop(&mut self) {
        self.0.stop_waiting();
    }
}

/// Sending messages.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// # let context = tautline::Context::new();
/// # let mut pull = tautline::Pull::builder(&context).bind("inproc://sending")?;
/// let mut push = tautline::Push::builder(&context).connect("inproc://sending")?.into_async();
/// push.send("text").await?;
/// push.send(vec![0; 100_000]).await?; // moved, not copied
/// assert_eq!(push.send_batch(["one", "two"]).await?, 2);
/// push.try_send("if there is room")?;
/// # assert_eq!(pull.recv_batch(&mut Vec::new(), 5)?, 5);
/// # Ok(()) })
/// # }
/// ```
impl<K: Kind> Socket<K> {
    /// Sends a message of one part; waits while every peer is at its high-water mark.
    ///
    /// Cancel safe: if the future is dropped early, no message was sent.
    ///
    /// # Errors
    /// If the call fails, the message was not sent. Returns [`Error::WrongState`],
    /// [`Error::Unroutable`] or [`Error::Terminated`].
    pub async fn send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()>
    where
        K: Sends,
    {
        let mut frame = frame.into();
        self.retry_until_ready(POLLOUT, |socket| try_send_frame(&mut socket.inner, &mut frame)).await
    }

    /// Sends messages of one part each; returns the number of sent messages, which is all unless
    /// there is an error. They are written together, see [`crate::Socket::send_batch`].
    ///
    /// Not cancel safe: if the future is dropped early, some messages may have been sent.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send) if the first message failed. An owned message
    /// that failed is dropped.
    pub async fn send_batch<'a, I>(&mut self, messages: I) -> Result<usize>
    where
        K: Sends,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let mut batch = frames(messages);
        let outcome =
            self.retry_until_ready(POLLOUT, |socket| batch.send_all(&mut socket.inner, try_send_frame)).await;
        batch.end(outcome)
    }

    /// Sends without waiting; see [`crate::Socket::try_send`].
    ///
    /// # Errors
    /// Returns [`Error::WouldBlock`] if the call would have to wait, and the errors of
    /// [`send`](Self::send).
    pub fn try_send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()>
    where
        K: Sends,
    {
        self.socket.try_send(frame)
    }
}

impl<K: Kind> Socket<K> {
    /// Sends a message of several parts: either all parts or none.
    ///
    /// Cancel safe: if the future is dropped early, no message was sent.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if there are no parts, and the errors of [`send`](Self::send).
    pub async fn send_multipart<'a, I>(&mut self, parts: I) -> Result<()>
    where
        K: Sends + HasMultipart,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let message = Multipart::collect(parts);
        self.retry_until_ready(POLLOUT, |socket| send_parts(&mut socket.inner, &message, Flags::DONTWAIT))
            .await
    }

    /// Sends messages of several parts, each either whole or not at all. Otherwise like
    /// [`send_batch`](Self::send_batch).
    ///
    /// Not cancel safe: if the future is dropped early, some messages may have been sent.
    ///
    /// # Errors
    /// Returns the errors of [`send_multipart`](Self::send_multipart) if the first message failed.
    /// The message that failed is dropped.
    pub async fn send_multipart_batch<I>(&mut self, messages: I) -> Result<usize>
    where
        K: Sends + HasMultipart,
        I: IntoIterator,
        I::Item: Into<Multipart>,
    {
        let mut batch = multiparts(messages);
        let put = |socket: &mut core::Socket, message: &mut Multipart| {
            send_parts(socket, &*message, Flags::DONTWAIT)
        };
        let outcome = self.retry_until_ready(POLLOUT, |socket| batch.send_all(&mut socket.inner, put)).await;
        batch.end(outcome)
    }
}

/// Receiving messages.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// # let context = tautline::Context::new();
/// # let mut push = tautline::Push::builder(&context).bind("inproc://receiving")?;
/// let mut pull = tautline::Pull::builder(&context).connect("inproc://receiving")?.into_async();
/// # push.send_batch(["one", "two", "three"])?;
/// assert_eq!(pull.recv().await?, "one");
/// let mut buffer = [0; 16];
/// let len = pull.recv_into(&mut buffer).await?;
/// assert_eq!(&buffer[..len], b"two");
/// assert_eq!(pull.try_recv()?, "three");
/// # Ok(()) })
/// # }
/// ```
impl<K: Kind> Socket<K> {
    /// Receives the next part of a message. [`Message::has_more`] is true if more parts follow. All
    /// parts of a message arrive together.
    ///
    /// Cancel safe: if the future is dropped early, no message was taken.
    ///
    /// # Errors
    /// Returns [`Error::WrongState`] or [`Error::Terminated`].
    pub async fn recv(&mut self) -> Result<Message>
    where
        K: Receives,
    {
        self.retry_until_ready(POLLIN, crate::Socket::try_recv).await
    }

    /// Receives the next part into the caller's buffer, without allocating. Returns the length of
    /// the part. If the part is longer than the buffer, the excess bytes are lost.
    ///
    /// Cancel safe: if the future is dropped early, no message was taken.
    ///
    /// # Errors
    /// Returns the errors of [`recv`](Self::recv).
    pub async fn recv_into(&mut self, buffer: &mut [u8]) -> Result<usize>
    where
        K: Receives,
    {
        let attempt = |socket: &mut crate::Socket<K>| {
            let outcome = socket.inner.recv(buffer, Flags::DONTWAIT);
            outcome.map_err(|error| Error::for_receive(error, &socket.inner, Flags::DONTWAIT))
        };
        self.retry_until_ready(POLLIN, attempt).await
    }

    /// Waits for a message, then takes all queued messages; see [`crate::Socket::recv_batch`].
    ///
    /// Cancel safe: if the future is dropped early, no message was taken.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # smol::block_on(async {
    /// # let context = tautline::Context::new();
    /// let mut pull = tautline::Pull::builder(&context).bind("inproc://batch")?.into_async();
    /// let mut push = tautline::Push::builder(&context).connect("inproc://batch")?.into_async();
    /// push.send_batch(["one", "two", "three"]).await?;
    ///
    /// let mut batch = Vec::new();
    /// pull.recv_batch(&mut batch, 100).await?;
    /// assert_eq!(batch, ["one", "two", "three"]);
    /// # Ok(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`recv`](Self::recv).
    pub async fn recv_batch(&mut self, into: &mut Vec<Message>, max: usize) -> Result<usize>
    where
        K: Receives,
    {
        self.retry_until_ready(POLLIN, |socket| socket.try_recv_batch(into, max)).await
    }

    /// Receives without waiting; see [`crate::Socket::try_recv`].
    ///
    /// # Errors
    /// Returns [`Error::WouldBlock`] if no message is queued, and the errors of
    /// [`recv`](Self::recv).
    pub fn try_recv(&mut self) -> Result<Message>
    where
        K: Receives,
    {
        self.socket.try_recv()
    }
}

impl<K: Kind> Socket<K> {
    /// Receives a whole message.
    ///
    /// Cancel safe: if the future is dropped early, no message was taken.
    ///
    /// # Errors
    /// Returns the errors of [`recv`](Self::recv).
    pub async fn recv_multipart(&mut self) -> Result<Multipart>
    where
        K: Receives + HasMultipart,
    {
        self.retry_until_ready(POLLIN, crate::Socket::try_recv_multipart).await
    }
}

/// Peers with routing ids.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// # let context = tautline::Context::new();
/// let mut router = tautline::Router::builder(&context).bind("inproc://addresses")?.into_async();
/// let mut dealer = tautline::Dealer::builder(&context).connect("inproc://addresses")?.into_async();
/// dealer.send("question").await?;
/// let (client, question) = router.recv_from().await?;
/// router.send_to(&client, "answer").await?;
/// router.send_multipart_to(&client, ["to", question[0].as_str().unwrap()]).await?;
/// assert_eq!((dealer.recv().await?.as_str(), dealer.recv_multipart().await?.len()), (Ok("answer"), 2));
/// # router.send_multipart_batch([[client.as_bytes(), b"more"]]).await?;
/// # Ok(()) })
/// # }
/// ```
impl<K: Kind> Socket<K> {
    /// See [`crate::Socket::recv_from`].
    ///
    /// Cancel safe: if the future is dropped early, no message was taken.
    ///
    /// # Errors
    /// Returns the errors of [`recv`](Self::recv).
    pub async fn recv_from(&mut self) -> Result<(RoutingId, Multipart)>
    where
        K: Addresses,
    {
        routing::split_routing_id(self.recv_multipart().await?)
    }

    /// See [`crate::Socket::send_to`].
    ///
    /// Cancel safe: if the future is dropped early, no message was sent.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn send_to<'a>(&mut self, peer: &RoutingId, frame: impl Into<Frame<'a>>) -> Result<()>
    where
        K: Addresses,
    {
        self.send_multipart_to(peer, [frame.into()]).await
    }

    /// See [`crate::Socket::send_multipart_to`].
    ///
    /// Cancel safe: if the future is dropped early, no message was sent.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if there are no parts, and the errors of [`send`](Self::send).
    pub async fn send_multipart_to<'a, I>(&mut self, peer: &RoutingId, parts: I) -> Result<()>
    where
        K: Addresses,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let message = Multipart::collect(parts);
        if message.is_empty() {
            return Err(Error::no_parts());
        }
        let attempt = |socket: &mut crate::Socket<K>| {
            send_parts(&mut socket.inner, routing::addressed(peer, &message), Flags::DONTWAIT)
        };
        self.retry_until_ready(POLLOUT, attempt).await
    }
}

/// Subscriptions.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// # let context = tautline::Context::new();
/// let mut subscriber = tautline::Sub::builder(&context).connect("tcp://127.0.0.1:5556")?.into_async();
/// subscriber.subscribe("weather.")?;
/// subscriber.unsubscribe("weather.")?;
/// # Ok(()) })
/// # }
/// ```
impl<K: Kind> Socket<K> {
    /// See [`crate::Socket::subscribe`].
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn subscribe(&mut self, prefix: impl AsRef<[u8]>) -> Result<()>
    where
        K: Subscribes,
    {
        subscribe(&mut self.socket.inner, prefix.as_ref(), true)
    }

    /// See [`crate::Socket::unsubscribe`].
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub fn unsubscribe(&mut self, prefix: impl AsRef<[u8]>) -> Result<()>
    where
        K: Subscribes,
    {
        subscribe(&mut self.socket.inner, prefix.as_ref(), false)
    }
}

impl<K: Kind> fmt::Debug for Socket<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}
