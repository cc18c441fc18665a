//! Many messages in one call, and control over when they are written.
//!
//! A stream of single messages is fast without batches: repeated `send` calls are written in large
//! pieces, and repeated `recv` calls read large pieces. Batches serve programs that have many
//! messages ready, or process many messages at once. A batch is written in one piece as soon as it
//! ends. With single messages, the first one would be written alone, and would wake a peer that
//! waits for all of them.

use tautline_core::{self as core, Flags};

use crate::Socket;
use crate::error::{Error, Result};
use crate::kind::{HasMultipart, Kind, Receives, Sends};
use crate::message::{Frame, Message, Multipart};
use crate::socket::send_parts;

impl<K: Kind> Socket<K> {
    /// Sends messages of one part each; waits like [`send`](Self::send) if necessary. Returns the
    /// number of sent messages: all, or those before the first failure. They are written together
    /// after the last message, or 64 KiB at a time. Batches that follow each other within
    /// microseconds are written like a stream of single messages.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// # let mut pull = tautline::Pull::builder(&context).bind("inproc://batch")?;
    /// let mut push = tautline::Push::builder(&context).connect("inproc://batch")?;
    /// assert_eq!(push.send_batch(["one", "two", "three"])?, 3);
    ///
    /// let mut batch = Vec::new();
    /// assert_eq!(pull.recv_batch(&mut batch, 100)?, 3);
    /// assert_eq!(batch, ["one", "two", "three"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send) if the first message failed. An owned message
    /// that failed is dropped.
    pub fn send_batch<'a, I>(&mut self, messages: I) -> Result<usize>
    where
        K: Sends,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let mut batch = frames(messages);
        let outcome = batch.send_all(&mut self.inner, |socket, frame| send_frame(socket, frame, Flags::NONE));
        batch.end(outcome)
    }

    /// Sends as many of the messages as possible without waiting. Returns their number. See
    /// [`send_batch`](Self::send_batch).
    ///
    /// # Errors
    /// Returns [`Error::WouldBlock`] if the first message cannot be sent now, and the errors of
    /// [`send_batch`](Self::send_batch).
    pub fn try_send_batch<'a, I>(&mut self, messages: I) -> Result<usize>
    where
        K: Sends,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let mut batch = frames(messages);
        let outcome = batch.send_all(&mut self.inner, try_send_frame);
        batch.end(outcome)
    }
}

impl<K: Kind> Socket<K> {
    /// Sends messages of several parts, each either whole or not at all. Otherwise like
    /// [`send_batch`](Self::send_batch).
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// # let mut dealer = tautline::Dealer::builder(&context).bind("inproc://answers")?;
    /// let mut router = tautline::Router::builder(&context).connect("inproc://answers")?;
    /// # dealer.send_batch(["question", "another"])?;
    /// let (client, _) = router.recv_from()?;
    /// router.recv_from()?;
    /// let answers = ["first", "second"].map(|answer| [client.as_bytes(), answer.as_bytes()]);
    /// assert_eq!(router.send_multipart_batch(answers)?, 2);
    /// # assert_eq!((dealer.recv()?.as_str(), dealer.recv()?.as_str()), (Ok("first"), Ok("second")));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`send_multipart`](Self::send_multipart) if the first message failed.
    /// The message that failed is dropped.
    pub fn send_multipart_batch<I>(&mut self, messages: I) -> Result<usize>
    where
        K: Sends + HasMultipart,
        I: IntoIterator,
        I::Item: Into<Multipart>,
    {
        let mut batch = multiparts(messages);
        let outcome =
            batch.send_all(&mut self.inner, |socket, message| send_parts(socket, &*message, Flags::NONE));
        batch.end(outcome)
    }
}

impl<K: Kind> Socket<K> {
    /// Waits for a message, then takes all queued messages without waiting, up to `max` messages,
    /// and appends them to `into`. Returns the number of messages. A message of several parts is
    /// taken whole, part after part; its last part has no [`Message::has_more`].
    ///
    /// # Errors
    /// Returns the errors of [`recv`](Self::recv) if there is no first message.
    pub fn recv_batch(&mut self, into: &mut Vec<Message>, max: usize) -> Result<usize>
    where
        K: Receives,
    {
        recv_batch(&mut self.inner, into, max, Flags::NONE)
    }

    /// Takes all queued messages without waiting, up to `max` messages, and appends them to `into`.
    /// Returns the number of messages. See [`recv_batch`](Self::recv_batch).
    ///
    /// # Errors
    /// Returns [`Error::WouldBlock`] if no message is queued, and the errors of
    /// [`recv_batch`](Self::recv_batch).
    pub fn try_recv_batch(&mut self, into: &mut Vec<Message>, max: usize) -> Result<usize>
    where
        K: Receives,
    {
        recv_batch(&mut self.inner, into, max, Flags::DONTWAIT)
    }
}

