//! The subscribing half.

use std::time::{Duration, Instant};

use super::{OWN, Pattern, Statistics};
use crate::error::{Error, Result};
use crate::{Message, Multipart, Sub, aio};

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub struct Update {
    /// Topic of the message.
    pub topic: Message,
    /// Body of the message.
    pub body: Message,
}

/// Subscribes to topics of a space; see [`topics`](super). With an [`aio::Sub`] it serves async
/// programs.
#[derive(Debug)]
pub struct Subscriber<S = Sub> {
    socket: S,
    patterns: Vec<Pattern>,
    /// Property value of our own messages, if they must be skipped.
    own: Option<String>,
    statistics: Statistics,
}

impl<S: AsMut<Sub>> Subscriber<S> {
    /// Subscribes to all topics that match `pattern`, a [`Pattern`]. The subscription takes a
    /// moment to reach the publishers. Repeated subscriptions to a pattern count as one.
    ///
    /// # Errors
    /// Returns the errors of [`Pattern::from_str`](std::str::FromStr::from_str), or
    /// [`Error::Terminated`].
    pub fn subscribe(&mut self, pattern: &str) -> Result<()> {
        let pattern: Pattern = pattern.parse()?;
        if !self.patterns.contains(&pattern) {
            // The socket counts the subscriptions to each prefix.
            self.socket.as_mut().subscribe(pattern.prefix())?;
            self.patterns.push(pattern);
        }
        Ok(())
    }

    /// Cancels the subscription to a pattern. Queued messages that match no other pattern are
    /// skipped.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] for a pattern without a subscription, or [`Error::Terminated`].
    pub fn unsubscribe(&mut self, pattern: &str) -> Result<()> {
        let Some(at) = self.patterns.iter().position(|own| own.as_str() == pattern) else {
            return Err(Error::invalid(format!("{pattern}: this pattern is not subscribed")));
        };
        self.socket.as_mut().unsubscribe(self.patterns[at].prefix())?;
        self.patterns.remove(at);
        Ok(())
    }

    /// Returns the subscribed patterns.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Returns the counters. The counters of published messages are zero.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the SUB, for its options, peers and monitor.
    pub fn socket(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Decodes a message; `None` if it must be skipped.
    fn decode(&mut self, message: Multipart) -> Option<Update> {
        let Ok([topic, body]) = <[Message; 2]>::try_from(message) else {
            self.statistics.malformed += 1;
            return None;
        };
        if self.own.is_some() && topic.property(OWN) == self.own.as_deref() {
            self.statistics.own += 1;
            return None;
        }
        if !self.patterns.iter().any(|pattern| pattern.matches(topic.as_bytes())) {
            self.statistics.filtered += 1;
            return None;
        }
        self.statistics.received += 1;
        Some(Update { topic, body })
    }
}

/// For threads.
impl Subscriber {
    pub(super) fn new(socket: Sub, own: Option<String>) -> Self {
        Subscriber { socket, patterns: Vec::new(), own, statistics: Statistics::default() }
    }

    /// Converts the subscriber for an async program.
    #[must_use]
    pub fn into_async(self) -> Subscriber<aio::Sub> {
        let Subscriber { socket, patterns, own, statistics } = self;
        Subscriber { socket: socket.into_async(), patterns, own, statistics }
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`], [`Error::Terminated`], or [`Error::TimedOut`] after the
    /// SUB's receive timeout.
    pub fn recv(&mut self) -> Result<Update> {
        loop {
            let message = self.socket.recv_multipart()?;
            if let Some(update) = self.decode(message) {
                return Ok(update);
            }
        }
    }

    /// Waits for the next message, for at most `timeout`. Returns `None` after the timeout.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] or [`Error::Terminated`].
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
            if let Some(update) = self.decode(message) {
                return Ok(Some(update));
            }
        }
    }

    /// Returns the next message, without waiting. `None` if no message is queued.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] or [`Error::Terminated`].
    pub fn try_recv(&mut self) -> Result<Option<Update>> {
        self.recv_within(Duration::ZERO)
    }
}

/// For tasks.
impl Subscriber<aio::Sub> {
    /// Receives the next message. Cancel safe: if the future is dropped early, no message was
    /// taken.
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
    ///
    /// # Errors
    /// Returns [`Error::Terminated`].
    pub async fn recv(&mut self) -> Result<Update> {
        loop {
            let message = self.socket.recv_multipart().await?;
            if let Some(update) = self.decode(message) {
                return Ok(update);
            }
        }
    }

    /// Converts the subscriber for a thread.
    #[must_use]
    pub fn into_blocking(self) -> Subscriber {
        let Subscriber { socket, patterns, own, statistics } = self;
        Subscriber { socket: socket.into_blocking(), patterns, own, statistics }
    }
}
