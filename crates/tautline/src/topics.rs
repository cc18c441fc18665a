//! Publish and subscribe by topic name, wherever publishers and subscribers run.
//!
//! Each program that joins a *space* publishes to all other members and receives from all of them:
//! within a process, on a host, and between hosts. There is no server in between. Each member has a
//! PUB that is bound to the name of the space, and a SUB that is connected to every PUB bound to
//! this name.
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
//! For async programs, use [`Subscriber::into_async`].
//!
//! [`Topics::join`] takes a name instead of endpoints, and needs the cargo feature `names`. All
//! members find each other.
//!
//! # Topics and patterns
//!
//! A topic is any text without `*`. `.` and `/` divide it into tokens. A subscription is a
//! [`Pattern`]. The publishers only learn the prefix of the pattern before the first `*`: they send
//! all messages with this prefix. The subscriber checks the rest of the pattern.
//!
//! A message that matches several patterns is received once.
//!
//! # On the wire
//!
//! A message has two parts, the topic and the body. The peer may be any PUB, SUB, XPUB, XSUB or
//! proxy. Messages with another number of parts are skipped and counted.
//!
//! # What is promised
//!
//! The guarantees are those of PUB and SUB: the messages of one publisher arrive in order, and none
//! twice. A subscriber does not receive messages that were published before its subscription
//! reached the publisher ([`wait_for_subscriptions`](Topics::wait_for_subscriptions)). If a
//! subscriber is too slow, the publisher drops its messages above the high-water marks
//! ([`Statistics::dropped`]). [`replay`](crate::replay) reports lost messages and repairs the loss.

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

/// Property by which a SUB recognises the messages of its own PUB.
const OWN: &str = "X-Taut-Topics";

/// Interval at which the waiting half serves the other half.
const SERVE_INTERVAL: Duration = Duration::from_millis(10);

/// Returns the endpoint of a space, for publishers to bind and subscribers to connect.
///
/// ```
/// assert_eq!(tautline::topics::endpoint("prices"), "name://topics.prices");
/// ```
pub fn endpoint(space: &str) -> String {
    format!("name://topics.{space}")
}

/// Options of a future [`Topics`], or of one of its halves.
#[must_use = "a builder has no effect until `build`, `publisher` or `subscriber` is called"]
#[derive(Debug)]
pub struct TopicsBuilder {
    binds: Vec<String>,
    connects: Vec<String>,
    own: bool,
    publisher: Builder<kind::Pub>,
    subscriber: Builder<kind::Sub>,
}

impl TopicsBuilder {
    /// Adds an endpoint for the publisher to bind; can be called several times.
    pub fn bind(mut self, endpoint: impl Into<String>) -> Self {
        self.binds.push(endpoint.into());
        self
    }

    /// Adds an endpoint for the subscriber to connect; can be called several times.
    pub fn connect(mut self, endpoint: impl Into<String>) -> Self {
        self.connects.push(endpoint.into());
        self
    }

    /// Adds both, by the name of a space: [`endpoint`].
    pub fn space(self, name: &str) -> Self {
        let endpoint = endpoint(name);
        self.bind(endpoint.clone()).connect(endpoint)
    }

    /// Also receives our own messages, if they match a pattern. Off by default.
    pub fn receive_own(mut self, on: bool) -> Self {
        self.own = on;
        self
    }

    /// Sets options of the PUB, for example its high-water mark.
    pub fn publish_with(mut self, options: impl FnOnce(Builder<kind::Pub>) -> Builder<kind::Pub>) -> Self {
        self.publisher = options(self.publisher);
        self
    }

    /// Sets options of the SUB.
    pub fn subscribe_with(mut self, options: impl FnOnce(Builder<kind::Sub>) -> Builder<kind::Sub>) -> Self {
        self.subscriber = options(self.subscriber);
        self
    }

    /// Creates both halves.
    ///
    /// # Errors
    /// Returns the errors of [`Builder::bind`] and [`Builder::connect`].
    pub fn build(self) -> Result<Topics> {
        let TopicsBuilder { binds, mut connects, own, publisher, subscriber } = self;
        let id = (!own).then(random).transpose()?;
        let publisher = match &id {
            Some(id) => publisher.property(OWN, id),
            None => publisher,
        };
        let (publisher, bound) = bind(publisher, &binds)?;
        // In a space, it finds itself like every other member.
        let finds_itself = binds.iter().chain(&bound).any(|endpoint| connects.contains(endpoint));
        if own && !finds_itself {
            connects.extend(bound.first().cloned());
        }
        Ok(Topics { publisher, subscriber: connect(subscriber, &connects, id)? })
    }

