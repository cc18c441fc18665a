//! A socket in two halves, for one sending and one receiving thread.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use tautline_core::{Flags, SharedSocket};

use crate::Socket;
use crate::batch::{frames, recv_batch, try_send_frame};
use crate::error::{Error, Result};
use crate::kind::{Kind, Splits};
use crate::message::{Frame, Message, Multipart};
use crate::socket::{recv_each_part, send_each_part};

/// Sending half of a socket, from [`Socket::split`]. The socket is closed when both halves are
/// dropped.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # let context = tautline::Context::new();
/// # let mut far = tautline::Dealer::builder(&context).bind("inproc://send-half")?;
/// let dealer = tautline::Dealer::builder(&context).connect("inproc://send-half")?;
/// let (mut sending, receiving) = dealer.split()?;
/// sending.send("one")?;
/// sending.send_multipart(["two", "parts"])?;
/// assert_eq!(sending.send_batch(["three", "four"])?, 2);
/// sending.try_send("five")?;
/// sending.flush();
/// # far.recv_batch(&mut Vec::new(), 5)?;
/// # drop(receiving);
/// # Ok(()) }
/// ```
pub struct SendHalf<K: Splits> {
    shared: Arc<SharedSocket>,
    kind: PhantomData<fn() -> K>,
}

/// Receiving half of a socket, from [`Socket::split`]. The socket is closed when both halves are
/// dropped.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # let context = tautline::Context::new();
/// # let mut far = tautline::Dealer::builder(&context).bind("inproc://receive-half")?;
/// let dealer = tautline::Dealer::builder(&context).connect("inproc://receive-half")?;
/// let (sending, mut receiving) = dealer.split()?;
/// # far.send_batch(["one", "two", "three", "four"])?;
/// assert_eq!(receiving.recv()?, "one");
/// assert_eq!(receiving.recv_into(&mut [0; 16])?, 3);
/// let mut rest = Vec::new();
/// while rest.len() < 2 {
///     receiving.recv_batch(&mut rest, 100)?;
/// }
/// assert!(receiving.try_recv().is_err());
/// # drop(sending);
/// # Ok(()) }
/// ```
pub struct ReceiveHalf<K: Splits> {
    shared: Arc<SharedSocket>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Socket<K> {
    /// Splits the socket, so that one thread can wait for messages while another thread sends.
    /// Configure the socket first: the halves only send and receive. A lock protects the socket; a
    /// half does not hold it while it waits. A socket that is not split is faster.
    ///
    /// REQ and REP cannot be split, because their turns are fixed. Tasks use
    /// [`aio::Socket::split`](crate::aio::Socket::split).
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use std::thread;
    /// use tautline::{Context, Dealer, Rep};
    ///
    /// let context = Context::new();
    /// let mut service = Rep::builder(&context).bind("inproc://split")?;
    /// let answering = thread::spawn(move || -> tautline::Result<()> {
    ///     for _ in 0..100 {
    ///         let question = service.recv()?;
    ///         service.send(question)?;
    ///     }
    ///     Ok(())
    /// });
    ///
    /// let (mut asking, mut receiving) = Dealer::builder(&context).connect("inproc://split")?.split()?;
    /// let sender = thread::spawn(move || (0..100).try_for_each(|number| asking.send_multipart(["", &number.to_string()])));
    /// for number in 0..100 {
    ///     assert_eq!(receiving.recv_multipart()?[1], number.to_string());
    /// }
    /// # sender.join().unwrap()?;
    /// # answering.join().unwrap()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::TooManyOpen`] if no descriptors are left; the socket is then closed.
    pub fn split(self) -> Result<(SendHalf<K>, ReceiveHalf<K>)>
    where
        K: Splits,
    {
        let shared = SharedSocket::new(self.inner)?;
        Ok((
            SendHalf { shared: shared.clone(), kind: PhantomData },
            ReceiveHalf { shared, kind: PhantomData },
        ))
    }
}

impl<K: Splits> SendHalf<K> {
    fn send_part(&self, frame: Frame<'_>, flags: Flags) -> Result<()> {
        match frame {
            Frame::Borrowed(bytes) => self.shared.send(bytes, flags),
            Frame::Owned(mut message) => self.shared.send_message(&mut message.0, flags),
        }
        .map_err(|error| Error::for_flags(error, flags))
    }

