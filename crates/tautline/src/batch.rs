//! Many messages in one call, and when they leave.
//!
//! A stream needs this not for speed: `send` after `send` is written in large pieces, and `recv`
//! after `recv` reads them so. It is for programs that have many messages at hand, or want to work
//! on many at once: a batch leaves in one piece as soon as it ends, while the first of many single
//! messages would leave by itself, and a peer that waits for all of them would be woken by that
//! one.

use tautline_core::{self as core, Flags};

use crate::Socket;
use crate::error::{Error, Result};
use crate::kind::{Kind, ManyParts, Receives, Sends};
use crate::message::{Frame, Message, Multipart};
use crate::socket::put_all;

impl<K: Kind> Socket<K> {
    /// Sends messages of one part each; waits like [`send`](Self::send) where it has to. Returns
    /// how many were sent: all of them, or those before the one that failed. They leave together
    /// when the last one is sent, or 64 KiB at a time; batches that follow each other within
    /// microseconds leave like a stream of single messages.
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
    /// Those of [`send`](Self::send), if the first message failed; the failed one is dropped if it
    /// was owned.
    pub fn send_batch<'a, I>(&mut self, messages: I) -> Result<usize>
    where
        K: Sends,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let mut batch = frames(messages);
        let outcome = batch.put(&mut self.inner, |socket, frame| put_frame(socket, frame, Flags::NONE));
        batch.end(outcome)
    }

    /// As [`send_batch`](Self::send_batch), without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if none can be sent now, and those of
    /// [`send_batch`](Self::send_batch).
    pub fn try_send_batch<'a, I>(&mut self, messages: I) -> Result<usize>
    where
        K: Sends,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let mut batch = frames(messages);
        let outcome = batch.put(&mut self.inner, put_frame_now);
        batch.end(outcome)
    }
}

impl<K: Kind> Socket<K> {
    /// Sends messages of several parts, each whole or not at all; otherwise as
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
    /// Those of [`send_multipart`](Self::send_multipart), if the first message failed; the failed
    /// one is dropped.
    pub fn send_multipart_batch<I>(&mut self, messages: I) -> Result<usize>
    where
        K: Sends + ManyParts,
        I: IntoIterator,
        I::Item: Into<Multipart>,
    {
        let mut batch = multiparts(messages);
        let outcome = batch.put(&mut self.inner, |socket, message| put_all(socket, &*message, Flags::NONE));
        batch.end(outcome)
    }
}

impl<K: Kind> Socket<K> {
    /// Waits for a message, then takes what is there without waiting, up to `max` messages in all,
    /// and puts them at the end of `into`. Returns how many messages those are. A message of
    /// several parts is taken whole, its parts after each other; [`Message::has_more`] tells where
    /// it ends.
    ///
    /// # Errors
    /// Those of [`recv`](Self::recv), if there is no first message.
    pub fn recv_batch(&mut self, into: &mut Vec<Message>, max: usize) -> Result<usize>
    where
        K: Receives,
    {
        take_batch(&mut self.inner, into, max, Flags::NONE)
    }

    /// As [`recv_batch`](Self::recv_batch), without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if nothing is there, and those of [`recv_batch`](Self::recv_batch).
    pub fn try_recv_batch(&mut self, into: &mut Vec<Message>, max: usize) -> Result<usize>
    where
        K: Receives,
    {
        take_batch(&mut self.inner, into, max, Flags::DONTWAIT)
    }
}

