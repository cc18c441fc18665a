//! Topics for tasks: what waits is a future. To publish does not wait, so a
//! [`Publisher`](super::Publisher) serves tasks as it is.

use super::{Pattern, Statistics, Update, sieve::Sieve};
use crate::aio;
use crate::error::Result;

/// What subscribes to topics of a space, for async programs. Made by
/// [`Subscriber::into_async`](super::Subscriber::into_async).
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// # smol::block_on(async {
/// use tautline::{Context, topics::Topics};
///
/// let context = Context::new();
/// let (mut station, _) = Topics::builder(&context).bind("inproc://station").build()?.split();
/// let display = Topics::builder(&context).connect("inproc://station").subscriber()?;
/// let mut display = display.into_async();
/// display.subscribe("weather.*.wind")?;
///
/// station.wait_for_subscriptions(1, None)?;
/// station.publish("weather.lund.wind", "7 m/s")?;
/// assert_eq!(display.recv().await?.body, "7 m/s");
/// # Ok(()) })
/// # }
/// ```
#[derive(Debug)]
pub struct Subscriber {
    socket: aio::Sub,
    sieve: Sieve,
}

impl Subscriber {
    pub(super) fn new(socket: aio::Sub, sieve: Sieve) -> Self {
        Subscriber { socket, sieve }
    }

    /// See [`Subscriber::subscribe`](super::Subscriber::subscribe).
    ///
    /// # Errors
    /// Those of [`Subscriber::subscribe`](super::Subscriber::subscribe).
    pub fn subscribe(&mut self, pattern: &str) -> Result<()> {
        self.sieve.add(pattern, |prefix| self.socket.subscribe(prefix))
    }

    /// See [`Subscriber::unsubscribe`](super::Subscriber::unsubscribe).
    ///
    /// # Errors
    /// Those of [`Subscriber::unsubscribe`](super::Subscriber::unsubscribe).
    pub fn unsubscribe(&mut self, pattern: &str) -> Result<()> {
        self.sieve.remove(pattern, |prefix| self.socket.unsubscribe(prefix))
    }

    /// What it is subscribed to.
    pub fn patterns(&self) -> &[Pattern] {
        self.sieve.patterns()
    }

    /// The next message. Dropped before its end, nothing was received.
    ///
    /// # Errors
    /// [`Error::Terminated`](crate::Error::Terminated).
    pub async fn recv(&mut self) -> Result<Update> {
        loop {
            let message = self.socket.recv_multipart().await?;
            if let Some(update) = self.sieve.look_at(message) {
                return Ok(update);
            }
        }
    }

    /// What was counted; of what is published, nothing.
    pub fn statistics(&self) -> Statistics {
        self.sieve.statistics
    }

    /// The SUB itself, for its options, peers and monitor.
    pub fn socket(&mut self) -> &mut aio::Sub {
        &mut self.socket
    }

    /// The same for a thread.
    #[must_use]
    pub fn into_blocking(self) -> super::Subscriber {
        super::Subscriber::with(self.socket.into_blocking(), self.sieve)
    }
}
