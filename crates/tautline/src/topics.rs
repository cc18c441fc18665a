//! Topics by name, wherever their publishers and subscribers are.
//!
//! Each program that joins a *space* publishes to all others in it and hears all of them, within a
//! process, on a host, and between hosts. There is no server in between: each has a PUB that is
//! bound to the name of the space, and a SUB that is connected to all that have bound it.
//!
//! ```
//! # fn main() -> tautline::Result<()> {
//! use tautline::Context;
//! use tautline::topics::Topics;
//!
//! let context = Context::new();
//! let mut station = Topics::builder(&context).bind("inproc://lund").build()?;
//! let mut display = Topics::builder(&context).bind("inproc://display").connect("inproc://lund").build()?;
//! display.subscribe("weather.*.wind")?;
//!
//! station.wait_for_subscriptions(1, None)?;
//! station.publish("weather.lund.rain", "none")?; // not wanted
//! station.publish("weather.lund.wind", "7 m/s")?;
//! let update = display.recv()?;
//! assert!(update.topic == "weather.lund.wind" && update.body == "7 m/s");
//! # Ok(()) }
//! ```
//!
//! Tasks take [`Subscriber::into_async`].
//!
//! [`Topics::join`] takes a name in place of endpoints, with the cargo feature `names`: all that
//! have joined find each other.
//!
//! # Topics and patterns
//!
//! A topic is any text without `*`. `.` and `/` divide it into tokens; what is subscribed to is a
//! [`Pattern`]. The longest beginning of a pattern that has no `*` is what the publishers are told:
//! they send nothing that begins otherwise. The rest is looked at where it is received.
//!
//! A message that several patterns stand for comes once.
//!
//! # On the wire
//!
//! A message has two parts, the topic and the body. Any PUB, SUB, XPUB, XSUB or proxy may be at the
//! other end. Messages with another number of parts are skipped, and counted.
//!
//! # What is promised
//!
//! As PUB and SUB promise: messages of one publisher come in order, and none twice. A subscriber
//! does not get what was published before its subscription had reached the publisher
//! ([`wait_for_subscriptions`](Topics::wait_for_subscriptions)). To one that is too slow, messages
//! are dropped at the publisher beyond the high-water marks ([`Statistics::dropped`]).
//! [`replay`](crate::replay) tells what was lost and repairs it.

mod pattern;
mod publisher;
mod subscriber;

pub use pattern::Pattern;
pub use publisher::Publisher;
pub use subscriber::{Subscriber, Update};

use std::time::{Duration, Instant};

use tautline_core::fill_random;

use crate::error::Result;
use crate::message::Message;
use crate::{Builder, Context, Pub, Sub, kind};

/// The property by which a SUB knows the messages of the PUB beside it.
const OWN: &str = "X-Taut-Topics";

/// Time between two looks of the half that waits at the other one.
const LOOK: Duration = Duration::from_millis(10);

/// The endpoint of a space: what its publishers bind and its subscribers connect to.
///
/// ```
/// assert_eq!(tautline::topics::endpoint("prices"), "name://topics.prices");
/// ```
pub fn endpoint(space: &str) -> String {
    format!("name://topics.{space}")
}

/// How a [`Topics`], or one half of it, is made.
#[must_use = "a builder makes nothing until `build`, `publisher` or `subscriber` is called"]
#[derive(Debug)]
pub struct TopicsBuilder {
    binds: Vec<String>,
    connects: Vec<String>,
    own: bool,
    publisher: Builder<kind::Pub>,
    subscriber: Builder<kind::Sub>,
}

impl TopicsBuilder {
    /// Where others find what is published here; may be called several times.
    pub fn bind(mut self, endpoint: impl Into<String>) -> Self {
        self.binds.push(endpoint.into());
        self
    }

    /// Where others publish; may be called several times.
    pub fn connect(mut self, endpoint: impl Into<String>) -> Self {
        self.connects.push(endpoint.into());
        self
    }

    /// Both, by the name of a space: [`endpoint`].
    pub fn space(self, name: &str) -> Self {
        let endpoint = endpoint(name);
        self.bind(endpoint.clone()).connect(endpoint)
    }

    /// Whether what is published here is received here, too, where a pattern stands for it. It is
    /// not by default.
    pub fn own(mut self, on: bool) -> Self {
        self.own = on;
        self
    }

    /// Options of the PUB, for example its high-water mark.
    pub fn publish_with(mut self, options: impl FnOnce(Builder<kind::Pub>) -> Builder<kind::Pub>) -> Self {
        self.publisher = options(self.publisher);
        self
    }

    /// Options of the SUB.
    pub fn subscribe_with(mut self, options: impl FnOnce(Builder<kind::Sub>) -> Builder<kind::Sub>) -> Self {
        self.subscriber = options(self.subscriber);
        self
    }

    /// Both halves.
    ///
    /// # Errors
    /// Those of [`Builder::bind`] and [`Builder::connect`].
    pub fn build(self) -> Result<Topics> {
        let TopicsBuilder { binds, mut connects, own, publisher, subscriber } = self;
        let id = (!own).then(random).transpose()?;
        let publisher = match &id {
            Some(id) => publisher.property(OWN, id),
            None => publisher,
        };
        let (publisher, bound) = bind(publisher, &binds)?;
        // By a name it is found as all others are.
        let finds_itself = binds.iter().chain(&bound).any(|endpoint| connects.contains(endpoint));
        if own && !finds_itself {
            connects.extend(bound.first().cloned());
        }
        Ok(Topics { publisher, subscriber: connect(subscriber, &connects, id)? })
    }

