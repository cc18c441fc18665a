//! Programs that open sockets and do not close them.

use std::collections::BTreeMap;

use super::finding;
use crate::diagnosis::graph::{Graph, SocketKey};
use crate::diagnosis::text::readable_name;
use crate::diagnosis::{Finding, Level};
use crate::{Reading, SocketState};

/// Number of equal sockets from which on their growth is worth a finding.
const MANY: usize = 50;
/// Growth between two readings that is worth a finding.
const GROWTH: usize = 3;

/// Processes whose number of equal sockets grows and grows.
pub(super) fn sockets_grow(graph: &Graph<'_>) -> Vec<Finding> {
    let found = graph.processes.iter().enumerate().filter_map(|(place, observed)| {
        let before = observed.before.filter(|_| graph.is_running(place))?;
        let (now, then) = (count_equal(observed.reading), count_equal(before));
        let grown = now.into_iter().filter_map(|(kind, sockets)| {
            let before = then.get(&kind).copied().unwrap_or(0);
            (sockets >= MANY && sockets >= before + GROWTH).then_some((kind, sockets, sockets - before))
        });
        let ((type_name, endpoint), sockets, more) = grown.max_by_key(|(_, sockets, _)| *sockets)?;
        let time = observed.reading.process.written.saturating_sub(before.process.written);
        let limit = observed.reading.contexts.iter().map(|context| context.max_sockets).max().unwrap_or(0);
        Some(Finding {
            what: format!(
                "The program opens {type_name} sockets to {endpoint} and does not close them: it has {sockets}"
            ),
            evidence: format!(
                "{more} more in {} s; a context takes {limit} sockets (ZMQ_MAX_SOCKETS)",
                (time / 1_000_000).max(1)
            ),
            advice: "Keep one socket for all messages, or close each socket after use, also when an error occurs."
                .to_owned(),
            ..finding(SocketKey { process: place, socket: 0 }, Level::Warning, "sockets-grow", sockets as u64)
        })
    });
    found.collect()
}

/// Returns the number of open sockets of each type and first endpoint.
fn count_equal(reading: &Reading) -> BTreeMap<(&str, &str), usize> {
    let mut first: BTreeMap<u64, &str> = BTreeMap::new();
    for endpoint in &reading.endpoints {
        first.entry(endpoint.socket).or_insert_with(|| readable_name(endpoint));
    }
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let open = |socket: &&crate::Socket| socket.state == SocketState::Open && !socket.monitor;
    for socket in reading.sockets.iter().filter(open) {
        if let Some(endpoint) = first.get(&socket.id) {
            *counts.entry((&socket.type_name, endpoint)).or_default() += 1;
        }
    }
    counts
}