impl<K: Kind> Socket<K> {
    /// Writes all messages that `call` sends by this socket together, at its end. They are written
    /// earlier only from 64 KiB on, or if the thread has to wait for the socket. Use it for
    /// messages that belong together and would otherwise leave in several packets, the first one at
    /// once. Messages to subscribers and over `inproc` may be written earlier.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// # let mut pull = tautline::Pull::new(&context)?;
    /// # let endpoint = pull.bind("tcp://127.0.0.1:*")?;
    /// let mut push = tautline::Push::builder(&context).connect(&endpoint)?;
    /// push.with_cork(|push| -> tautline::Result<()> {
    ///     push.send("one")?;
    ///     push.send_multipart(["two", "parts"])
    /// })?;
    /// # pull.recv()?;
    /// # Ok(()) }
    /// ```
    pub fn with_cork<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T
    where
        K: Sends,
    {
        // Uncorks in `drop`, so that this also happens if `call` panics.
        struct Corked<'a, K: Kind>(&'a mut Socket<K>, Option<core::Cork>);
        impl<K: Kind> Drop for Corked<'_, K> {
            fn drop(&mut self) {
                drop(self.1.take());
                self.0.inner.flush();
            }
        }
        let cork = self.inner.cork();
        let corked = Corked(self, Some(cork));
        call(corked.0)
    }
}

/// Ends a batch, even if the caller's iterator panics.
struct Corked<'a>(&'a mut core::Socket, Option<core::Cork>);

impl Drop for Corked<'_> {
    fn drop(&mut self) {
        drop(self.1.take());
        self.0.end_batch();
    }
}

impl<K: Kind> Socket<K> {
    /// Writes all messages at once that are sent but still queued here. It is rarely needed. After
    /// a pause, `send` writes the first message itself, a stream is written within microseconds,
    /// and the socket writes all messages before the thread waits for it. Call it before a pause if
    /// each microsecond counts.
    pub fn flush(&mut self) {
        self.inner.flush();
    }
}

/// Messages being sent.
pub(crate) struct Batch<I: Iterator> {
    messages: I,
    /// The message that could not be sent.
    pub(crate) refused: Option<I::Item>,
    pub(crate) sent: usize,
}

impl<I: Iterator> Batch<I> {
    pub(crate) fn new(messages: I) -> Self {
        Batch { messages, refused: None, sent: 0 }
    }

    /// Sends each message by `put` until one is refused; the sent messages are written together.
    pub(crate) fn send_all(
        &mut self,
        socket: &mut core::Socket,
        put: impl FnMut(&mut core::Socket, &mut I::Item) -> Result<()>,
    ) -> Result<()> {
        let cork = socket.cork();
        let corked = Corked(socket, Some(cork));
        self.send_each(corked.0, put)
    }

    fn send_each(
        &mut self,
        socket: &mut core::Socket,
        mut put: impl FnMut(&mut core::Socket, &mut I::Item) -> Result<()>,
    ) -> Result<()> {
        while let Some(mut message) = self.refused.take().or_else(|| self.messages.next()) {
            if let Err(error) = put(socket, &mut message) {
                self.refused = Some(message);
                return Err(error);
            }
            self.sent += 1;
        }
        Ok(())
    }

    /// Returns the number of sent messages, or the error if that number is zero.
    pub(crate) fn end(&self, outcome: Result<()>) -> Result<usize> {
        match outcome {
            Err(error) if self.sent == 0 => Err(error),
            _ => Ok(self.sent),
        }
    }
}

/// Makes a batch of frames.
pub(crate) fn frames<'a, I>(messages: I) -> Batch<impl Iterator<Item = Frame<'a>>>
where
    I: IntoIterator,
    I::Item: Into<Frame<'a>>,
{
    Batch::new(messages.into_iter().map(Into::into))
}

/// Makes a batch of whole messages.
pub(crate) fn multiparts<I>(messages: I) -> Batch<impl Iterator<Item = Multipart>>
where
    I: IntoIterator,
    I::Item: Into<Multipart>,
{
    Batch::new(messages.into_iter().map(Into::into))
}

/// Sends one part. If it is refused, `frame` keeps it unchanged.
pub(crate) fn send_frame(socket: &mut core::Socket, frame: &mut Frame<'_>, flags: Flags) -> Result<()> {
    match frame {
        Frame::Borrowed(bytes) => socket.send(bytes, flags),
        Frame::Owned(message) => socket.send_message(&mut message.0, flags),
    }
    .map_err(|error| Error::for_send(error, socket, flags))
}

/// Sends one part without waiting. If it is refused, `frame` keeps it unchanged.
pub(crate) fn try_send_frame(socket: &mut core::Socket, frame: &mut Frame<'_>) -> Result<()> {
    send_frame(socket, frame, Flags::DONTWAIT)
}

pub(crate) fn recv_batch(
    socket: &mut core::Socket,
    into: &mut Vec<Message>,
    max: usize,
    mut flags: Flags,
) -> Result<usize> {
    let (mut taken, mut whole) = (0, into.len());
    while taken < max {
        // Received in its final place, to avoid a move.
        into.push(Message::new());
        let Some(message) = into.last_mut() else { break };
        if let Err(error) = socket.recv_message(&mut message.0, flags) {
            into.truncate(whole);
            if taken == 0 {
                return Err(Error::for_receive(error, socket, flags));
            }
            break;
        }
        if !message.has_more() {
            taken += 1;
            whole = into.len();
            flags = Flags::DONTWAIT;
        }
    }
    Ok(taken)
}
