//! State of an endpoint in a report, as its events tell it.

use tautline_config::event;
use tautline_core::host::Observed;
use tautline_io::errno;
use tautline_observe::{Endpoint, EndpointState};

/// Duration below which a connection was brief, in microseconds.
const BRIEF: u64 = 1_000_000;

/// Counts a lost connection by its reason.
pub(super) fn count_lost(seen: &Observed<'_>, silent: &mut u64, closed: &mut u64) {
    if seen.is_silent() {
        *silent += 1;
    } else if [0, errno::ECONNRESET as u64, errno::EPIPE as u64].contains(&seen.value) {
        *closed += 1;
    }
}

/// True if the event at `now` ends a connection before its handshake, or shortly after it.
pub(super) fn is_brief(seen: &Observed<'_>, now: u64) -> bool {
    match seen.event {
        event::HANDSHAKE_FAILED_NO_DETAIL
        | event::HANDSHAKE_FAILED_PROTOCOL
        | event::HANDSHAKE_FAILED_AUTH => true,
        event::LOST => seen.since() > 0 && now.saturating_sub(seen.since()) < BRIEF,
        _ => false,
    }
}

/// Updates the state of an endpoint from an event.
pub(super) fn update(endpoint: &mut Endpoint, seen: &Observed<'_>, reason: &str, now: u64) {
    let (code, value) = (seen.event, seen.value);
    let was = endpoint.state;
    let fail = |endpoint: &mut Endpoint| {
        if endpoint.failures == 0 {
            endpoint.failing_since = now;
        }
        endpoint.failures += 1;
        (endpoint.error, endpoint.failed_by, endpoint.failed_at) = (value, code, now);
        reason.clone_into(&mut endpoint.reason);
    };
    if code == event::LOST {
        let [silent, closed] = [&mut endpoint.lost_silent, &mut endpoint.lost_closed];
        count_lost(seen, silent, closed);
        endpoint.failed_at = now;
    }
    match code {
        event::ACCEPTED => endpoint.accepted += 1,
        event::HANDSHAKE_FAILED_NO_DETAIL
        | event::HANDSHAKE_FAILED_PROTOCOL
        | event::HANDSHAKE_FAILED_AUTH => {
            fail(endpoint);
            endpoint.peer_type = seen.peer_type().to_owned();
            if !endpoint.bound {
                // A later event announces a retry, if there is one.
                endpoint.state = EndpointState::Stopped;
            }
        }
        event::HANDSHAKE_SUCCEEDED => {
            if !endpoint.bound {
                endpoint.state = EndpointState::Connected;
                endpoint.peer_type.clear();
            }
            (endpoint.failures, endpoint.failing_since, endpoint.error) = (0, 0, 0);
            endpoint.reason.clear();
        }
        _ if endpoint.bound => {}
        event::NAME if value != 0 => fail(endpoint),
        event::NAME => {
            endpoint.state = EndpointState::Connected;
            (endpoint.failures, endpoint.failing_since, endpoint.error) = (0, 0, 0);
            reason.clone_into(&mut endpoint.reason);
        }
        event::CONNECT_DELAYED => endpoint.state = EndpointState::Connecting,
        event::CONNECTED => endpoint.state = EndpointState::Handshaking,
        event::CONNECT_RETRIED => endpoint.state = EndpointState::Waiting,
        event::CONNECT_FAILED | event::LOST => {
            fail(endpoint);
            endpoint.state = EndpointState::Stopped;
        }
        _ => {}
    }
    if endpoint.state != was {
        endpoint.since = now;
    }
}
