//! What events tell of a peer.

use super::{USER_ID, Wire};
use crate::conn::Loss;
use crate::message::Metadata;
use crate::monitor::{About, Claim, Known, event};
use crate::sync::atomic::Ordering::Relaxed;
use tautline_io::errno;
use tautline_proto::{AuthFailure, ProtocolError};

impl Wire {
    /// Tells that a handshake has failed; `because` is the rule or the limit behind it.
    pub(super) fn report_failed_handshake(&self, why: Loss, claim: Option<&Claim>, because: &str) {
        let (event, value) = match why {
            Loss::Protocol(ProtocolError::Auth(
                AuthFailure::Refused { status: Some(status) } | AuthFailure::Denied { status },
            )) => (event::HANDSHAKE_FAILED_AUTH, status.into()),
            Loss::Protocol(error) => (event::HANDSHAKE_FAILED_PROTOCOL, error.zmq_code()),
            Loss::Stream(errno) => (event::HANDSHAKE_FAILED_NO_DETAIL, errno as u32),
            Loss::Silent => (event::HANDSHAKE_FAILED_NO_DETAIL, errno::ETIMEDOUT as u32),
            Loss::Closed => return,
        };
        self.site().failed_handshakes.fetch_add(1, Relaxed);
        let about = About { claim, why: because, ..About::default() };
        self.site().tap.emit_about(event, value, &self.endpoint, &about);
    }
}

/// What events are told of a peer.
pub(super) fn known(told: &Metadata) -> Known<'_> {
    let get = |name| told.get(name).map(std::ffi::CStr::to_bytes).unwrap_or_default();
    Known { routing_id: get("Routing-Id"), host: get("Peer-Address"), user_id: get(USER_ID) }
}
