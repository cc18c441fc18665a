//! The half that subscribes.

use std::time::{Duration, Instant};

use super::{OWN, Pattern, Statistics};
use crate::error::{Error, Result};
use crate::{Message, Multipart, Sub, aio};

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub struct Update {
    /// What it is about.
    pub topic: Message,
    /// What it says.
    pub body: Message,
}

/// What subscribes to topics of a space; see [`topics`](super). With an [`aio::Sub`] it is for
/// async programs.
#[derive(Debug)]
pub struct Subscriber<S = Sub> {
    socket: S,
    patterns: Vec<Pattern>,
    /// What the messages have that are not to be received.
    own: Option<String>,
    statistics: Statistics,
}

impl<S: AsMut<Sub>> Subscriber<S> {
    /// Receives from now on what `pattern`, a [`Pattern`], stands for. It takes a moment to reach
    /// the publishers. A pattern counts once, however often it is subscribed to.
    ///
    /// # Errors
    /// Those of [`Pattern::from_str`](std::str::FromStr::from_str); [`Error::Terminated`].
    pub fn subscribe(&mut self, pattern: &str) -> Result<()> {
        let pattern: Pattern = pattern.parse()?;
        if !self.patterns.contains(&pattern) {
            // The socket counts how often it was asked for a prefix.
            self.socket.as_mut().subscribe(pattern.prefix())?;
            self.patterns.push(pattern);
        }
        Ok(())
    }

    /// Takes a pattern back. What has come already and is of no other pattern is not received.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a pattern that was not subscribed to; [`Error::Terminated`].
    pub fn unsubscribe(&mut self, pattern: &str) -> Result<()> {
        let Some(at) = self.patterns.iter().position(|own| own.as_str() == pattern) else {
            return Err(Error::invalid(format!("{pattern}: there is no subscription to it")));
        };
        self.socket.as_mut().unsubscribe(self.patterns[at].prefix())?;
        self.patterns.remove(at);
        Ok(())
    }

    /// What it is subscribed to.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// What was counted; of what is published, nothing.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The SUB itself, for its options, peers and monitor.
    pub fn socket(&mut self) -> &mut S {
        &mut self.socket
    }

    /// What is to be received of a message.
    fn look_at(&mut self, message: Multipart) -> Option<Update> {
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

    /// The same for an async program.
    #[must_use]
    pub fn into_async(self) -> Subscriber<aio::Sub> {
        let Subscriber { socket, patterns, own, statistics } = self;
        Subscriber { socket: socket.into_async(), patterns, own, statistics }
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::Terminated`]; [`Error::WouldBlock`] after the SUB's receive
    /// timeout.
    pub fn recv(&mut self) -> Result<Update> {
        loop {
            let message = self.socket.recv_multipart()?;
            if let Some(update) = self.look_at(message) {
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
            if let Some(update) = self.look_at(message) {
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
}

/// For tasks.
impl Subscriber<aio::Sub> {
    /// The next message. Dropped before its end, nothing was received.
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
    /// [`Error::Terminated`].
    pub async fn recv(&mut self) -> Result<Update> {
        loop {
            let message = self.socket.recv_multipart().await?;
            if let Some(update) = self.look_at(message) {
                return Ok(update);
            }
        }
    }

    /// The same for a thread.
    #[must_use]
    pub fn into_blocking(self) -> Subscriber {
        let Subscriber { socket, patterns, own, statistics } = self;
        Subscriber { socket: socket.into_blocking(), patterns, own, statistics }
    }
}
