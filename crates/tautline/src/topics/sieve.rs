//! What of the messages that come is to be received.

use super::{OWN, Pattern, Statistics, Update};
use crate::error::{Error, Result};
use crate::{Message, Multipart};

/// The patterns of a subscriber, and what it has counted.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    patterns: Vec<Pattern>,
    /// What the messages have that are not to be received.
    own: Option<String>,
    pub(super) statistics: Statistics,
}

impl Sieve {
    pub(super) fn new(own: Option<String>) -> Self {
        Sieve { own, ..Sieve::default() }
    }

    pub(super) fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Takes a pattern in, once `subscribe` has told its prefix: the socket counts how often it was
    /// asked for one.
    pub(super) fn add(&mut self, pattern: &str, subscribe: impl FnOnce(&str) -> Result<()>) -> Result<()> {
        let pattern: Pattern = pattern.parse()?;
        if !self.patterns.contains(&pattern) {
            subscribe(pattern.prefix())?;
            self.patterns.push(pattern);
        }
        Ok(())
    }

    /// Takes a pattern out, once `unsubscribe` has told that its prefix is not wanted.
    pub(super) fn remove(
        &mut self,
        pattern: &str,
        unsubscribe: impl FnOnce(&str) -> Result<()>,
    ) -> Result<()> {
        let Some(at) = self.patterns.iter().position(|own| own.as_str() == pattern) else {
            return Err(Error::invalid(format!("{pattern}: there is no subscription to it")));
        };
        unsubscribe(self.patterns[at].prefix())?;
        self.patterns.remove(at);
        Ok(())
    }

    /// What is to be received of a message.
    pub(super) fn look_at(&mut self, message: Multipart) -> Option<Update> {
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
