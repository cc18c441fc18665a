//! A socket in two halves, for one sending and one receiving task.
//!
//! The halves share the socket under a lock. A half holds the lock for one step at a time, never
//! across a wait. They wait together, for the events of both halves, with a waker that wakes both
//! tasks. Each task then checks its own operation.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tautline_core::Flags;
use tautline_core::poller::{POLLIN, POLLOUT};

use super::Socket;
use crate::batch::{frames, try_send_frame};
use crate::error::{Error, Result};
use crate::kind::Splits;
use crate::message::{Frame, Message, Multipart};
use crate::socket::send_parts;

/// Sending half of a socket, from [`Socket::split`]. The socket is closed when both halves are
/// dropped.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// # let context = tautline::Context::new();
/// # let mut far = tautline::Dealer::builder(&context).bind("inproc://send-half")?;
/// let dealer = tautline::Dealer::builder(&context).connect("inproc://send-half")?.into_async();
/// let (mut sending, receiving) = dealer.split();
/// sending.send("one").await?;
/// sending.send_multipart(["two", "parts"]).await?;
/// assert_eq!(sending.send_batch(["three", "four"]).await?, 2);
/// sending.try_send("five")?;
/// sending.flush();
/// # far.recv_batch(&mut Vec::new(), 5)?;
/// # drop(receiving);
/// # Ok(()) })
/// # }
/// ```
pub struct SendHalf<K: Splits>(Arc<SplitShared<K>>);

/// Receiving half of a socket, from [`Socket::split`]. The socket is closed when both halves are
/// dropped.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// # let context = tautline::Context::new();
/// # let mut far = tautline::Dealer::builder(&context).bind("inproc://receive-half")?;
/// let dealer = tautline::Dealer::builder(&context).connect("inproc://receive-half")?.into_async();
/// let (sending, mut receiving) = dealer.split();
/// # far.send_batch(["one", "two", "three"])?;
/// assert_eq!(receiving.recv().await?, "one");
/// assert_eq!(receiving.recv_multipart().await?.len(), 1);
/// let mut rest = Vec::new();
/// receiving.recv_batch(&mut rest, 100).await?;
/// assert!(receiving.try_recv().is_err());
/// # drop(sending);
/// # Ok(()) })
/// # }
/// ```
pub struct ReceiveHalf<K: Splits>(Arc<SplitShared<K>>);

struct SplitShared<K: Splits> {
    state: Mutex<SplitState<K>>,
    waiting: Arc<Wakers>,
    /// Wakes the waiting tasks.
    waker: Waker,
}

struct SplitState<K: Splits> {
    socket: Socket<K>,
    /// Awaited events: POLLIN, POLLOUT or both.
    events: i16,
}

/// Wakers of the waiting tasks: the receiving one, the sending one.
#[derive(Default)]
struct Wakers(Mutex<[Option<Waker>; 2]>);

impl Wakers {
    fn set(&self, events: i16, waker: Option<&Waker>) {
        let place = &mut lock(&self.0)[usize::from(events == POLLOUT)];
        match (place, waker) {
            (Some(old), Some(new)) => old.clone_from(new),
            (place, new) => *place = new.cloned(),
        }
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Wake without the lock, because an executor may run any code here.
        let tasks = lock(&self.0).clone();
        tasks.into_iter().flatten().for_each(Waker::wake);
    }
}

// Ignores poisoning: the protected data is consistent even if a task has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Splits> Socket<K> {
    /// Splits the socket, so that one task can wait for messages while another task sends.
    /// Configure the socket first: the halves only send and receive.
    ///
    /// REQ and REP cannot be split, because their turns are fixed.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # smol::block_on(async {
    /// use tautline::{Context, Dealer, Rep};
    ///
    /// let context = Context::new();
    /// let mut service = Rep::builder(&context).bind("inproc://split")?.into_async();
    /// let (mut asking, mut receiving) = Dealer::builder(&context).connect("inproc://split")?.into_async().split();
    /// # let answering = smol::spawn(async move {
    /// #     for _ in 0..100 { let question = service.recv().await?; service.send(question).await?; }
    /// #     Ok::<_, tautline::Error>(())
    /// # });
    ///
    /// let sender = smol::spawn(async move {
    ///     for number in 0..100 {
    ///         asking.send_multipart(["".to_string(), number.to_string()]).await?;
    ///     }
    ///     Ok::<_, tautline::Error>(())
    /// });
    /// for number in 0..100 {
    ///     assert_eq!(receiving.recv_multipart().await?[1], number.to_string());
    /// }
    /// # sender.await?;
    /// # answering.await
    /// # })
    /// # }
    /// ```
    #[must_use = "the socket is closed when both halves are dropped"]
    pub fn split(self) -> (SendHalf<K>, ReceiveHalf<K>) {
        let waiting = Arc::<Wakers>::default();
        let waker = Waker::from(waiting.clone());
        let state = Mutex::new(SplitState { socket: self, events: 0 });
        let shared = Arc::new(SplitShared { state, waiting, waker });
        (SendHalf(shared.clone()), ReceiveHalf(shared))
    }
}

