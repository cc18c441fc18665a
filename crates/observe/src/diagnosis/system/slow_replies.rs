//! Replies that come later than their clients wait.

use std::collections::BTreeMap;

use super::finding;
use crate::DiscardReason;
use crate::diagnosis::graph::{Graph, SocketKey};
use crate::diagnosis::text::format_count;
use crate::diagnosis::{Finding, Level};

/// Sockets whose clients discard replies, because they have given up before.
pub(super) fn slow_replies(graph: &Graph<'_>) -> Vec<Finding> {
    let mut clients: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for (key, socket) in graph.sockets() {
        let before = graph.processes[key.process].before.and_then(|before| before.socket(key.socket));
        let more = socket.discarded.saturating_sub(before.map_or(0, |before| before.discarded));
        if socket.discarded_by == DiscardReason::StaleReply && more > 0 {
            for server in graph.linked(key) {
                *clients.entry((server.process, server.socket)).or_default() += 1;
            }
        }
    }
    let found = clients.into_iter().filter_map(|((process, id), clients)| {
        let key = SocketKey { process, socket: id };
        let socket = graph.socket(key)?;
        Some(Finding {
            what: format!(
                "{} replies later than its clients wait: {} the replies",
                socket.type_name,
                match clients {
                    1 => "1 client discards".to_owned(),
                    more => format!("{more} clients discard"),
                }
            ),
            evidence: format!("{} here", format_count(socket.queued_in, "waiting message")),
            advice: "Make the program faster or start more of them, or let the clients wait longer before they ask \
                     again: each repeated request adds to the queue."
                .to_owned(),
            ..finding(key, Level::Trouble, "slow-replies", clients)
        })
    });
    found.collect()
}
