//! The rules. Each rule checks one condition and gives at most one finding about it.

mod connecting;
mod peer;
mod process;
mod socket;
mod turns;

use super::{Finding, Level, RuleInput};
use crate::{Endpoint, Peer, Socket};
pub(super) use process::stalled_process;

/// Delays shorter than this are normal, in seconds.
const PATIENCE: u64 = 2;
/// Time that a program may spend on other work, in seconds.
const BUSY: u64 = 5;
/// Time that a reply or a batch may take before it is worth a warning, in seconds. A program that
/// has needed longer before may take three times that.
const SLOW: u64 = 30;
/// Time for which a program may leave its messages before the first one, in seconds.
const UNREAD: u64 = 10;
/// Age from which an observation counts as over, in seconds.
const LATELY: u64 = 60;

/// Returns the findings about a socket.
pub(super) fn of_socket(scene: &RuleInput<'_>, socket: &Socket) -> impl Iterator<Item = Finding> {
    let rules = [
        socket::no_subscription,
        socket::unroutable,
        socket::lost,
        socket::lingers,
        socket::has_no_peers,
        socket::discards,
        socket::key_pair,
        socket::breaks_off,
        turns::out_of_step,
        turns::waits_for_reply,
        turns::owes_a_reply,
    ];
    rules.map(|rule| rule(scene, socket)).into_iter().flatten()
}

/// Returns the findings about an endpoint.
pub(super) fn of_endpoint(
    scene: &RuleInput<'_>,
    socket: &Socket,
    endpoint: &Endpoint,
) -> impl Iterator<Item = Finding> {
    let rules = [connecting::cannot_connect, connecting::handshake_fails, connecting::given_up];
    rules.map(|rule| rule(scene, socket, endpoint)).into_iter().flatten()
}

/// Returns the findings about a peer.
pub(super) fn of_peer(scene: &RuleInput<'_>, socket: &Socket, peer: &Peer) -> impl Iterator<Item = Finding> {
    [peer::drops, peer::full, peer::unread, peer::grows]
        .map(|rule| rule(scene, socket, peer))
        .into_iter()
        .flatten()
}

/// Returns the findings about the process.
pub(super) fn of_process(scene: &RuleInput<'_>) -> impl Iterator<Item = Finding> {
    [
        process::too_many_files,
        process::ends_with_open,
        process::left_out,
        process::closes_too_early,
        process::forked,
    ]
    .map(|rule| rule(scene))
    .into_iter()
    .flatten()
}

fn finding(socket: &Socket, level: Level, rule: &'static str, weight: u64) -> Finding {
    Finding {
        level,
        rule,
        socket: socket.id,
        peer: None,
        what: String::new(),
        evidence: String::new(),
        advice: String::new(),
        next: String::new(),
        weight,
        process: 0,
        effects: Vec::new(),
    }
}

impl Finding {
    fn with_text(self, what: String, evidence: String, advice: impl Into<String>) -> Option<Finding> {
        Some(Finding { what, evidence, advice: advice.into(), ..self })
    }

    fn about(self, peer: &Peer) -> Finding {
        Finding { peer: Some(peer.id), ..self }
    }
}
