//! Converts the engine's events to `tracing` events.

use std::fmt::Display;
use std::sync::Arc;

use tautline_core::{self as core, Observed};
use tracing::field::{debug as debugged, display as displayed};
use tracing::{Span, debug, info, info_span, trace, warn};

use crate::monitor::{EventKind, HandshakeError};
use crate::zap::{Credentials, Request, Verdict};

/// Starts reporting the connection events of `socket`.
pub(crate) fn report_events(socket: &core::Socket) {
    let kind = socket.socket_type().name();
    let span = info_span!(target: "tautline", "socket", kind);
    socket.observe(Arc::new(move |observed| report_observed(&span, kind, observed)));
}

/// Emits an event of this level with the known endpoints.
macro_rules! emit_event {
    ($level:ident, $span:ident, $kind:ident, $observed:ident, $($field:ident = $value:expr,)* $text:literal) => {
        $level!(
            target: "tautline",
            parent: $span,
            socket = $kind,
            local = known($observed.local),
            remote = known($observed.remote),
            $($field = $value,)*
            $text
        )
    };
}

fn report_observed(span: &Span, socket: &str, observed: &Observed<'_>) {
    let errno = HandshakeError::Io(observed.value as i32);
    let kind = match observed.event {
        core::CONNECT_FAILED => {
            return emit_event!(debug, span, socket, observed, reason = displayed(errno), "connect failed");
        }
        core::LOST => {
            let reason: &dyn Display = match observed.value {
                0 => &"the peer closed the connection",
                code @ 0x1000_0000.. => &HandshakeError::Protocol(code as u32),
                _ => &errno,
            };
            return emit_event!(info, span, socket, observed, reason = displayed(reason), "connection lost");
        }
        number => EventKind::new(number.into(), vec![observed.value]),
    };
    match kind {
        EventKind::Connected => emit_event!(debug, span, socket, observed, "connected"),
        EventKind::ConnectDelayed => emit_event!(trace, span, socket, observed, "connecting"),
        EventKind::ConnectRetried { after } => {
            emit_event!(debug, span, socket, observed, after = debugged(after), "reconnecting");
        }
        EventKind::Listening => emit_event!(debug, span, socket, observed, "listening"),
        EventKind::BindFailed(_) => {
            emit_event!(warn, span, socket, observed, reason = displayed(errno), "bind failed")
        }
        EventKind::Accepted => emit_event!(debug, span, socket, observed, "accepted"),
        EventKind::AcceptFailed(_) => {
            emit_event!(warn, span, socket, observed, reason = displayed(errno), "accept failed");
        }
        EventKind::Closed => emit_event!(debug, span, socket, observed, "closed"),
        EventKind::HandshakeSucceeded => emit_event!(info, span, socket, observed, "peer connected"),
        EventKind::HandshakeFailed(why) => {
            emit_event!(warn, span, socket, observed, reason = displayed(why), "handshake failed");
        }
        // For monitors only.
        _ => {}
    }
}

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Reports a peer that the handler refused.
pub(crate) fn report_refusal(request: &Request, verdict: &Verdict) {
    if verdict.is_admitted() {
        return;
    }
    let (mechanism, peer) = match request.credentials() {
        Credentials::Null => ("NULL", None),
        Credentials::Plain { username, .. } => ("PLAIN", Some(username.clone())),
        Credentials::Curve(key) => ("CURVE", Some(key.to_string())),
        Credentials::Other { mechanism, .. } => (mechanism.as_str(), None),
    };
    warn!(
        target: "tautline",
        mechanism,
        peer,
        domain = known(request.domain()),
        remote = known(request.address()),
        reason = verdict.reason(),
        "peer refused"
    );
}
