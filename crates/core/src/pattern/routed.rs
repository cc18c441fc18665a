//! The pattern of a socket, with the routes that it has chosen. All calls of a pattern go through
//! this type.
//!
//! This file decides how long a route is valid, so patterns need no code for that. Each call of a
//! pattern follows one of four rules:
//!
//! | call | the send route | the receive route |
//! |---|---|---|
//! | `send` | is the returned one; ends after an error | stays valid |
//! | `recv` | stays valid | is the returned one; ends after an error |
//! | `can_send`, `can_send_refused`, `can_recv` | stays valid | stays valid |
//! | all calls that tell the pattern something ([`Routed::pattern_mut`]) | ends | ends |
//!
//! In `recv` and `can_recv` a pattern may also read commands of its peers (`Pipes::recv_any`). Then
//! the send route ends too.

use super::{Pattern, Received, Sent};
use crate::error::Error;
use crate::pipe::{Part, Pipes, Routes, Target, TopicAccess};
use std::ops::Deref;
use tautline_queue::sync::Arc;

/// A pattern and its routes.
pub(crate) struct Routed {
    pattern: Box<dyn Pattern>,
    /// The routes that the socket follows before it calls the pattern.
    pub(crate) routes: Routes,
    /// True if a policy or an authorizer limits the topics that peers may use.
    pub(crate) restricts_topics: bool,
}

impl Routed {
    /// Wraps a pattern that has not chosen a route yet.
    pub(crate) fn new(pattern: Box<dyn Pattern>) -> Self {
        Routed { pattern, routes: Routes::default(), restricts_topics: false }
    }

    /// Makes the pattern ask `keeper` which topics peers may use, from now on.
    pub(crate) fn restrict_topics(&mut self, keeper: Arc<dyn TopicAccess>) {
        self.restricts_topics = true;
        if let Some(other) = self.pattern_mut().restrict_topics(keeper) {
            self.pattern = other;
        }
    }

    /// Returns the pattern, for a call that tells it something: a new, ended or readable pipe, a
    /// request of the program, an option. Ends all routes.
    pub(crate) fn pattern_mut(&mut self) -> &mut dyn Pattern {
        self.routes.end();
        &mut *self.pattern
    }

    /// Sends a part by [`Pattern::send`], and stores the route that it returns.
    #[inline]
    pub(crate) fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        let result = self.pattern.send(pipes, part);
        match &result {
            Ok(sent) => self.routes.keep_out(sent.route),
            Err(_) => self.routes.end_out(),
        }
        result
    }

    /// Receives a part by [`Pattern::recv`], and stores the route that it returns.
    #[inline]
    pub(crate) fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        let result = self.pattern.recv(pipes, target);
        self.end_route_after_commands(pipes);
        match &result {
            Ok(received) => self.routes.keep_incoming(received.route),
            Err(_) => self.routes.end_incoming(),
        }
        result
    }

    /// Returns the result of [`Pattern::can_send`].
    #[inline]
    pub(crate) fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        self.pattern.can_send(pipes)
    }

    /// Returns the result of [`Pattern::can_send_refused`].
    #[inline]
    pub(crate) fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        self.pattern.can_send_refused(pipes)
    }

    /// Returns the result of [`Pattern::can_recv`].
    #[inline]
    pub(crate) fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        let can = self.pattern.can_recv(pipes);
        self.end_route_after_commands(pipes);
        can
    }

    /// Ends the send route if the pattern has read commands of its peers, because they may change
    /// the destination of messages.
    #[inline]
    fn end_route_after_commands(&mut self, pipes: &mut Pipes) {
        if pipes.has_read_commands {
            pipes.has_read_commands = false;
            self.routes.end_out();
        }
    }
}

/// Calls that do not change the pattern.
impl Deref for Routed {
    type Target = dyn Pattern;

    fn deref(&self) -> &Self::Target {
        &*self.pattern
    }
}
