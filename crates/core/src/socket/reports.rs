//! Reports from a socket to tools, for changes that cannot be seen in the queues. A socket that is
//! not observed reports nothing.

use super::Socket;
use crate::endpoint::Endpoint;
use crate::host::SocketReport;
use crate::pipe::PipeId;

impl Socket {
    /// Returns the report of the socket, if it is observed.
    pub fn report(&self) -> Option<&dyn SocketReport> {
        self.report.as_deref()
    }

    /// Reports changed options or subscriptions.
    pub(super) fn show_options(&self) {
        if let Some(report) = &self.report {
            report.set_options(&self.pipes.options, self.pattern.topics_count().unwrap_or(0));
        }
    }

    /// Reports an endpoint that is about to be served, by this name. `mechanism` is empty, unless
    /// the endpoint accepts streams.
    pub(super) fn show_endpoint(&self, given: &str, name: &str, bound: bool, mechanism: &str) {
        if let Some(report) = &self.report {
            report.add_endpoint(given, name, bound, mechanism);
        }
    }

    /// Reports a connected endpoint. Events use its canonical text.
    pub(super) fn show_connected(&self, given: &str, endpoint: &Endpoint) {
        if let Some(report) = &self.report {
            report.add_endpoint(given, &endpoint.to_string(), false, "");
        }
    }

    /// Removes the endpoints that are gone.
    pub(super) fn show_endpoints(&self) {
        if let Some(report) = &self.report {
            report.keep_endpoints(&|given, bound| self.endpoints.iter().any(|entry| entry.is(given, bound)));
        }
    }

    /// Reports a new pipe.
    pub(super) fn show_pipe(&mut self, id: PipeId) {
        if let Some(report) = &self.report
            && let (Some(peer), Some(probe)) = (self.pipes.describe(id), self.pipes.probe(id))
        {
            report.add_peer(peer, probe);
        }
    }

    /// Reports new information about a pipe's peer.
    pub(super) fn show_peer(&mut self, id: PipeId) {
        if let Some(report) = &self.report
            && let Some(peer) = self.pipes.describe(id)
        {
            report.update_peer(peer, self.reconnects);
        }
    }

    /// Reports the endpoint that a pipe connects to, before its peer is known.
    pub(super) fn show_target(&mut self, id: PipeId, endpoint: &str) {
        if let Some(report) = &self.report
            && let Some(mut peer) = self.pipes.describe(id)
        {
            endpoint.clone_into(&mut peer.endpoint);
            report.update_peer(peer, self.reconnects);
        }
    }

    /// Reports a removed pipe.
    pub(super) fn show_removed(&self, id: PipeId) {
        if let Some(report) = &self.report {
            report.remove_peer(id.0.into(), self.pipes.losses().1);
        }
    }
}
