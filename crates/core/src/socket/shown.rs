//! What a socket tells the watch, where something of it changes that a look at its queues does not
//! see. Nothing of this is done unless the socket is observed.

use tautline_observe::Route;

use super::Socket;
use crate::endpoint::Endpoint;
use crate::pipe::PipeId;

/// Shows, with a socket, what the program does with its messages: the names and counts that `tell`
/// answers, by which they are asked for at each look, on a thread of the library. A later call
/// takes the place of an earlier one. Without effect if the socket is not observed.
pub fn show_route(socket: &Socket, tell: impl Fn() -> Route + Send + Sync + 'static) {
    if let Some(watch) = &socket.watch {
        watch.route(std::sync::Arc::new(tell));
    }
}

impl Socket {
    /// Options or subscriptions have changed.
    pub(super) fn show_options(&self) {
        if let Some(watch) = &self.watch {
            watch.options(&self.pipes.options, self.pattern.topics_count().unwrap_or(0));
        }
    }

    /// An endpoint is about to be served, by this name.
    pub(super) fn show_endpoint(&self, given: &str, name: &str, bound: bool) {
        if let Some(watch) = &self.watch {
            watch.endpoint(given, name, bound);
        }
    }

    /// The same for one that is connected: events call it by its canonical text.
    pub(super) fn show_connected(&self, given: &str, endpoint: &Endpoint) {
        if let Some(watch) = &self.watch {
            watch.endpoint(given, &endpoint.to_string(), false);
        }
    }

    /// Some endpoints may be gone.
    pub(super) fn show_endpoints(&self) {
        if let Some(watch) = &self.watch {
            watch.keep_endpoints(|given, bound| self.endpoints.iter().any(|entry| entry.is(given, bound)));
        }
    }

    /// A pipe was added.
    pub(super) fn show_pipe(&mut self, id: PipeId) {
        if let Some(watch) = &self.watch
            && let (Some(peer), Some(sight)) = (self.pipes.describe(id), self.pipes.sight(id))
        {
            watch.attached(peer, sight);
        }
    }

    /// More is known of its peer.
    pub(super) fn show_peer(&mut self, id: PipeId) {
        if let Some(watch) = &self.watch
            && let Some(peer) = self.pipes.describe(id)
        {
            watch.described(peer);
            watch.reconnected(self.reconnects);
        }
    }

    /// What it was connected to, before its peer is known.
    pub(super) fn show_target(&self, id: PipeId, endpoint: &str) {
        if let Some(watch) = &self.watch {
            watch.target(id, endpoint);
        }
    }

    /// Its peer is gone.
    pub(super) fn show_end(&self, id: PipeId) {
        if let Some(watch) = &self.watch {
            watch.ended(id);
        }
    }

    /// It was taken out.
    pub(super) fn show_removed(&self, id: PipeId) {
        if let Some(watch) = &self.watch {
            watch.removed(id, self.pipes.losses().1);
        }
    }
}
