//! Many messages in one call, and when they leave.
//!
//! Nobody needs this for speed: `send` after `send` is written in large pieces, and `recv` after `recv` reads them so. It is for programs
//! that have many messages at hand, or want to work on many at once.

use tautline_core::{self as core, Flags};

use crate::Socket;
use crate::error::Result;
use crate::kind::{Kind, Receives, Sends};
use crate::message::{Frame, Message};
use crate::socket::put;

impl<K: Sends> Socket<K> {
    /// Sends messages of one part each; waits like [`send`](Self::send) where it has to. Returns how many were sent: all of them, or those
    /// before the one that failed.
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
    /// Those of [`send`](Self::send), if the first message failed; the failed one is dropped if it was owned.
    pub fn send_batch<'a, I>(&mut self, messages: I) -> Result<usize>
    where
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        put_batch(&mut self.inner, messages, Flags::NONE)
    }

    /// As [`send_batch`](Self::send_batch), without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`](crate::Error::WouldBlock) if none can be sent now, and those of [`send_batch`](Self::send_batch).
    pub fn try_send_batch<'a, I>(&mut self, messages: I) -> Result<usize>
    where
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        put_batch(&mut self.inner, messages, Flags::DONTWAIT)
    }
}

impl<K: Receives> Socket<K> {
    /// Waits for a message, then takes what is there without waiting, up to `max` messages in all, and puts them at the end of `into`.
    /// Returns how many messages those are. A message of several parts is taken whole, its parts after each other;
    /// [`Message::has_more`] tells where it ends.
    ///
    /// # Errors
    /// Those of [`recv`](Self::recv), if there is no first message.
    pub fn recv_batch(&mut self, into: &mut Vec<Message>, max: usize) -> Result<usize> {
        take_batch(&mut self.inner, into, max, Flags::NONE)
    }

    /// As [`recv_batch`](Self::recv_batch), without waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`](crate::Error::WouldBlock) if nothing is there, and those of [`recv_batch`](Self::recv_batch).
    pub fn try_recv_batch(&mut self, into: &mut Vec<Message>, max: usize) -> Result<usize> {
        take_batch(&mut self.inner, into, max, Flags::DONTWAIT)
    }
}

impl<K: Sends> Socket<K> {
    /// What `call` sends by this socket leaves together when it is over: earlier only from 64 KiB on, or if the thread has to wait for the
    /// socket. For messages that belong together and would otherwise leave as several packets, the first one at once. To subscribers and
    /// over `inproc` they may leave earlier.
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
    pub fn corked<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T {
        let cork = self.inner.cork();
        let outcome = call(self);
        drop(cork);
        self.inner.flush();
        outcome
    }
}

impl<K: Kind> Socket<K> {
    /// Writes at once what was sent and is still queued here. There is rarely a reason: the first message after a lull is written by
    /// `send`, a stream within microseconds, and everything before the thread waits for this socket. Call it before silence if each
    /// microsecond counts.
    pub fn flush(&mut self) {
        self.inner.flush();
    }
}

/// Sends until one fails; how many were sent before it.
pub(crate) fn put_batch<'a, I>(socket: &mut core::Socket, messages: I, flags: Flags) -> Result<usize>
where
    I: IntoIterator,
    I::Item: Into<Frame<'a>>,
{
    let mut sent = 0;
    for message in messages {
        match put(socket, message.into(), flags) {
            Ok(()) => sent += 1,
            Err(error) if sent == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(sent)
}

fn take_batch(
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
                return Err(error.into());
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
