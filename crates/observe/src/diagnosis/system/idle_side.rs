//! Programs that pass messages on, but have lost the way out.

use super::finding;
use crate::diagnosis::graph::{Graph, SocketKey};
use crate::diagnosis::text::{format_count, readable_name};
use crate::diagnosis::{Finding, Level};
use crate::{PeerState, SocketState};

/// Time for which messages must have waited, in microseconds.
const PATIENCE: u64 = 10_000_000;

/// Sockets that connect to an inproc endpoint of another context.
pub(super) fn other_context(graph: &Graph<'_>) -> Vec<Finding> {
    let connected = graph.connected().filter(|place| readable_name(place.endpoint).starts_with("inproc://"));
    let found = connected.filter_map(|from| {
        let same: Vec<_> = graph
            .same_port_or_path(from.endpoint)
            .filter(|to| to.key.process == from.key.process)
            .collect();
        let has_own = same.iter().any(|to| to.socket.context == from.socket.context);
        let there = same.first().filter(|_| !has_own)?;
        let name = readable_name(from.endpoint);
        Some(Finding {
            what: format!(
                "{} connects to {name}, which {} has bound in another context of the same program",
                from.socket.type_name, there.socket.type_name
            ),
            evidence: format!(
                "socket {} is in context {}, socket {} in context {}",
                from.socket.id, from.socket.context, there.socket.id, there.socket.context
            ),
            advice: "An inproc endpoint belongs to its context: create one context, and share it between the threads."
                .to_owned(),
            ..finding(from.key, Level::Trouble, "other-context", 1)
        })
    });
    found.collect()
}

/// Sockets without a peer, while messages wait at another socket of the same program: it probably
/// passes them on.
pub(super) fn idle_side(graph: &Graph<'_>) -> Vec<Finding> {
    let idle = graph.sockets().filter(|(key, socket)| {
        matches!(&*socket.type_name, "DEALER" | "PUSH")
            && socket.state == SocketState::Open
            && !graph.endpoints_of(*key).is_empty()
            && !graph.peers_of(*key).iter().any(|peer| peer.state == PeerState::Connected)
    });
    let found = idle.filter_map(|(key, socket)| {
        let (waiting, messages, seconds) = waiting_in(graph, key)?;
        let name = graph.endpoints_of(key).first().map_or("no endpoint", |endpoint| readable_name(endpoint));
        let elsewhere = graph.sockets().find(|(other, there)| {
            other.process != key.process
                && there.type_name == socket.type_name
                && graph.endpoints_of(*other).iter().any(|endpoint| endpoint.bound)
                && graph.peers_of(*other).iter().any(|peer| peer.state == PeerState::Connected)
        });
        let hint = match elsewhere {
            Some((other, there)) => format!(
                " {} of {} has {}: perhaps they belong here.",
                there.type_name,
                graph.program(other.process),
                format_count(there.peers, "peer")
            ),
            None => String::new(),
        };
        Some(Finding {
            what: format!(
                "{} at {name} has no peer, while messages wait at {waiting} of the same program",
                socket.type_name
            ),
            evidence: format!("{} for {seconds} s", format_count(messages, "message")),
            advice: format!("Start the programs that take the messages, or correct their endpoints.{hint}"),
            ..finding(key, Level::Trouble, "idle-side", messages)
        })
    });
    found.collect()
}

/// Returns a socket of the same process where messages wait: its type, their number, and the time.
fn waiting_in(graph: &Graph<'_>, key: SocketKey) -> Option<(String, u64, u64)> {
    let now = graph.now(key.process);
    let others = graph.sockets().filter(|(other, socket)| {
        other.process == key.process
            && *other != key
            && matches!(&*socket.type_name, "ROUTER" | "PULL" | "DEALER" | "REP")
    });
    others
        .filter_map(|(other, socket)| {
            let waiting = graph.peers_of(other).iter().filter(|peer| {
                let since = if peer.idle_since > 0 { peer.idle_since } else { peer.last_in };
                peer.queued_in > 0 && since > 0 && now.saturating_sub(since) >= PATIENCE
            });
            let since = waiting.clone().map(|peer| peer.last_in.max(peer.idle_since)).max()?;
            let messages = waiting.map(|peer| peer.queued_in).sum();
            Some((socket.type_name.clone(), messages, now.saturating_sub(since) / 1_000_000))
        })
        .max_by_key(|(_, messages, _)| *messages)
}