    /// The half that publishes, and where it is bound. Nothing is connected.
    ///
    /// # Errors
    /// Those of [`Builder::bind`].
    pub fn publisher(self) -> Result<(Publisher, Vec<String>)> {
        bind(self.publisher, &self.binds)
    }

    /// The half that subscribes. Nothing is bound.
    ///
    /// # Errors
    /// Those of [`Builder::connect`].
    pub fn subscriber(self) -> Result<Subscriber> {
        connect(self.subscriber, &self.connects, None)
    }
}

fn bind(publisher: Builder<kind::Pub>, endpoints: &[String]) -> Result<(Publisher, Vec<String>)> {
    let mut socket = publisher.build()?;
    let bound = endpoints.iter().map(|endpoint| socket.bind(endpoint)).collect::<Result<_>>()?;
    Ok((Publisher::new(socket), bound))
}

fn connect(subscriber: Builder<kind::Sub>, endpoints: &[String], own: Option<String>) -> Result<Subscriber> {
    let mut socket = subscriber.build()?;
    endpoints.iter().try_for_each(|endpoint| socket.connect(endpoint))?;
    Ok(Subscriber::new(socket, own))
}

/// A word that no other process has.
fn random() -> Result<String> {
    let mut bytes = [0; 12];
    fill_random(&mut bytes).map_err(tautline_core::Error::from)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Messages that were published here.
    pub published: u64,
    /// Messages, one for each subscriber, that were dropped because the subscriber was at its
    /// high-water mark.
    pub dropped: u64,
    /// Messages that were received.
    pub received: u64,
    /// Messages that came, and that no pattern stands for.
    pub filtered: u64,
    /// Messages of this one's own that came, and were skipped.
    pub own: u64,
    /// Messages that had not two parts. They were skipped.
    pub malformed: u64,
}

/// A publisher and a subscriber of a space; see [`topics`](self).
#[derive(Debug)]
pub struct Topics {
    publisher: Publisher,
    subscriber: Subscriber,
}

impl Topics {
    /// One with options.
    pub fn builder(context: &Context) -> TopicsBuilder {
        TopicsBuilder {
            binds: Vec::new(),
            connects: Vec::new(),
            own: false,
            publisher: Pub::builder(context),
            subscriber: Sub::builder(context),
        }
    }

    /// Joins a space.
    ///
    /// # Errors
    /// Those of [`TopicsBuilder::build`].
    pub fn join(context: &Context, space: &str) -> Result<Self> {
        Self::builder(context).space(space).build()
    }

    /// Both halves, for two threads.
    pub fn split(self) -> (Publisher, Subscriber) {
        (self.publisher, self.subscriber)
    }

    /// See [`Publisher::publish`].
    ///
    /// # Errors
    /// Those of [`Publisher::publish`].
    pub fn publish(&mut self, topic: &str, body: impl Into<Message>) -> Result<()> {
        self.publisher.publish(topic, body)
    }

    /// See [`Publisher::wait_for_subscriptions`].
    ///
    /// # Errors
    /// Those of [`Publisher::wait_for_subscriptions`].
    pub fn wait_for_subscriptions(
        &mut self,
        count: usize,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<bool> {
        let deadline = timeout.into().and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            // By a name it meets publishers of this process, its own for one, in a call of its own.
            self.subscriber.socket().wait_readable(Duration::ZERO)?;
            let left = deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()));
            if self.publisher.wait_for_subscriptions(count, left.min(LOOK))? {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// See [`Subscriber::subscribe`].
    ///
    /// # Errors
    /// Those of [`Subscriber::subscribe`].
    pub fn subscribe(&mut self, pattern: &str) -> Result<()> {
        self.subscriber.subscribe(pattern)
    }

    /// See [`Subscriber::unsubscribe`].
    ///
    /// # Errors
    /// Those of [`Subscriber::unsubscribe`].
    pub fn unsubscribe(&mut self, pattern: &str) -> Result<()> {
        self.subscriber.unsubscribe(pattern)
    }

    /// See [`Subscriber::recv`].
    ///
    /// # Errors
    /// Those of [`Subscriber::recv`].
    pub fn recv(&mut self) -> Result<Update> {
        self.subscriber.recv()
    }

    /// See [`Subscriber::recv_within`].
    ///
    /// # Errors
    /// Those of [`Subscriber::recv_within`].
    pub fn recv_within(&mut self, timeout: Duration) -> Result<Option<Update>> {
        self.subscriber.recv_within(timeout)
    }

    /// See [`Subscriber::try_recv`].
    ///
    /// # Errors
    /// Those of [`Subscriber::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<Update>> {
        self.subscriber.try_recv()
    }

    /// What was counted, of both halves.
    ///
    /// # Errors
    /// [`Error::Terminated`](crate::Error::Terminated).
    pub fn statistics(&mut self) -> Result<Statistics> {
        let Statistics { published, dropped, .. } = self.publisher.statistics()?;
        Ok(Statistics { published, dropped, ..self.subscriber.statistics() })
    }

    /// The half that publishes.
    pub fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// The half that subscribes.
    pub fn subscriber(&mut self) -> &mut Subscriber {
        &mut self.subscriber
    }
}
