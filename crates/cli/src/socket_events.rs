//! Observes the events of a socket's connections, for notices and for the reason of a timeout.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tautline::monitor::HandshakeError::{Io, Protocol, Refused};
use tautline::monitor::{Event, EventKind, Monitor};
use tautline_proto::TlsFault;

/// Observed events so far. Clones share the same state.
#[derive(Clone, Default)]
pub struct SocketEvents(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Known reason why there is no peer.
    trouble: Option<String>,
    peers: u64,
    /// True for a CURVE client. A server that cannot decrypt our messages closes the connection
    /// without an error.
    curve_client: bool,
}

/// Events to print to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notices {
    /// Prints no events.
    None,
    /// Prints failed handshakes, each kind once.
    Failures,
    /// Prints all events.
    All,
}

/// Maximum number of distinct failures to print.
const KINDS: usize = 100;

impl SocketEvents {
    /// Follows the events on a thread until the socket closes.
    pub fn follow(monitor: Monitor, notices: Notices, curve_client: bool) -> SocketEvents {
        let observed = SocketEvents::default();
        observed.state().curve_client = curve_client;
        let state = observed.clone();
        let thread = thread::Builder::new().name("events".to_owned());
        let spawned = thread.spawn(move || {
            let mut told = HashSet::new();
            for event in monitor {
                state.record(&event);
                let advice = advice(&event, curve_client);
                let fails = told.len() < KINDS && is_failure(&event, curve_client);
                let tell = match notices {
                    Notices::None => false,
                    Notices::Failures => fails && told.insert(event.kind.to_string()),
                    Notices::All => event.kind != EventKind::Stopped,
                };
                if tell {
                    notice!("taut: {event}{advice}");
                }
            }
        });
        // If the thread cannot start, only the notices are missing.
        drop(spawned);
        observed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, event: &Event) {
        let mut state = self.state();
        match &event.kind {
            EventKind::HandshakeSucceeded => {
                state.peers += 1;
                state.trouble = None;
            }
            EventKind::Disconnected => {
                state.peers = state.peers.saturating_sub(1);
                // Keep an earlier reason.
                state.trouble.get_or_insert_with(|| "the connection was lost".to_owned());
            }
            EventKind::ConnectRetried { .. } if state.peers == 0 && state.trouble.is_none() => {
                state.trouble = Some(format!("nothing listens at {}", event.remote));
            }
            EventKind::HandshakeFailed(_) if is_failure(event, state.curve_client) => {
                state.trouble = Some(format!("{event}{}", advice(event, state.curve_client)));
            }
            _ => {}
        }
    }

    /// Returns the reason why no messages arrive or leave.
    pub fn reason(&self) -> String {
        let state = self.state();
        match (&state.trouble, state.peers) {
            (Some(trouble), _) => trouble.clone(),
            (None, 0) => "no peer has connected".to_owned(),
            (None, _) => "a peer is connected, but no message was transferred".to_owned(),
        }
    }
}

/// True if the peers do not match. A lost connection counts only for a CURVE client, because its
/// server may have been unable to decrypt our messages.
fn is_failure(event: &Event, curve_client: bool) -> bool {
    match event.kind {
        EventKind::HandshakeFailed(Io(_)) => curve_client,
        EventKind::HandshakeFailed(_) => true,
        _ => false,
    }
}

/// Returns advice for a failed handshake.
fn advice(event: &Event, curve_client: bool) -> &'static str {
    let EventKind::HandshakeFailed(reason) = event.kind else { return "" };
    match reason {
        Io(_) if curve_client => ": is --curve-server-key the public key of that server?",
        Protocol(0x1100_0001) => ": is --curve-server-key the public key of that server?",
        Protocol(0x1100_0002) => {
            ": both ends must use CURVE (--curve-server-key), or PLAIN (--plain), or neither"
        }
        Protocol(code) => match TlsFault::from_code(code) {
            Some(TlsFault::Untrusted) => ": does --tls-trust contain its authority?",
            Some(TlsFault::OtherName) => {
                ": if the peer is the right one, give the name of its certificate with --tls-name"
            }
            Some(TlsFault::NotTls) => ": the peer may use tcp:// or ws://",
            Some(TlsFault::Refused(116)) => ": use --tls-cert and --tls-key",
            _ => "",
        },
        Refused(400) => ": does the server accept this key or password?",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tautline::{Context, Pull, Push};

    use super::*;

    #[test]
    fn the_reason_is_that_of_the_last_event() {
        let context = Context::new();
        let mut push = Push::builder(&context).linger(Duration::ZERO).build().unwrap();
        let mut events = push.monitor().unwrap();
        let observed = SocketEvents::default();
        assert_eq!(observed.reason(), "no peer has connected");
        let at = tautline_testkit::endpoint::tcp();
        push.connect(&at).unwrap();
        let mut until = |wanted: fn(&EventKind) -> bool| {
            loop {
                let event = events.recv().unwrap();
                observed.record(&event);
                if wanted(&event.kind) {
                    return observed.reason();
                }
            }
        };
        let retried = |kind: &EventKind| matches!(kind, EventKind::ConnectRetried { .. });
        assert_eq!(until(retried), format!("nothing listens at {at}"));
        let pull = Pull::builder(&context).bind(&at).unwrap();
        let met = |kind: &EventKind| *kind == EventKind::HandshakeSucceeded;
        assert_eq!(until(met), "a peer is connected, but no message was transferred");
        drop(pull);
        assert_eq!(until(|kind| *kind == EventKind::Disconnected), "the connection was lost");
    }
}
