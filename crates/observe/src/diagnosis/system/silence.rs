//! Connections that end again and again, because a peer answers no heartbeat or closes them.

use super::finding;
use crate::diagnosis::graph::{Graph, SocketKey};
use crate::diagnosis::text::{format_bytes, format_count, readable_name};
use crate::diagnosis::{Finding, Level, ProcessState};

/// Lost connections from which on they are worth a finding.
const OFTEN: u64 = 3;
/// Age in seconds from which a lost connection is no news.
const LATELY: u64 = 60;

/// Peers that were given up because they answered no heartbeat, told at the socket that gave up.
pub(super) fn silent_peers(graph: &Graph<'_>) -> Vec<Finding> {
    let losing = graph.sockets().filter(|(_, socket)| socket.lost_silent > 0);
    losing.filter_map(|(key, _)| of_socket(graph, key)).collect()
}

fn of_socket(graph: &Graph<'_>, key: SocketKey) -> Option<Finding> {
    let socket = graph.socket(key)?;
    let now = graph.now(key.process);
    let latest = graph.endpoints_of(key).iter().filter(|endpoint| endpoint.lost_silent > 0);
    let latest = latest.map(|endpoint| endpoint.failed_at).max().unwrap_or(0);
    let seconds = now.saturating_sub(latest) / 1_000_000;
    if latest > 0 && seconds >= LATELY {
        return None;
    }
    let mut others: Vec<SocketKey> = graph.linked(key);
    for endpoint in graph.endpoints_of(key).iter().filter(|endpoint| !endpoint.bound) {
        others.extend(graph.same_port_or_path(endpoint).map(|place| place.key));
    }
    let running = others
        .iter()
        .find(|other| !matches!(graph.processes[other.process].state, ProcessState::Ended { .. }));
    let peer = match running {
        Some(other) => format!(" {}", graph.program(other.process)),
        None => " its peers".to_owned(),
    };
    let age = if latest == 0 { String::new() } else { format!(", the last time {seconds} s ago") };
    let level = if socket.lost_silent > 1 { Level::Warning } else { Level::Note };
    Some(Finding {
        what: format!(
            "{} loses its connection again and again, because{peer} answered no heartbeat for {} ms",
            socket.type_name, socket.heartbeat_timeout_ms
        ),
        evidence: format!("{}{age}", format_count(socket.lost_silent, "lost connection")),
        advice: format!(
            "Find out why the peer does not answer in time: it is stopped, its host or its network is overloaded. \
             Or raise ZMQ_HEARTBEAT_TIMEOUT above its longest pause; heartbeats are sent every {} ms.",
            socket.heartbeat_ms
        ),
        ..finding(key, level, "peers-silent", socket.lost_silent)
    })
}

/// Connections that the peer closed again and again, told at the socket that connects.
pub(super) fn lost_peers(graph: &Graph<'_>) -> Vec<Finding> {
    let losing = graph.connected().filter(|place| place.endpoint.lost_closed >= OFTEN);
    let found = losing.filter_map(|place| {
        let now = graph.now(place.key.process);
        let seconds = now.saturating_sub(place.endpoint.failed_at) / 1_000_000;
        if seconds >= LATELY {
            return None;
        }
        let there = graph.same_port_or_path(place.endpoint).next();
        let whose = there.map_or(String::new(), |there| format!(" of {}", graph.program(there.key.process)));
        Some(Finding {
            what: format!(
                "The peer at {}{whose} closes the connection of {} again and again",
                readable_name(place.endpoint),
                place.socket.type_name
            ),
            evidence: format!(
                "{}, the last time {seconds} s ago",
                format_count(place.endpoint.lost_closed, "lost connection")
            ),
            advice: "Find out whether the program at the other end crashes and starts again, or closes its socket."
                .to_owned(),
            ..finding(place.key, Level::Warning, "peers-lost", place.endpoint.lost_closed)
        })
    });
    found.collect()
}

/// Connections to a bound socket that end before they are of use.
pub(super) fn brief_peers(graph: &Graph<'_>) -> Vec<Finding> {
    let visited = graph.sockets().filter(|(key, socket)| {
        socket.brief >= OFTEN && graph.endpoints_of(*key).iter().any(|endpoint| endpoint.bound)
    });
    let found = visited.filter_map(|(key, socket)| {
        let before = graph.processes[key.process].before?.socket(key.socket)?;
        let more = socket.brief.saturating_sub(before.brief);
        (more > 0).then(|| Finding {
            what: format!("Peers of {} leave before or soon after their handshake", socket.type_name),
            evidence: format!("{} connections in total, {more} of them recently", socket.brief),
            advice: "Perhaps a client makes a connection for each message, a scanner tries the port, or a program \
                     crashes when it starts."
                .to_owned(),
            ..finding(key, Level::Note, "brief-peers", more)
        })
    });
    found.collect()
}

/// Connections whose bytes the other host does not acknowledge.
pub(super) fn unacknowledged(graph: &Graph<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (key, socket) in graph.sockets() {
        let stuck = &graph.processes[key.process].unacknowledged;
        for peer in graph.peers_of(key) {
            let Some(stuck) =
                stuck.iter().find(|stuck| stuck.local == peer.local && stuck.remote == peer.address)
            else {
                continue;
            };
            let to = match graph.others(key, peer).first() {
                Some(other) => graph.program(other.process),
                None => peer.address.clone(),
            };
            found.push(Finding {
                peer: Some(peer.id),
                what: format!(
                    "The network takes no bytes from {} to {to}: the other host acknowledges none",
                    socket.type_name
                ),
                evidence: format!(
                    "{} unacknowledged, sent again {} times",
                    format_bytes(stuck.bytes),
                    stuck.retransmits
                ),
                advice: "A firewall drops the packets, or the other host is gone. With ZMQ_HEARTBEAT_IVL, both ends notice \
                         it and connect again."
                    .to_owned(),
                next: "ss -tino".to_owned(),
                ..finding(key, Level::Trouble, "unacknowledged", stuck.bytes)
            });
        }
    }
    found
}
