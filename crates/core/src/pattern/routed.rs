//! The pattern of a socket, with the routes that it has decided on: the only way to call it.
//!
//! Here stands how long a route holds, so that no pattern has to think of it. Each call of a
//! pattern falls under one of four rules:
//!
//! | call | the route for what is sent | for what is received |
//! |---|---|---|
//! | `send` | is the one returned; after an error, none | holds |
//! | `recv` | holds | is the one returned; after an error, none |
//! | `can_send`, `can_send_refused`, `can_recv` | holds | holds |
//! | all that tell the pattern something ([`Routed::told`]) | ends | ends |
//!
//! In `recv` and `can_recv` a pattern may also learn what its peers want (`Pipes::recv_any`). Then
//! the route for what is sent ends, too.

use super::Pattern;
use crate::error::Error;
use crate::pipe::{Keeper, Part, Pipes, Received, Route, Routes, Target};
use crate::sync::Arc;
use std::ops::Deref;

/// A pattern and its routes.
pub(crate) struct Routed {
    pattern: Box<dyn Pattern>,
    /// What the socket follows before it calls the pattern.
    pub(crate) routes: Routes,
    /// Something says which topics peers may use.
    pub(crate) keeps_topics: bool,
}

impl Routed {
    /// A pattern that has decided nothing yet.
    pub(crate) fn new(pattern: Box<dyn Pattern>) -> Self {
        Routed { pattern, routes: Routes::default(), keeps_topics: false }
    }

    /// From now on the keeper says which topics peers may use.
    pub(crate) fn keep_topics(&mut self, keeper: Arc<dyn Keeper>) {
        self.keeps_topics = true;
        if let Some(other) = self.told().keep_topics(keeper) {
            self.pattern = other;
        }
    }

    /// The pattern, to be told something: that pipes come, go or have something to read, what the
    /// program wants, an option.
    pub(crate) fn told(&mut self) -> &mut dyn Pattern {
        self.routes.end();
        &mut *self.pattern
    }

    /// As [`Pattern::send`]. The route is kept.
    #[inline]
    pub(crate) fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error> {
        match self.pattern.send(pipes, part) {
            Ok(route) => {
                self.routes.keep_out(route);
                Ok(())
            }
            Err(error) => {
                self.routes.end_out();
                Err(error)
            }
        }
    }

    /// As [`Pattern::recv`]. The route is kept.
    #[inline]
    pub(crate) fn recv(
        &mut self,
        pipes: &mut Pipes,
        target: &mut Target<'_>,
    ) -> Result<(Received, Route), Error> {
        let result = self.pattern.recv(pipes, target);
        self.heed(pipes);
        match &result {
            Ok((_, route)) => self.routes.keep_incoming(*route),
            Err(_) => self.routes.end_incoming(),
        }
        result
    }

    /// As [`Pattern::can_send`].
    #[inline]
    pub(crate) fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        self.pattern.can_send(pipes)
    }

    /// As [`Pattern::can_send_refused`].
    #[inline]
    pub(crate) fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        self.pattern.can_send_refused(pipes)
    }

    /// As [`Pattern::can_recv`].
    #[inline]
    pub(crate) fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        let can = self.pattern.can_recv(pipes);
        self.heed(pipes);
        can
    }

    /// What peers have told the pattern may change where messages go.
    #[inline]
    fn heed(&mut self, pipes: &mut Pipes) {
        if pipes.heard {
            pipes.heard = false;
            self.routes.end_out();
        }
    }
}

/// Calls that leave the pattern as it is.
impl Deref for Routed {
    type Target = dyn Pattern;

    fn deref(&self) -> &Self::Target {
        &*self.pattern
    }
}