    /// See [`Socket::send`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::send`].
    pub fn send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()> {
        self.send_part(frame.into(), Flags::NONE)
    }

    /// See [`Socket::try_send`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::try_send`].
    pub fn try_send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()> {
        self.send_part(frame.into(), Flags::DONTWAIT)
    }

    /// See [`Socket::send_multipart`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::send_multipart`].
    pub fn send_multipart<'a, I>(&mut self, parts: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        send_each_part(parts, Flags::NONE, |part, flags| self.send_part(part, flags))
    }

    /// See [`Socket::try_send_multipart`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::try_send_multipart`].
    pub fn try_send_multipart<'a, I>(&mut self, parts: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        send_each_part(parts, Flags::DONTWAIT, |part, flags| self.send_part(part, flags))
    }

    /// See [`Socket::send_batch`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::send_batch`].
    pub fn send_batch<'a, I>(&mut self, messages: I) -> Result<usize>
    where
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let mut batch = frames(messages);
        loop {
            // Wait without the lock, so that the other half can go on.
            let outcome = self.shared.with(|socket| Ok(batch.send_all(socket, try_send_frame)))?;
            let waited = match (outcome, batch.refused.take()) {
                (Err(Error::WouldBlock), Some(frame)) => self.send_part(frame, Flags::NONE),
                (outcome, _) => return batch.end(outcome),
            };
            if waited.is_err() {
                return batch.end(waited);
            }
            batch.sent += 1;
        }
    }

    /// See [`Socket::flush`].
    pub fn flush(&mut self) {
        // Fails only if the socket is closed, which needs both halves.
        let _ = self.shared.with(|socket| {
            socket.flush();
            Ok(())
        });
    }
}

impl<K: Splits> ReceiveHalf<K> {
    fn recv_part(&self, flags: Flags) -> Result<Message> {
        let mut message = Message::new();
        self.shared.recv_message(&mut message.0, flags).map_err(|error| Error::for_flags(error, flags))?;
        Ok(message)
    }

    /// See [`Socket::recv`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::recv`].
    pub fn recv(&mut self) -> Result<Message> {
        self.recv_part(Flags::NONE)
    }

    /// See [`Socket::try_recv`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::try_recv`].
    pub fn try_recv(&mut self) -> Result<Message> {
        self.recv_part(Flags::DONTWAIT)
    }

    /// See [`Socket::recv_into`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::recv_into`].
    pub fn recv_into(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.shared.recv(buffer, Flags::NONE).map_err(Error::for_limit)
    }

    /// See [`Socket::recv_batch`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::recv_batch`].
    pub fn recv_batch(&mut self, into: &mut Vec<Message>, max: usize) -> Result<usize> {
        if max == 0 {
            return Ok(0);
        }
        into.extend(self.recv_multipart()?);
        let others = self.shared.with(|socket| Ok(recv_batch(socket, into, max - 1, Flags::DONTWAIT)))?;
        Ok(1 + others.unwrap_or(0))
    }

    /// See [`Socket::recv_multipart`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::recv_multipart`].
    pub fn recv_multipart(&mut self) -> Result<Multipart> {
        recv_each_part(|| self.recv_part(Flags::NONE))
    }

    /// See [`Socket::try_recv_multipart`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::try_recv_multipart`].
    pub fn try_recv_multipart(&mut self) -> Result<Multipart> {
        recv_each_part(|| self.recv_part(Flags::DONTWAIT))
    }
}

impl<K: Splits> fmt::Debug for SendHalf<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendHalf").field(&K::TYPE.name()).finish()
    }
}

impl<K: Splits> fmt::Debug for ReceiveHalf<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReceiveHalf").field(&K::TYPE.name()).finish()
    }
}