impl<K: Kind> Socket<K> {
    /// What `call` sends by this socket leaves together when it is over: earlier only from 64 KiB
    /// on, or if the thread has to wait for the socket. For messages that belong together and would
    /// otherwise leave as several packets, the first one at once. To subscribers and over `inproc`
    /// they may leave earlier.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// # let mut pull = tautline::Pull::new(&context)?;
    /// # let endpoint = pull.bind("tcp://127.0.0.1:*")?;
    /// let mut push = tautline::Push::builder(&context).connect(&endpoint)?;
    /// push.corked(|push| -> tautline::Result<()> {
    ///     push.send("one")?;
    ///     push.send_multipart(["two", "parts"])
    /// })?;
    /// # pull.recv()?;
    /// # Ok(()) }
    /// ```
    pub fn corked<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T
    where
        K: Sends,
    {
        // Also if `call` panics.
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

/// Ends a batch, also if the caller's iterator panics.
struct Corked<'a>(&'a mut core::Socket, Option<core::Cork>);

impl Drop for Corked<'_> {
    fn drop(&mut self) {
        drop(self.1.take());
        self.0.end_batch();
    }
}

impl<K: Kind> Socket<K> {
    /// Writes at once what was sent and is still queued here. There is rarely a reason: the first
    /// message after a lull is written by `send`, a stream within microseconds, and everything
    /// before the thread waits for this socket. Call it before silence if each microsecond counts.
    pub fn flush(&mut self) {
        self.inner.flush();
    }
}

/// Messages on their way.
pub(crate) struct Batch<I: Iterator> {
    messages: I,
    /// The one that could not be sent.
    pub(crate) refused: Option<I::Item>,
    pub(crate) sent: usize,
}

impl<I: Iterator> Batch<I> {
    pub(crate) fn new(messages: I) -> Self {
        Batch { messages, refused: None, sent: 0 }
    }

    /// Sends each by `put` until one is refused, or to the end; what is sent leaves together.
    pub(crate) fn put(
        &mut self,
        socket: &mut core::Socket,
        put: impl FnMut(&mut core::Socket, &mut I::Item) -> Result<()>,
    ) -> Result<()> {
        let cork = socket.cork();
        let corked = Corked(socket, Some(cork));
        self.put_each(corked.0, put)
    }

    fn put_each(
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

    /// How many were sent, or the error if that is none.
    pub(crate) fn end(&self, outcome: Result<()>) -> Result<usize> {
        match outcome {
            Err(error) if self.sent == 0 => Err(error),
            _ => Ok(self.sent),
        }
    }
}

/// All as frames.
pub(crate) fn frames<'a, I>(messages: I) -> Batch<impl Iterator<Item = Frame<'a>>>
where
    I: IntoIterator,
    I::Item: Into<Frame<'a>>,
{
    Batch::new(messages.into_iter().map(Into::into))
}

/// All as whole messages.
pub(crate) fn multiparts<I>(messages: I) -> Batch<impl Iterator<Item = Multipart>>
where
    I: IntoIterator,
    I::Item: Into<Multipart>,
{
    Batch::new(messages.into_iter().map(Into::into))
}

/// Sends one part, which stays as it is if it is refused.
pub(crate) fn put_frame(socket: &mut core::Socket, frame: &mut Frame<'_>, flags: Flags) -> Result<()> {
    match frame {
        Frame::Borrowed(bytes) => socket.send(bytes, flags),
        Frame::Owned(message) => socket.send_message(&mut message.0, flags),
    }
    .map_err(|error| Error::sending(error, socket))
}

/// The same without waiting.
pub(crate) fn put_frame_now(socket: &mut core::Socket, frame: &mut Frame<'_>) -> Result<()> {
    put_frame(socket, frame, Flags::DONTWAIT)
}

pub(crate) fn take_batch(
    socket: &mut core::Socket,
    into: &mut Vec<Message>,
    max: usize,
    mut flags: Flags,
) -> Result<usize> {
    let (mut taken, mut whole) = (0, into.len());
    while taken < max {
        // Received where it is going to stay.
        into.push(Message::new());
        let Some(message) = into.last_mut() else { break };
        if let Err(error) = socket.recv_message(&mut message.0, flags) {
            into.truncate(whole);
            if taken == 0 {
                return Err(Error::receiving(error, socket));
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
