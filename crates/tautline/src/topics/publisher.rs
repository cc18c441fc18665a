//! The publishing half.

use std::time::Duration;

use super::Statistics;
use super::pattern::check_topic;
use crate::error::Result;
use crate::{Message, Pub};

/// Publishes to a space; see [`topics`](super).
#[derive(Debug)]
pub struct Publisher {
    socket: Pub,
    published: u64,
}

impl Publisher {
    pub(super) fn new(socket: Pub) -> Self {
        Publisher { socket, published: 0 }
    }

    /// Publishes a message to all subscribers of its topic.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`](crate::Error::Invalid) for a topic that is empty or contains `*`,
    /// and the errors of [`Socket::send`](crate::Socket::send).
    pub fn publish(&mut self, topic: &str, body: impl Into<Message>) -> Result<()> {
        check_topic(topic)?;
        self.socket.send_multipart([Message::from(topic), body.into()])?;
        self.published += 1;
        Ok(())
    }

    /// Waits until subscribers have subscribed to at least `count` different prefixes of topics
    /// ([`Pattern::prefix`](super::Pattern::prefix)), for at most `timeout` (`None`: without
    /// limit). Returns false after the timeout. Messages that are published later reach these
    /// subscribers. In a space, a [`Topics`](super::Topics) is connected to itself, so its own
    /// subscriptions count.
    ///
    /// # Errors
    /// Returns the errors of
    /// [`Socket::wait_for_subscriptions`](crate::Socket::wait_for_subscriptions).
    pub fn wait_for_subscriptions(
        &mut self,
        count: usize,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<bool> {
        self.socket.wait_for_subscriptions(count, timeout)
    }

    /// Returns the counters. The counters of received messages are zero.
    ///
    /// # Errors
    /// Returns [`Error::Terminated`](crate::Error::Terminated).
    pub fn statistics(&mut self) -> Result<Statistics> {
        let dropped = self.socket.statistics()?.dropped_full;
        Ok(Statistics { published: self.published, dropped, ..Statistics::default() })
    }

    /// Returns the PUB, for its options, peers and monitor.
    pub fn socket(&mut self) -> &mut Pub {
        &mut self.socket
    }
}
