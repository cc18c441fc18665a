//! Programs that wait for each other.

use std::collections::BTreeMap;

use super::finding;
use crate::diagnosis::graph::{Graph, SocketKey};
use crate::diagnosis::{Finding, Level};

/// Time for which each of them must have waited, in microseconds.
const PATIENCE: u64 = 5_000_000;

/// A request without a reply: the REQ, and the socket that has the request.
struct Request {
    from: SocketKey,
    to: SocketKey,
}

/// Requests in a circle: each program waits for the next one, and serves no other meanwhile.
pub(super) fn deadlock(graph: &Graph<'_>) -> Vec<Finding> {
    let mut requests: BTreeMap<usize, Vec<Request>> = BTreeMap::new();
    for (key, socket) in graph.sockets() {
        if socket.type_name != "REQ" || socket.messages_out <= socket.messages_in || socket.queued_out > 0 {
            continue;
        }
        let Some(peer) = graph.peers_of(key).iter().max_by_key(|peer| peer.last_out) else { continue };
        if graph.now(key.process).saturating_sub(peer.last_out) < PATIENCE {
            continue;
        }
        let others = graph.others(key, peer).into_iter().filter(|to| to.process != key.process);
        let from_here = requests.entry(key.process).or_default();
        from_here.extend(others.map(|to| Request { from: key, to }));
    }
    let circle = requests.keys().find_map(|start| circle_from(&requests, *start));
    let Some(circle) = circle else { return Vec::new() };
    let names: Vec<String> = circle.iter().map(|request| graph.program(request.from.process)).collect();
    let waits = circle.iter().filter_map(|request| {
        let peer = graph.peers_of(request.from).iter().max_by_key(|peer| peer.last_out)?;
        Some(graph.now(request.from.process).saturating_sub(peer.last_out) / 1_000_000)
    });
    let seconds = waits.min().unwrap_or(0);
    vec![Finding {
        what: format!("{} wait for each other: each has sent a request, and waits for the reply", names.join(" and ")),
        evidence: format!("for {seconds} s, none of these programs has replied to the other"),
        advice: "A program that waits for a reply must not be the one that has to give it: ask with a DEALER and go on \
                 serving, limit the wait with ZMQ_RCVTIMEO, or let another thread serve."
            .to_owned(),
        ..finding(circle[0].from, Level::Trouble, "deadlock", seconds)
    }]
}

/// Returns the requests of a circle that begins and ends at this process.
fn circle_from(requests: &BTreeMap<usize, Vec<Request>>, start: usize) -> Option<Vec<&Request>> {
    let mut way: Vec<&Request> = Vec::new();
    let mut at = start;
    // Each step leaves another process, so a longer way has no circle through the start.
    for _ in 0..requests.len() {
        let next = requests.get(&at)?.iter().find(|request| request.to.process == start);
        let next = next.or_else(|| requests.get(&at)?.first())?;
        way.push(next);
        at = next.to.process;
        if at == start {
            return Some(way);
        }
    }
    None
}
