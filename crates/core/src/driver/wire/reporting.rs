//! Information about a peer, for messages and events.

use super::policy_checks::{key_owner, topics};
use super::{USER_ID, Wire};
use crate::conn::{Loss, PeerInfo, Silence};
use crate::driver::heartbeat;
use crate::monitor::{Claim, EventDetails, KnownPeer, event};
use crate::options::Options;
use crate::transport;
use std::time::Duration;
use tautline_io::clock::unix_us;
use tautline_io::errno;
use tautline_io::fd::{self, AsRawFd};
use tautline_proto::zap::ZapReply;
use tautline_proto::{AuthFailure, Mismatch, PeerCertificates, ProtocolError, Violation};
use tautline_queue::message::{Metadata, limit_properties};
use tautline_queue::sync::Arc;
use tautline_queue::sync::atomic::Ordering::Relaxed;

impl Wire {
    /// Collects the metadata that messages of this peer carry. If a name occurs more than once, its
    /// first value counts. The order is: our own facts, the ZAP handler's reply, the client's
    /// certificate, the peer's own properties.
    pub(super) fn peer_info(
        &self,
        routing_id: Vec<u8>,
        properties: Vec<(String, Vec<u8>)>,
        verdict: Option<Box<ZapReply>>,
        shown: Option<&PeerCertificates>,
    ) -> Box<PeerInfo> {
        fn borrowed((name, value): &(String, Vec<u8>)) -> (&str, &[u8]) {
            (name, value)
        }
        let address = transport::peer_name(&self.stream);
        let known = [("Peer-Address", address.as_bytes()), ("Routing-Id", &routing_id)];
        let owner = key_owner(self, verdict.as_deref());
        let owner = owner.iter().map(|owner| (USER_ID, owner.as_bytes()));
        let judged = verdict.iter().flat_map(|verdict| {
            [(USER_ID, &verdict.user_id[..])].into_iter().chain(verdict.properties.iter().map(borrowed))
        });
        let certified = shown.iter().map(|shown| (USER_ID, shown.user.as_bytes()));
        // Ignore a `User-Id` that the peer itself has sent.
        let told = properties.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(USER_ID)).map(borrowed);
        let all = known.into_iter().chain(owner).chain(judged).chain(certified).chain(limit_properties(told));
        let metadata = Arc::new(Metadata::new(all, Some(fd::to_int(self.stream.as_fd().as_raw_fd()))));
        let topics = topics(self, &metadata).map(Arc::new);
        Box::new(PeerInfo {
            routing_id,
            metadata,
            ends: self.endpoint.clone(),
            since: unix_us(),
            topics,
            socket_type: None,
        })
    }

    /// Reports a failed handshake. `refusal` is the reason that the peer gave in an ERROR, and
    /// `because` the rule or the limit behind the failure.
    pub(super) fn report_failed_handshake(
        &self,
        why: Loss,
        claim: Option<&Claim>,
        refusal: &[u8],
        because: &str,
    ) {
        let (event, value) = match why {
            Loss::Protocol(ProtocolError::Auth(
                AuthFailure::Refused { status: Some(status) } | AuthFailure::Denied { status },
            )) => (event::HANDSHAKE_FAILED_AUTH, status.into()),
            Loss::Protocol(error) => (event::HANDSHAKE_FAILED_PROTOCOL, error.zmq_code()),
            Loss::Stream(errno) => (event::HANDSHAKE_FAILED_NO_DETAIL, errno as u32),
            Loss::Silent(_) => (event::HANDSHAKE_FAILED_NO_DETAIL, errno::ETIMEDOUT as u32),
            Loss::Closed => return,
        };
        self.site().failed_handshakes.fetch_add(1, Relaxed);
        let words = match (why, refusal) {
            (
                Loss::Protocol(ProtocolError::Auth(AuthFailure::Refused { status: None })),
                refusal @ [_, ..],
            ) => {
                format!("the peer refused: {}", String::from_utf8_lossy(refusal).escape_debug())
            }
            _ => words(self.options(), why, Duration::ZERO),
        };
        let peer_type = match why {
            Loss::Protocol(ProtocolError::PeerIncompatible(Mismatch::SocketType { theirs, .. })) => {
                theirs.name()
            }
            _ => "",
        };
        let about = EventDetails { claim, why: because, words: &words, peer_type, ..EventDetails::default() };
        self.site().events.emit_about(event, value, &self.endpoint, &about);
    }
}

/// The part of a peer's metadata that events carry.
pub(super) fn known(told: &Metadata) -> KnownPeer<'_> {
    let get = |name| told.get(name).map(std::ffi::CStr::to_bytes).unwrap_or_default();
    KnownPeer { routing_id: get("Routing-Id"), host: get("Peer-Address"), user_id: get(USER_ID) }
}

/// Returns the reason of an end in words, if its event has no number for it. `ttl` is the time
/// to live that the peer has granted.
pub(super) fn words(options: &Options, why: Loss, ttl: Duration) -> String {
    let ms = |time: Option<Duration>| time.unwrap_or_default().as_millis();
    match why {
        Loss::Protocol(ProtocolError::PeerIncompatible(Mismatch::SocketType { ours, theirs })) => {
            format!("the peer is a {}, and this is a {}", theirs.name(), ours.name())
        }
        Loss::Protocol(ProtocolError::PeerMisbehaved(Violation::MalformedReply)) => {
            "a message of the peer is not a reply: it has no empty delimiter".to_owned()
        }
        Loss::Protocol(ProtocolError::TooLarge { size, limit }) => {
            format!("a message of {size} bytes is above the limit of {limit}")
        }
        Loss::Silent(Silence::Handshake) => {
            format!("no handshake within {} ms", ms(options.handshake_interval))
        }
        Loss::Silent(Silence::Heartbeat) => {
            format!("no answer to a heartbeat for {} ms", ms(heartbeat::timeout(options)))
        }
        Loss::Silent(Silence::TimeToLive) => {
            format!("no heartbeat of the peer for {} ms, its time to live", ttl.as_millis())
        }
        _ => String::new(),
    }
}
