//! Two sockets that claim the same thing: a routing ID, or a port.

use std::collections::BTreeMap;

use super::finding;
use crate::diagnosis::graph::{Address, Graph, SocketKey};
use crate::diagnosis::text::{format_count, id_name};
use crate::diagnosis::{Finding, Level};
use crate::{Endpoint, EndpointState, Event};

/// Event of a bind that failed (ZMQ_EVENT_BIND_FAILED).
const BIND_FAILED: u32 = 0x10;
/// Age from which a failed bind is no news, in microseconds.
const LATELY: u64 = 60_000_000;
/// Most processes that a finding names.
const NAMED: usize = 3;

/// Sockets with the same routing ID that connect to the same ROUTER.
pub(super) fn same_id(graph: &Graph<'_>) -> Vec<Finding> {
    let routers = graph.sockets().filter(|(_, socket)| socket.duplicates + socket.taken_over > 0);
    let found = routers.map(|(key, socket)| {
        let id = id_name(&socket.duplicate_id);
        let mut claims: BTreeMap<usize, u64> = BTreeMap::new();
        for endpoint in graph.endpoints_of(key).iter().filter(|endpoint| endpoint.bound) {
            for other in graph.connected_to(key, endpoint) {
                if graph.socket(other).is_some_and(|other| other.routing_id == socket.duplicate_id) {
                    *claims.entry(other.process).or_default() += 1;
                }
            }
        }
        let total: u64 = claims.values().sum();
        let mut names: Vec<String> = claims.keys().take(NAMED).map(|process| graph.program(*process)).collect();
        if claims.len() > NAMED {
            names.push(format!("{} others", claims.len() - NAMED));
        }
        let who = match total {
            0 | 1 => format!("Several peers of {} have", socket.type_name),
            more => format!("{more} peers of {} have", socket.type_name),
        };
        let whose = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        let (consequence, count) = match socket.taken_over {
            0 => ("the socket serves only the first of them", socket.duplicates),
            count => ("each new one takes over the messages of the one before (ZMQ_ROUTER_HANDOVER)", count),
        };
        let times = if socket.taken_over == 0 { "was refused" } else { "lost it" };
        Finding {
            what: format!("{who} the same routing id {id}{whose}"),
            evidence: format!("a peer with this id {times} {}; {consequence}", times_of(count)),
            advice: "Give each socket its own ZMQ_ROUTING_ID, or none. After a reconnect, one peer may meet its own \
                     old connection: then set ZMQ_ROUTER_HANDOVER."
                .to_owned(),
            ..finding(key, if total > 1 { Level::Trouble } else { Level::Warning }, "same-id", count)
        }
    });
    found.collect()
}

fn times_of(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format_count(count, "time"),
    }
}

/// A port or path that could not be bound, because another process has it.
pub(super) fn not_bound(graph: &Graph<'_>) -> Vec<Finding> {
    let mut failed: BTreeMap<(usize, &str), (u64, &Event)> = BTreeMap::new();
    for (process, observed) in
        graph.processes.iter().enumerate().filter(|(process, _)| graph.is_running(*process))
    {
        let now = observed.reading.process.written;
        for event in &observed.reading.events {
            if event.code == BIND_FAILED && now.saturating_sub(event.at) < LATELY {
                let (count, last) = failed.entry((process, &event.local)).or_insert((0, event));
                (*count, *last) = (*count + 1, event);
            }
        }
    }
    let found = failed.into_iter().filter_map(|((process, address), (count, event))| {
        // The event of a tcp endpoint has no transport.
        let address = if address.contains("://") { address.to_owned() } else { format!("tcp://{address}") };
        let holder = graph.bound_at(&address).into_iter().find(|other| {
            let is_up = |endpoint: &&Endpoint| endpoint.bound && endpoint.state == EndpointState::Listening;
            graph.is_running(other.process)
                && Address::of(&address).path.len() > 1
                && graph.endpoints_of(*other).iter().copied().any(|endpoint| is_up(&endpoint))
        });
        let reading = graph.processes[process].reading;
        // A program may try several ports until one is free.
        let has_another = reading.endpoints_of(event.socket).any(|endpoint| endpoint.bound);
        if has_another {
            return None;
        }
        let type_name = reading.socket(event.socket).map_or("A closed socket", |socket| &socket.type_name);
        let (who, next) = match holder {
            Some(other) => (
                format!(": {} of {} has it", graph.socket(other)?.type_name, graph.program(other.process)),
                show(graph, other),
            ),
            None => (String::new(), "ss -ltnp".to_owned()),
        };
        let seconds = reading.process.written.saturating_sub(event.at) / 1_000_000;
        Some(Finding {
            what: format!("{type_name} cannot bind {address}{who}"),
            evidence: format!(
                "{}, {}, the latest {seconds} s ago",
                event.reason,
                format_count(count, "failed attempt")
            ),
            advice:
                "Bind another endpoint, or end the other program. Perhaps the same program was started twice."
                    .to_owned(),
            next,
            ..finding(SocketKey { process, socket: 0 }, Level::Trouble, "not-bound", count)
        })
    });
    found.collect()
}

fn show(graph: &Graph<'_>, key: SocketKey) -> String {
    format!("taut show {}/{}", graph.processes[key.process].reading.name(), key.socket)
}
