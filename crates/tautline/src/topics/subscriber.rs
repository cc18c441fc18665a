//! The half that subscribes.

use std::time::{Duration, Instant};

use super::{Pattern, Statistics, aio, sieve::Sieve};
use crate::error::{Error, Result};
use crate::{Message, Sub};

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub struct Update {
    /// What it is about.
    pub topic: Message,
    /// What it says.
    pub body: Message,
}

/// What subscribes to topics of a space; see [`topics`](super).
#[derive(Debug)]
pub struct Subscriber {
    socket: Sub,
    sieve: Sieve,
}

impl Subscriber {
    pub(super) fn new(socket: Sub, own: Option<String>) -> Self {
        Subscriber::with(socket, Sieve::new(own))
    }

    pub(super) fn with(socket: Sub, sieve: Sieve) -> Self {
        Subscriber { socket, sieve }
    }

    /// The same for an async program.
    #[must_use]
    pub fn into_async(self) -> aio::Subscriber {
        aio::Subscriber::new(self.socket.into_async(), self.sieve)
    }

    /// Receives from now on what `pattern`, a [`Pattern`], stands for. It takes a moment to reach
    /// the publishers. A pattern counts once, however often it is subscribed to.
    ///
    /// # Errors
    /// Those of [`Pattern::from_str`](std::str::FromStr::from_str); [`Error::Terminated`].
    pub fn subscribe(&mut self, pattern: &str) -> Result<()> {
        self.sieve.add(pattern, |prefix| self.socket.subscribe(prefix))
    }

    /// Takes a pattern back. What has come already and is of no other pattern is not received.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a pattern that was not subscribed to; [`Error::Terminated`].
    pub fn unsubscribe(&mut self, pattern: &str) -> Result<()> {
        self.sieve.remove(pattern, |prefix| self.socket.unsubscribe(prefix))
    }

    /// What it is subscribed to.
    pub fn patterns(&self) -> &[Pattern] {
        self.sieve.patterns()
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::Terminated`]; [`Error::WouldBlock`] after the SUB's receive
    /// timeout.
    pub fn recv(&mut self) -> Result<Update> {
        loop {
            let message = self.socket.recv_multipart()?;
            if let Some(update) = self.sieve.look_at(message) {
                return Ok(update);
            }
        }
    }

    /// Waits for the next message for at most `timeout`. `None`: nothing has come.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::Terminated`].
    pub fn recv_within(&mut self, timeout: Duration) -> Result<Option<Update>> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let message = match self.socket.try_recv_multipart() {
                Ok(message) => message,
                Err(Error::WouldBlock) => {
                    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
                    if left == Some(Duration::ZERO) || !self.socket.wait_readable(left)? {
                        return Ok(None);
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Some(update) = self.sieve.look_at(message) {
                return Ok(Some(update));
            }
        }
    }

    /// The next message, if there is one already.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::Terminated`].
    pub fn try_recv(&mut self) -> Result<Option<Update>> {
        self.recv_within(Duration::ZERO)
    }

    /// What was counted; of what is published, nothing.
    pub fn statistics(&self) -> Statistics {
        self.sieve.statistics
    }

    /// The SUB itself, for its options, peers and monitor.
    pub fn socket(&mut self) -> &mut Sub {
        &mut self.socket
    }
}
