//! Rules about peers that are unreachable or refused.

use super::{LATELY, PATIENCE, hint};
use crate::event_text::{self, errno};
use crate::hints::{Hint, Level, RuleInput, format_count, readable_name};
use crate::{Endpoint, EndpointState, Socket};

pub(super) fn cannot_connect(scene: &RuleInput<'_>, socket: &Socket, endpoint: &Endpoint) -> Option<Hint> {
    let seconds = scene.seconds(endpoint.failing_since);
    let is_up = matches!(endpoint.state, EndpointState::Connected | EndpointState::Listening);
    if endpoint.failures == 0
        || is_up
        || endpoint.failed_by != event_text::CONNECT_FAILED
        || seconds < PATIENCE
    {
        return None;
    }
    let advice = match endpoint.error {
        errno::REFUSED => "Nothing listens there: start the other program, or correct host and port.",
        errno::NO_ENTRY => "No socket is bound to that path: start the other program, or correct it.",
        errno::NO_ACCESS => "The path belongs to another user, or the system forbids it.",
        error if errno::TOO_MANY_FILES.contains(&error) => {
            "Raise the limit of open files (ulimit -n), or close sockets."
        }
        _ => "Look at the name, the route and the firewall between the two hosts.",
    };
    let given_up = if endpoint.state == EndpointState::Stopped { "; it is not tried again" } else { "" };
    hint(socket, Level::Trouble, "connect-failed", seconds).with_text(
        format!("{} cannot connect to {}: {}", socket.type_name, readable_name(endpoint), endpoint.reason),
        format!("{} in {seconds} s{given_up}", format_count(endpoint.failures, "attempt")),
        advice,
    )
}

pub(super) fn handshake_fails(scene: &RuleInput<'_>, socket: &Socket, endpoint: &Endpoint) -> Option<Hint> {
    if endpoint.failures == 0 || !matches!(endpoint.failed_by, 0x800 | 0x2000 | 0x4000) {
        return None;
    }
    let seconds = scene.seconds(endpoint.failing_since);
    // A peer may never reconnect after a failed handshake at a listener.
    let is_over = |before: &Endpoint| before.failures == endpoint.failures;
    if endpoint.bound && seconds >= LATELY && scene.endpoint_before(endpoint).is_some_and(is_over) {
        return None;
    }
    let advice = match (endpoint.failed_by, endpoint.error) {
        (0x2000, 0x1100_0002) => format!(
            "Both ends need the same mechanism: this one has {}. One end has keys or a password set, and the other has not.",
            socket.mechanism
        ),
        (0x2000, 0x1100_0001 | 0x1000_0003) => {
            "Compare the keys: ZMQ_CURVE_SERVERKEY of the client is the public key of the server.".to_owned()
        }
        (0x2000, 0x5441_3001 | 0x5441_3008) => {
            "One end speaks TLS and the other does not: compare the transports, and what the policies of both hosts wrap.".to_owned()
        }
        (0x2000, 0x5441_3000..=0x5441_31FF) => {
            "Compare the certificates of both ends with what each of them trusts: `openssl x509 -text` shows dates, names and issuer.".to_owned()
        }
        (0x4000, 300) => "The authentication handler says: not now.".to_owned(),
        (0x4000, 400) => "The authentication handler does not know this key, user or address.".to_owned(),
        (0x4000, _) => "The authentication handler has failed: see its log.".to_owned(),
        (0x800, _) if socket.mechanism == "CURVE" => {
            "The peer has broken off, as a server does to a client that has not its key: compare ZMQ_CURVE_SERVERKEY with its public key, \
             and see which keys its authentication handler lets in. A server without CURVE does so too."
                .to_owned()
        }
        (0x800, _) => format!(
            "The peer broke off or said nothing. A server with CURVE does so to a client without, or something else than ZeroMQ is at that address. This end has {}.",
            socket.mechanism
        ),
        _ => "Something else than ZeroMQ is at the other end, or a port is mixed up.".to_owned(),
    };
    let whom = if endpoint.bound { "peers that come to" } else { "the peer at" };
    hint(socket, Level::Trouble, "handshake-failed", endpoint.failures).with_text(
        format!(
            "{} and {whom} {} do not get on: {}",
            socket.type_name,
            readable_name(endpoint),
            endpoint.reason
        ),
        format!("{} failed, the first one {seconds} s ago", format_count(endpoint.failures, "handshake")),
        advice,
    )
}