    /// Creates the publishing half, and returns its bound endpoints. Connects to no endpoint.
    ///
    /// # Errors
    /// Returns the errors of [`Builder::bind`].
    pub fn publisher(self) -> Result<(Publisher, Vec<String>)> {
        bind(self.publisher, &self.binds)
    }

    /// Creates the subscribing half. Binds no endpoint.
    ///
    /// # Errors
    /// Returns the errors of [`Builder::connect`].
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

/// Returns a random text, unique among all processes.
fn random() -> Result<String> {
    let mut bytes = [0; 12];
    fill_random(&mut bytes).map_err(tautline_core::Error::from)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Messages that were published here.
    pub published: u64,
    /// Messages dropped because a subscriber was at its high-water mark, counted for each
    /// subscriber.
    pub dropped: u64,
    /// Messages that were received.
    pub received: u64,
    /// Messages that arrived but match no pattern.
    pub filtered: u64,
    /// Our own messages that arrived and were skipped.
    pub own: u64,
    /// Skipped messages that did not have two parts.
    pub malformed: u64,
}

/// A publisher and a subscriber of a space; see [`topics`](self).
#[derive(Debug)]
pub struct Topics {
    publisher: Publisher,
    subscriber: Subscriber,
}

impl Topics {
    /// Returns a builder, to set options first.
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
    /// Returns the errors of [`TopicsBuilder::build`].
    pub fn join(context: &Context, space: &str) -> Result<Self> {
        Self::builder(context).space(space).build()
    }

    /// Returns both halves, for two threads.
    pub fn split(self) -> (Publisher, Subscriber) {
        (self.publisher, self.subscriber)
    }

    /// See [`Publisher::publish`].
    ///
    /// # Errors
    /// Returns the errors of [`Publisher::publish`].
    pub fn publish(&mut self, topic: &str, body: impl Into<Message>) -> Result<()> {
        self.publisher.publish(topic, body)
    }

    /// See [`Publisher::wait_for_subscriptions`].
    ///
    /// # Errors
    /// Returns the errors of [`Publisher::wait_for_subscriptions`].
    pub fn wait_for_subscriptions(
        &mut self,
        count: usize,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<bool> {
        let deadline = timeout.into().and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            // In a space, the subscriber connects to the publishers of this process, its own
            // included, only within one of its calls.
            self.subscriber.socket().wait_readable(Duration::ZERO)?;
            let left = deadline
                .map_or(SERVE_INTERVAL, |deadline| deadline.saturating_duration_since(Instant::now()));
            if self.publisher.wait_for_subscriptions(count, left.min(SERVE_INTERVAL))? {
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
    /// Returns the errors of [`Subscriber::subscribe`].
    pub fn subscribe(&mut self, pattern: &str) -> Result<()> {
        self.subscriber.subscribe(pattern)
    }

    /// See [`Subscriber::unsubscribe`].
    ///
    /// # Errors
    /// Returns the errors of [`Subscriber::unsubscribe`].
    pub fn unsubscribe(&mut self, pattern: &str) -> Result<()> {
        self.subscriber.unsubscribe(pattern)
    }

    /// See [`Subscriber::recv`].
    ///
    /// # Errors
    /// Returns the errors of [`Subscriber::recv`].
    pub fn recv(&mut self) -> Result<Update> {
        self.subscriber.recv()
    }

    /// See [`Subscriber::recv_within`].
    ///
    /// # Errors
    /// Returns the errors of [`Subscriber::recv_within`].
    pub fn recv_within(&mut self, timeout: Duration) -> Result<Option<Update>> {
        self.subscriber.recv_within(timeout)
    }

    /// See [`Subscriber::try_recv`].
    ///
    /// # Errors
    /// Returns the errors of [`Subscriber::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<Update>> {
        self.subscriber.try_recv()
    }

    /// Returns the counters of both halves.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`](crate::Error::Terminated).
    pub fn statistics(&mut self) -> Result<Statistics> {
        let Statistics { published, dropped, .. } = self.publisher.statistics()?;
        Ok(Statistics { published, dropped, ..self.subscriber.statistics() })
    }

    /// Returns the publishing half.
    pub fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// Returns the subscribing half.
    pub fn subscriber(&mut self) -> &mut Subscriber {
        &mut self.subscriber
    }
}
