//! Waiting for peers and their subscriptions.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::Socket;
use super::alarm::Alarm;
use crate::error::Result;
use crate::kind::Kind;

/// Pause between two checks, as in the blocking calls: some peers cause no event.
const PAUSE: Duration = Duration::from_millis(10);

/// Waiting for peers. A task that must wait checks again every ten milliseconds, woken by a thread
/// that exists for this time. For a time limit, use the timeout of your runtime.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// use tautline::{Context, Pub, Sub};
///
/// let context = Context::new();
/// let mut publisher = Pub::new(&context)?.into_async();
/// let endpoint = publisher.bind("tcp://127.0.0.1:*")?;
/// let mut subscriber = Sub::builder(&context).subscribe("news").connect(&endpoint)?.into_async();
/// publisher.wait_for_subscriptions(1).await?;
/// publisher.send("news of today").await?;
/// assert_eq!(subscriber.recv().await?, "news of today");
/// # publisher.wait_for_peers(1).await
/// # })
/// # }
/// ```
impl<K: Kind> Socket<K> {
    /// Waits until at least `count` peers are connected.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`](crate::Error::Terminated), or
    /// [`Error::Os`](crate::Error::Os) if the thread cannot be created.
    pub async fn wait_for_peers(&mut self, count: usize) -> Result<()> {
        wait_until(|| self.socket.wait_for_peers(count, Duration::ZERO)).await
    }

    /// Waits until the peers of a publisher have subscribed to at least `count` different topics.
    /// Messages that are published later reach these subscribers.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// Returns [`Error::NotSupported`](crate::Error::NotSupported) for sockets without topics, and
    /// the errors of [`wait_for_peers`](Self::wait_for_peers).
    pub async fn wait_for_subscriptions(&mut self, count: usize) -> Result<()> {
        wait_until(|| self.socket.wait_for_subscriptions(count, Duration::ZERO)).await
    }
}

async fn wait_until(mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let mut alarm: Option<Alarm> = None;
    poll_fn(|cx| {
        if holds()? {
            return Poll::Ready(Ok(()));
        }
        let alarm = match &mut alarm {
            Some(alarm) => alarm,
            none => none.insert(Alarm::start()?),
        };
        alarm.set(Instant::now() + PAUSE, cx.waker());
        Poll::Pending
    })
    .await
}
