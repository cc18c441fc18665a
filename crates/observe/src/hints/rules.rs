//! The rules. Each rule checks one condition and gives at most one hint about it.

mod connecting;
mod peer;
mod process;
mod socket;
mod turns;

use super::{Hint, Level, RuleInput};
use crate::{Endpoint, Peer, Socket};
pub use process::{ended_process, stalled_process};

/// Delays shorter than this are normal, in seconds.
const PATIENCE: u64 = 2;
/// Time that a program may spend on other work, in seconds.
const BUSY: u64 = 5;
/// Age from which an observation counts as over, in seconds.
const LATELY: u64 = 60;

/// Returns the hints about a socket.
pub(super) fn of_socket(scene: &RuleInput<'_>, socket: &Socket) -> impl Iterator<Item = Hint> {
    let rules = [
        socket::no_subscription,
        socket::unroutable,
        socket::lost,
        socket::lingers,
        socket::has_no_peers,
        turns::out_of_step,
        turns::waits_for_reply,
        turns::owes_a_reply,
    ];
    rules.map(|rule| rule(scene, socket)).into_iter().flatten()
}

/// Returns the hints about an endpoint.
pub(super) fn of_endpoint(
    scene: &RuleInput<'_>,
    socket: &Socket,
    endpoint: &Endpoint,
) -> impl Iterator<Item = Hint> {
    let rules = [connecting::cannot_connect, connecting::handshake_fails];
    rules.map(|rule| rule(scene, socket, endpoint)).into_iter().flatten()
}

/// Returns the hints about a peer.
pub(super) fn of_peer(scene: &RuleInput<'_>, socket: &Socket, peer: &Peer) -> impl Iterator<Item = Hint> {
    [peer::drops, peer::full, peer::unread].map(|rule| rule(scene, socket, peer)).into_iter().flatten()
}

/// Returns the hints about the process.
pub(super) fn of_process(scene: &RuleInput<'_>) -> impl Iterator<Item = Hint> {
    [process::too_many_files, process::ends_with_open, process::left_out]
        .map(|rule| rule(scene))
        .into_iter()
        .flatten()
}

fn hint(socket: &Socket, level: Level, rule: &'static str, weight: u64) -> Hint {
    Hint {
        level,
        rule,
        socket: socket.id,
        peer: None,
        what: String::new(),
        evidence: String::new(),
        advice: String::new(),
        weight,
    }
}

impl Hint {
    fn with_text(self, what: String, evidence: String, advice: impl Into<String>) -> Option<Hint> {
        Some(Hint { what, evidence, advice: advice.into(), ..self })
    }

    fn about(self, peer: &Peer) -> Hint {
        Hint { peer: Some(peer.id), ..self }
    }
}