impl<K: Splits> SplitState<K> {
    /// Stops waiting for `events`. True if the other half keeps waiting. It then waits by its own
    /// runtime, which may differ from this one.
    fn stop_waiting_for(&mut self, events: i16) -> bool {
        let waited = self.events & events != 0;
        self.events &= !events;
        if self.events == 0 {
            self.socket.stop_waiting();
        }
        waited && self.events != 0
    }
}

impl<K: Splits> SplitShared<K> {
    /// Repeats `attempt` until it no longer returns `WouldBlock`.
    async fn retry_until_ready<T>(
        &self,
        events: i16,
        mut attempt: impl FnMut(&mut crate::Socket<K>) -> Result<T>,
    ) -> Result<T> {
        let _wait = WaitGuard { shared: self, events };
        poll_fn(|cx| self.poll(cx, events, &mut attempt)).await
    }

    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        events: i16,
        attempt: &mut impl FnMut(&mut crate::Socket<K>) -> Result<T>,
    ) -> Poll<Result<T>> {
        let mut state = lock(&self.state);
        loop {
            match attempt(state.socket.get_mut()) {
                Err(Error::WouldBlock) => {}
                outcome => return Poll::Ready(outcome),
            }
            self.waiting.set(events, Some(cx.waker()));
            state.events |= events;
            let all = state.events;
            match state.socket.poll_wait(&mut Context::from_waker(&self.waker), all) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => {}
            }
            // The event may concern the other half. That half checks for itself, and waits again if
            // necessary.
            state.events = 0;
            if all & !events != 0 {
                self.waker.wake_by_ref();
            }
        }
    }
}

/// A wait, in progress or finished.
struct WaitGuard<'a, K: Splits> {
    shared: &'a SplitShared<K>,
    events: i16,
}

impl<K: Splits> Drop for WaitGuard<'_, K> {
    fn drop(&mut self) {
        self.shared.waiting.set(self.events, None);
        let others = lock(&self.shared.state).stop_waiting_for(self.events);
        if others {
            self.shared.waker.wake_by_ref();
        }
    }
}

impl<K: Splits> SendHalf<K> {
    /// See [`Socket::send`]. Cancel safe: if the future is dropped early, no message was sent.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::send`].
    pub async fn send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()> {
        let mut frame = frame.into();
        self.0.retry_until_ready(POLLOUT, |socket| try_send_frame(&mut socket.inner, &mut frame)).await
    }

    /// See [`crate::Socket::try_send`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Socket::try_send`].
    pub fn try_send<'a>(&mut self, frame: impl Into<Frame<'a>>) -> Result<()> {
        lock(&self.0.state).socket.try_send(frame)
    }

    /// See [`Socket::send_multipart`]. Cancel safe: if the future is dropped early, no message was
    /// sent.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::send_multipart`].
    pub async fn send_multipart<'a, I>(&mut self, parts: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let message = Multipart::collect(parts);
        self.0
            .retry_until_ready(POLLOUT, |socket| send_parts(&mut socket.inner, &message, Flags::DONTWAIT))
            .await
    }

    /// See [`Socket::send_batch`]. Not cancel safe: if the future is dropped early, some messages
    /// may have been sent.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::send_batch`].
    pub async fn send_batch<'a, I>(&mut self, messages: I) -> Result<usize>
    where
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let mut batch = frames(messages);
        let outcome = self
            .0
            .retry_until_ready(POLLOUT, |socket| batch.send_all(&mut socket.inner, try_send_frame))
            .await;
        batch.end(outcome)
    }

    /// See [`crate::Socket::flush`].
    pub fn flush(&mut self) {
        lock(&self.0.state).socket.get_mut().flush();
    }
}

impl<K: Splits> ReceiveHalf<K> {
    /// See [`Socket::recv`]. Cancel safe: if the future is dropped early, no message was taken.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::recv`].
    pub async fn recv(&mut self) -> Result<Message> {
        self.0.retry_until_ready(POLLIN, crate::Socket::try_recv).await
    }

    /// See [`crate::Socket::try_recv`].
    ///
    /// # Errors
    /// Returns the errors of [`crate::Socket::try_recv`].
    pub fn try_recv(&mut self) -> Result<Message> {
        lock(&self.0.state).socket.try_recv()
    }

    /// See [`Socket::recv_multipart`]. Cancel safe: if the future is dropped early, no message was
    /// taken.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::recv_multipart`].
    pub async fn recv_multipart(&mut self) -> Result<Multipart> {
        self.0.retry_until_ready(POLLIN, crate::Socket::try_recv_multipart).await
    }

    /// See [`Socket::recv_batch`]. Cancel safe: if the future is dropped early, no message was
    /// taken.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::recv_batch`].
    pub async fn recv_batch(&mut self, into: &mut Vec<Message>, max: usize) -> Result<usize> {
        self.0.retry_until_ready(POLLIN, |socket| socket.try_recv_batch(into, max)).await
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
