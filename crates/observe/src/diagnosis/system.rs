//! Rules about several processes together.

mod crashes;
mod deadlock;
mod identity;
mod idle_side;
mod leaks;
mod silence;
mod slow_replies;
mod topics;
mod wiring;

use super::Finding;
use super::Level;
use super::graph::{Graph, SocketKey};

/// Returns the faults that only the counters of several processes show.
pub(super) fn findings(graph: &Graph<'_>) -> Vec<Finding> {
    let rules = [
        crashes::crashes,
        crashes::ended,
        wiring::swapped_proxy,
        wiring::wrong_type,
        wiring::other_namespace,
        wiring::taken_path,
        wiring::file_gone,
        wiring::only_local,
        wiring::wrong_endpoint,
        deadlock::deadlock,
        idle_side::other_context,
        idle_side::idle_side,
        identity::same_id,
        identity::not_bound,
        leaks::sockets_grow,
        slow_replies::slow_replies,
        topics::unmatched,
        topics::not_forwarded,
        topics::joined_late,
        silence::unacknowledged,
        silence::silent_peers,
        silence::lost_peers,
        silence::brief_peers,
    ];
    rules.iter().flat_map(|rule| rule(graph)).collect()
}

fn finding(at: SocketKey, level: Level, rule: &'static str, weight: u64) -> Finding {
    Finding {
        level,
        rule,
        process: at.process,
        socket: at.socket,
        peer: None,
        what: String::new(),
        evidence: String::new(),
        advice: String::new(),
        next: String::new(),
        weight,
        effects: Vec::new(),
    }
}
