//! Which findings follow from which: the cause is told first, and its effects below it.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::Finding;
use super::graph::{Graph, SocketKey};

/// Rules about an end that waits for another one, or loses messages because the other one does not
/// take them.
const WAITING: &[&str] = &["no-reply", "queue-full", "drops", "queue-grows", "hwm-too-small", "linger"];
/// Rules about an end that does not take what has come.
const IDLE: &[&str] = &["not-received", "not-replied"];
/// Rules about a connection that does not come about.
const UNREACHED: &[&str] = &["connect-failed", "handshake-failed", "no-peers"];
/// Rules about a connection that ended.
const GONE: &[&str] = &["lost", "unroutable", "no-peers", "peers-lost", "brief-peers"];

/// Returns the place of a rule in a list of causes of the same level: the higher, the earlier.
pub(super) fn precedence(rule: &str) -> u8 {
    match rule {
        "stands-still" | "ended" | "crashes" => 3,
        rule if WAITING.contains(&rule) => 0,
        rule if UNREACHED.contains(&rule) || GONE.contains(&rule) => 1,
        _ => 2,
    }
}

/// Findings that follow from a cause: at a socket, with one of these rules.
struct Effect {
    at: SocketKey,
    rules: &'static [&'static str],
}

/// Puts the findings that follow from others among the effects of those.
pub(super) fn group(graph: &Graph<'_>, all: Vec<Finding>) -> Vec<Finding> {
    let mut at: HashMap<SocketKey, Vec<usize>> = HashMap::new();
    for (place, finding) in all.iter().enumerate() {
        let key = SocketKey { process: finding.process, socket: finding.socket };
        at.entry(key).or_default().push(place);
    }
    let follows: Vec<Vec<usize>> = (0..all.len()).map(|cause| followers(graph, &all, &at, cause)).collect();
    let mut has_cause = vec![false; all.len()];
    for place in follows.iter().flatten() {
        has_cause[*place] = true;
    }
    // First the findings without a cause, then those that follow from each other.
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|place| (has_cause[*place], Reverse(all[*place].rank())));
    let mut owner: Vec<Option<usize>> = vec![None; all.len()];
    for root in order {
        if owner[root].is_some() {
            continue;
        }
        owner[root] = Some(root);
        let mut next = follows[root].clone();
        while let Some(place) = next.pop() {
            if owner[place].is_none() {
                owner[place] = Some(root);
                next.extend(&follows[place]);
            }
        }
    }
    let mut all: Vec<Option<Finding>> = all.into_iter().map(Some).collect();
    let roots: Vec<usize> = (0..all.len()).filter(|place| owner[*place] == Some(*place)).collect();
    let causes = roots.into_iter().filter_map(|root| {
        let mut cause = all[root].take()?;
        let of_root = (0..owner.len()).filter(|place| owner[*place] == Some(root));
        cause.effects = of_root.filter_map(|place| all[place].take()).collect();
        cause.effects.sort_by_key(|effect| Reverse(effect.rank()));
        // An effect that stops a program makes its cause at least as serious.
        cause.level = cause.effects.iter().map(|effect| effect.level).fold(cause.level, Ord::max);
        Some(cause)
    });
    causes.collect()
}

/// Returns the places of the findings that follow from one of them. `at` has the places of the
/// findings of each socket.
fn followers(
    graph: &Graph<'_>,
    all: &[Finding],
    at: &HashMap<SocketKey, Vec<usize>>,
    cause: usize,
) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    for effect in effects_of(graph, &all[cause]) {
        let there = at.get(&effect.at).into_iter().flatten().copied();
        places.extend(there.filter(|place| *place != cause && effect.rules.contains(&all[*place].rule)));
    }
    places.sort_unstable();
    places.dedup();
    places
}

