//! Rules about peers that are unreachable or refused.

use super::{LATELY, PATIENCE, finding};
use crate::diagnosis::text::{format_count, readable_name};
use crate::diagnosis::{Finding, Level, RuleInput};
use crate::event_text::{self, errno};
use crate::{Endpoint, EndpointState, Socket};

pub(super) fn cannot_connect(scene: &RuleInput<'_>, socket: &Socket, endpoint: &Endpoint) -> Option<Finding> {
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
        errno::REFUSED => {
            "No program listens there: start the other program, or correct host and port. On that host, \
             `ss -ltnp` lists the ports in use."
        }
        errno::NO_ENTRY => "No socket is bound to that path: start the other program, or correct the path.",
        errno::NO_ACCESS => {
            "The path belongs to another user, or the system forbids the access: `ls -l` shows its owner and mode."
        }
        error if errno::TOO_MANY_FILES.contains(&error) => {
            "Raise the limit of open files (ulimit -n, LimitNOFILE= of the service), or close unused sockets."
        }
        _ => "Check the host name, the route and the firewall between the two hosts.",
    };
    let given_up =
        if endpoint.state == EndpointState::Stopped { "; the socket has stopped retrying" } else { "" };
    finding(socket, Level::Trouble, "connect-failed", seconds).with_text(
        format!("{} cannot connect to {}: {}", socket.type_name, readable_name(endpoint), endpoint.reason),
        format!("{} in {seconds} s{given_up}", format_count(endpoint.failures, "attempt")),
        advice,
    )
}

pub(super) fn handshake_fails(
    scene: &RuleInput<'_>,
    socket: &Socket,
    endpoint: &Endpoint,
) -> Option<Finding> {
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
            "Both ends need the same mechanism, and this end uses {}. Probably only one end has keys or a password: \
             compare the settings of both programs.",
            socket.mechanism
        ),
        (0x2000, 0x1100_0001 | 0x1000_0003) => {
            "Compare the keys: ZMQ_CURVE_SERVERKEY of the client must be the public key of the server.".to_owned()
        }
        (0x2000, 0x5441_3001 | 0x5441_3008) => {
            "One end speaks TLS and the other does not: compare the transports of both endpoints, and the `wrap` rules \
             in the policies of both hosts."
                .to_owned()
        }
        (0x2000, 0x5441_3000..=0x5441_31FF) => {
            "Compare the certificate of each end with the authorities that the other end trusts: \
             `openssl x509 -noout -text -in FILE` shows dates, names and issuer."
                .to_owned()
        }
        (0x4000, 300) => "The authentication handler refused the peer for now (ZAP status 300): see its log.".to_owned(),
        (0x4000, 400) => {
            "The authentication handler does not know this key, user or address (ZAP status 400): add it there, or \
             correct it in the client."
                .to_owned()
        }
        (0x4000, _) => "The authentication handler failed: see its log.".to_owned(),
        (0x800, _) if endpoint.bound && socket.mechanism == "CURVE" => {
            "The peers close the connection before the handshake ends: a client with a wrong key, a program that closes \
             its socket at once, or a health check. Run `taut doctor` on their host."
                .to_owned()
        }
        (0x800, _) if endpoint.bound => {
            "The peers close the connection before the handshake ends: a health check, a scanner, or a program that \
             closes its socket at once."
                .to_owned()
        }
        (0x800, _) if socket.mechanism == "CURVE" => {
            "The peer closed the connection. A server does this to a client with a wrong key: compare \
             ZMQ_CURVE_SERVERKEY with the public key of the server, and check the keys that its authentication \
             handler accepts. A server without CURVE also closes the connection."
                .to_owned()
        }
        (0x800, _) => format!(
            "The peer closed the connection or stayed silent. A server with CURVE does this to a client without \
             CURVE, and this end uses {}. Otherwise the program at the other end does not speak ZeroMQ.{}",
            socket.mechanism,
            ping_command(endpoint)
        ),
        _ => format!(
            "The program at the other end does not speak ZeroMQ, or a port is wrong.{}",
            ping_command(endpoint)
        ),
    };
    let what = match endpoint.bound {
        true => "cannot complete handshakes with peers that connect to",
        false => "cannot complete the handshake with the peer at",
    };
    let has_left = endpoint.bound && endpoint.failed_by == 0x800;
    let level = match (has_left, &*socket.mechanism) {
        (false, _) => Level::Trouble,
        (true, "CURVE") => Level::Warning,
        (true, _) => Level::Note,
    };
    finding(socket, level, "handshake-failed", endpoint.failures).with_text(
        format!("{} {what} {}: {}", socket.type_name, readable_name(endpoint), endpoint.reason),
        format!("{} failed, the first {seconds} s ago", format_count(endpoint.failures, "handshake")),
        advice,
    )
}

/// Returns a sentence with the command that shows the protocol of the peer. Empty if `taut ping`
/// cannot reach it.
fn ping_command(endpoint: &Endpoint) -> String {
    let name = readable_name(endpoint);
    let is_supported = ["tcp://", "ipc://", "tls+tcp://"].iter().any(|scheme| name.starts_with(scheme));
    match is_supported && !endpoint.bound {
        true => format!(" `taut ping {name}` shows its protocol."),
        false => String::new(),
    }
}

/// Reports a connected endpoint that the socket has given up.
pub(super) fn given_up(scene: &RuleInput<'_>, socket: &Socket, endpoint: &Endpoint) -> Option<Finding> {
    let seconds = scene.seconds(endpoint.since);
    // After a lost connection, an attempt to connect follows at once, if there is one.
    let is_lost = endpoint.state == EndpointState::Stopped && endpoint.failed_by == event_text::LOST;
    if endpoint.bound || !is_lost || seconds < PATIENCE {
        return None;
    }
    finding(socket, Level::Trouble, "given-up", seconds).with_text(
        format!("{} has lost {} and does not connect again", socket.type_name, readable_name(endpoint)),
        format!("for {seconds} s"),
        "ZMQ_RECONNECT_IVL is -1, or ZMQ_RECONNECT_STOP names this event: set them so that the socket connects again, or \
         call zmq_connect again.",
    )
}
