//! Input of the rules about one process.

use std::collections::HashMap;

use super::text::{id_name, is_text, readable_name};
use crate::{Endpoint, Peer, Reading, Socket};

/// Input of the rules. Lookups use indexes instead of scans, because a process may have tens of
/// thousands of peers.
pub(super) struct RuleInput<'a> {
    pub(super) reading: &'a Reading,
    pub(super) before: Option<&'a Reading>,
    pub(super) now: u64,
    sockets: HashMap<u64, Parts<'a>>,
    sockets_before: HashMap<u64, Parts<'a>>,
    /// Earlier peers, by socket and peer.
    peers_before: HashMap<(u64, u64), &'a Peer>,
}

/// Endpoints and peers of a socket.
#[derive(Default)]
struct Parts<'a> {
    socket: Option<&'a Socket>,
    endpoints: Vec<&'a Endpoint>,
    peers: Vec<&'a Peer>,
}

/// Returns the parts of each socket of a reading.
fn by_socket(reading: &Reading) -> HashMap<u64, Parts<'_>> {
    let mut sockets: HashMap<u64, Parts<'_>> = HashMap::new();
    for socket in &reading.sockets {
        sockets.entry(socket.id).or_default().socket = Some(socket);
    }
    for endpoint in &reading.endpoints {
        sockets.entry(endpoint.socket).or_default().endpoints.push(endpoint);
    }
    for peer in &reading.peers {
        sockets.entry(peer.socket).or_default().peers.push(peer);
    }
    sockets
}

impl<'a> RuleInput<'a> {
    pub(super) fn new(reading: &'a Reading, before: Option<&'a Reading>) -> Self {
        let before_peers = before.into_iter().flat_map(|before| &before.peers);
        RuleInput {
            reading,
            before,
            now: reading.process.written,
            sockets: by_socket(reading),
            sockets_before: before.map(by_socket).unwrap_or_default(),
            peers_before: before_peers.map(|peer| ((peer.socket, peer.id), peer)).collect(),
        }
    }

    /// Returns the whole seconds since `since`.
    pub(super) fn seconds(&self, since: u64) -> u64 {
        if since == 0 { 0 } else { self.now.saturating_sub(since) / 1_000_000 }
    }

    /// Returns the microseconds between the two readings.
    pub(super) fn between(&self) -> Option<u64> {
        self.now.checked_sub(self.before?.process.written).filter(|time| *time > 0)
    }

    pub(super) fn socket(&self, id: u64) -> Option<&'a Socket> {
        self.sockets.get(&id)?.socket
    }

    pub(super) fn endpoints_of(&self, socket: u64) -> impl Iterator<Item = &'a Endpoint> + use<'a, '_> {
        self.sockets.get(&socket).into_iter().flat_map(|parts| parts.endpoints.iter().copied())
    }

    pub(super) fn peers_of(&self, socket: u64) -> impl Iterator<Item = &'a Peer> + use<'a, '_> {
        self.sockets.get(&socket).into_iter().flat_map(|parts| parts.peers.iter().copied())
    }

    /// Returns the increase of a number of the socket since the earlier reading. Without one,
    /// returns the whole number.
    pub(super) fn increase(&self, socket: &Socket, number: impl Fn(&Socket) -> u64) -> u64 {
        let before = self.sockets_before.get(&socket.id).and_then(|before| before.socket);
        number(socket).saturating_sub(before.map_or(0, number))
    }

    /// Returns the endpoint from the earlier reading.
    pub(super) fn endpoint_before(&self, endpoint: &Endpoint) -> Option<&'a Endpoint> {
        let before = &self.sockets_before.get(&endpoint.socket)?.endpoints;
        let is_same = |known: &&Endpoint| known.bound == endpoint.bound && known.given == endpoint.given;
        before.iter().copied().find(|known| is_same(known))
    }

    /// Returns the peer from the earlier reading.
    pub(super) fn peer_before(&self, peer: &Peer) -> Option<&'a Peer> {
        self.peers_before.get(&(peer.socket, peer.id)).copied()
    }

    /// Returns the rate per second for an increase by `more`.
    pub(super) fn rate(&self, more: u64) -> Option<u64> {
        Some((u128::from(more) * 1_000_000 / u128::from(self.between()?)) as u64)
    }

    /// Returns the command that shows a socket with its peers and its last events.
    pub(super) fn show_command(&self, socket: &Socket) -> String {
        format!("`taut show {}/{}`", self.reading.name(), socket.id)
    }

    /// Returns a sentence with the commands that show the stacks of the threads.
    pub(super) fn stack_commands(&self) -> String {
        let pid = self.reading.process.pid;
        format!("`gdb -p {pid}` shows its stack (in Python: `py-spy dump --pid {pid}`).")
    }

    /// Returns a readable name of a peer: its routing ID, and its program or address.
    pub(super) fn peer_name(&self, peer: &Peer) -> String {
        let program = self.reading.peer_program(peer);
        let mut addresses = [&peer.address, &peer.endpoint, &peer.host].into_iter();
        let place = program.or_else(|| addresses.find(|text| !text.is_empty()).cloned());
        match (is_text(&peer.routing_id), place) {
            (true, Some(place)) => format!("{} at {place}", id_name(&peer.routing_id)),
            (true, None) => id_name(&peer.routing_id),
            (false, Some(place)) => place,
            (false, None) => format!("peer {}", peer.id),
        }
    }

    /// Returns a readable name of a socket.
    pub(super) fn name_of(&self, socket: &Socket) -> String {
        match self.endpoints_of(socket.id).next().map(readable_name) {
            Some(at) => format!("{} at {at}", socket.type_name),
            None => format!("{} (socket {})", socket.type_name, socket.id),
        }
    }
}