/// Returns what follows from a finding.
fn effects_of(graph: &Graph<'_>, cause: &Finding) -> Vec<Effect> {
    let own = SocketKey { process: cause.process, socket: cause.socket };
    let mut effects = Vec::new();
    let mut add = |at: SocketKey, rules: &[&'static [&'static str]]| {
        effects.extend(rules.iter().map(|rules| Effect { at, rules }));
    };
    match cause.rule {
        // All that waits for the process waits for this reason.
        "stands-still" | "ended" | "crashes" => {
            if cause.rule == "crashes" {
                for process in graph.same_program(cause.process) {
                    add(SocketKey { process, socket: 0 }, &[&["ended"]]);
                }
            }
            for socket in &graph.processes[cause.process].reading.sockets {
                let key = SocketKey { process: cause.process, socket: socket.id };
                for other in graph.linked(key) {
                    add(other, &[WAITING, GONE, UNREACHED]);
                }
                let bound = graph.endpoints_of(key).iter().filter(|endpoint| endpoint.bound);
                for endpoint in bound {
                    for other in graph.connected_to(key, endpoint) {
                        add(other, &[UNREACHED, WAITING, GONE]);
                    }
                }
                // Its former connections are gone, but its endpoints tell who waits for it.
                let connected = graph.endpoints_of(key).iter().filter(|endpoint| !endpoint.bound);
                for endpoint in connected {
                    for other in graph.same_port_or_path(endpoint) {
                        add(other.key, &[GONE, WAITING]);
                    }
                }
            }
        }
        "not-received" | "not-replied" | "out-of-step" => {
            add(own, &[IDLE]);
            for other in graph.linked(own) {
                add(other, &[WAITING, &["out-of-step"]]);
            }
        }
        // Meanwhile, a program that waits until it can send receives no messages.
        "queue-full" | "no-reply" => {
            let idle: &[&str] = if cause.rule == "no-reply" { &["not-replied"] } else { IDLE };
            for socket in &graph.processes[cause.process].reading.sockets {
                add(SocketKey { process: cause.process, socket: socket.id }, &[idle]);
            }
        }
        "swapped" => {
            for socket in &graph.processes[cause.process].reading.sockets {
                let key = SocketKey { process: cause.process, socket: socket.id };
                add(key, &[UNREACHED]);
                for endpoint in graph.endpoints_of(key).iter().filter(|endpoint| endpoint.bound) {
                    for other in graph.connected_to(key, endpoint) {
                        add(other, &[UNREACHED, WAITING, &["wrong-type"]]);
                    }
                }
            }
        }
        "wrong-type" | "wrong-endpoint" | "key-pair" | "other-namespace" | "taken-path" | "wrong-address" => {
            add(own, &[UNREACHED, WAITING]);
            for endpoint in graph.endpoints_of(own) {
                for other in graph.same_port_or_path(endpoint) {
                    add(other.key, &[UNREACHED]);
                }
            }
            if let Some(meant) = graph.meant_place(own) {
                add(meant.key, &[UNREACHED]);
            }
        }
        "deadlock" => {
            for process in 0..graph.processes.len() {
                for socket in &graph.processes[process].reading.sockets {
                    let key = SocketKey { process, socket: socket.id };
                    let is_own = process == cause.process;
                    let is_linked = || graph.linked(key).iter().any(|other| other.process == cause.process);
                    if is_own || is_linked() {
                        add(key, &[IDLE, &["no-reply", "out-of-step"]]);
                    }
                }
            }
        }
        "other-context" | "idle-side" => {
            add(own, &[UNREACHED]);
            for socket in &graph.processes[cause.process].reading.sockets {
                let key = SocketKey { process: cause.process, socket: socket.id };
                add(key, &[IDLE, WAITING, &["no-peers"]]);
                if cause.rule == "other-context" {
                    add(key, &[&["idle-side"]]);
                }
            }
        }
        "slow-replies" => {
            add(own, &[IDLE]);
            for other in graph.linked(own) {
                add(other, &[WAITING, &["discards"]]);
            }
        }
        "unacknowledged" => add(own, &[WAITING]),
        "breaks-off" | "file-gone" | "only-local" => {
            for endpoint in graph.endpoints_of(own) {
                for other in graph.same_port(endpoint) {
                    add(other, &[GONE, WAITING, UNREACHED]);
                }
            }
            add(own, &[GONE, UNREACHED]);
        }
        "same-id" => {
            for other in graph.linked(own) {
                add(other, &[UNREACHED, GONE, WAITING]);
            }
            add(own, &[GONE, UNREACHED, &["discards"]]);
        }
        "closed-too-early" => {
            for context in &graph.processes[cause.process].reading.contexts {
                for other in graph.bound_at(&context.closed_endpoint) {
                    add(other, &[UNREACHED, GONE]);
                }
            }
        }
        "peers-silent" => {
            add(own, &[GONE]);
            for other in graph.linked(own) {
                add(other, &[GONE, &["peers-silent"]]);
            }
        }
        "discards" => {
            add(own, &[IDLE]);
            for other in graph.linked(own) {
                add(other, &[WAITING]);
            }
        }
        _ => {}
    }
    effects
}
