//! Reports from a socket to the watch, for changes that cannot be seen in the queues. A socket that
//! is not observed reports nothing.

use tautline_observe::Route;

use super::Socket;
use crate::endpoint::Endpoint;
use crate::pipe::PipeId;

/// Adds information to a socket about the program's use of its messages: the names and counts that
/// `tell` returns. A thread of the library calls `tell` at each observation. A later call replaces
/// an earlier one. Has no effect if the socket is not observed.
pub fn show_route(socket: &Socket, tell: impl Fn() -> Route + Send + Sync + 'static) {
    if let Some(watch) = &socket.watch {
        watch.route(std::sync::Arc::new(tell));
    }
}

impl Socket {
    /// Reports changed options or subscriptions.
    pub(super) fn show_options(&self) {
        if let Some(watch) = &self.watch {
            watch.set_options(&self.pipes.options, self.pattern.topics_count().unwrap_or(0));
        }
    }

    /// Reports an endpoint that is about to be served, by this name.
    pub(super) fn show_endpoint(&self, given: &str, name: &str, bound: bool) {
        if let Some(watch) = &self.watch {
            watch.add_endpoint(given, name, bound);
        }
    }

    /// Reports a connected endpoint. Events use its canonical text.
    pub(super) fn show_connected(&self, given: &str, endpoint: &Endpoint) {
        if let Some(watch) = &self.watch {
            watch.add_endpoint(given, &endpoint.to_string(), false);
        }
    }

    /// Removes the endpoints that are gone.
    pub(super) fn show_endpoints(&self) {
        if let Some(watch) = &self.watch {
            watch.keep_endpoints(|given, bound| self.endpoints.iter().any(|entry| entry.is(given, bound)));
        }
    }

    /// Reports a new pipe.
    pub(super) fn show_pipe(&mut self, id: PipeId) {
        if let Some(watch) = &self.watch
            && let (Some(peer), Some(sight)) = (self.pipes.describe(id), self.pipes.probe(id))
        {
            watch.add_peer(peer, sight);
        }
    }

    /// Reports new information about a pipe's peer.
    pub(super) fn show_peer(&mut self, id: PipeId) {
        if let Some(watch) = &self.watch
            && let Some(peer) = self.pipes.describe(id)
        {
            watch.update_peer(peer);
            watch.set_reconnects(self.reconnects);
        }
    }

    /// Reports the endpoint that a pipe connects to, before its peer is known.
    pub(super) fn show_target(&self, id: PipeId, endpoint: &str) {
        if let Some(watch) = &self.watch {
            watch.target(id, endpoint);
        }
    }

    /// Reports a pipe whose peer is gone.
    pub(super) fn show_end(&self, id: PipeId) {
        if let Some(watch) = &self.watch {
            watch.mark_peer_ended(id);
        }
    }

    /// Reports a removed pipe.
    pub(super) fn show_removed(&self, id: PipeId) {
        if let Some(watch) = &self.watch {
            watch.remove_peer(id, self.pipes.losses().1);
        }
    }
}
