//! Two sockets that claim the same thing: a routing ID, or a port.

use std::collections::BTreeMap;

use super::finding;
use crate::EndpointState;
use crate::diagnosis::graph::{Graph, SocketKey};
use crate::diagnosis::text::{format_count, id_name, readable_name};
use crate::diagnosis::{Finding, Level};

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
    let failed = graph
        .all_bound()
        .filter(|place| place.endpoint.state == EndpointState::Failed && graph.is_running(place.key.process));
    let found = failed.map(|place| {
        let holder = graph.same_port_or_path(place.endpoint).find(|other| {
            other.key != place.key
                && other.endpoint.state == EndpointState::Listening
                && graph.is_running(other.key.process)
        });
        let address = readable_name(place.endpoint);
        let (who, next) = match holder {
            Some(other) => (
                format!(": {} of {} has it", other.socket.type_name, graph.program(other.key.process)),
                show(graph, other.key),
            ),
            None => (String::new(), "ss -ltnp".to_owned()),
        };
        Finding {
            what: format!("{} could not bind {address}{who}", place.socket.type_name),
            evidence: place.endpoint.reason.clone(),
            advice:
                "Bind another endpoint, or end the other program. Perhaps the same program was started twice."
                    .to_owned(),
            next,
            ..finding(place.key, Level::Trouble, "not-bound", 1)
        }
    });
    found.collect()
}

fn show(graph: &Graph<'_>, key: SocketKey) -> String {
    format!("taut show {}/{}", graph.processes[key.process].reading.name(), key.socket)
}
