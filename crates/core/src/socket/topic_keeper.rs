//! Topic permissions of one socket's peers. `PeerInfo` has the topics that the policy grants. This
//! module asks the program about its own rules.

use std::panic::{self, AssertUnwindSafe};

use crate::conn::PeerInfo;
use crate::host::{Admission, TopicAction};
use crate::monitor::{EventDetails, EventDispatcher, KnownPeer, event};
use crate::pipe::TopicAccess;
use tautline_io::errno;
use tautline_proto::SocketType;
use tautline_queue::sync::Arc;

/// Maximum number of bytes of a topic in a report to people.
const SHOWN: usize = 64;

/// A question to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicRequest<'a> {
    /// The user id of the peer, by the authentication handler or the policy. Empty if unknown.
    pub user_id: &'a str,
    /// The type of the socket here.
    pub socket_type: SocketType,
    /// The peer's intended use.
    pub action: TopicAction,
    /// The topic.
    pub topic: &'a [u8],
}

/// Returns true if the peer may use the topic. Called on the thread that uses the socket; the
/// engine holds no lock.
pub type TopicAuthorizer = dyn Fn(&TopicRequest<'_>) -> bool + Send + Sync;

/// Checks the topics of one socket.
pub(super) struct TopicKeeper {
    pub(super) tap: Arc<EventDispatcher>,
    pub(super) admission: Option<Arc<dyn Admission>>,
    pub(super) socket_type: SocketType,
    /// The program's own rules.
    pub(super) authorizer: Option<std::sync::Arc<TopicAuthorizer>>,
}

impl TopicAccess for TopicKeeper {
    fn may_refuse(&self) -> bool {
        self.authorizer.is_some()
    }

    fn allows(&self, peer: &PeerInfo, action: TopicAction, topic: &[u8]) -> bool {
        let Some(authorizer) = &self.authorizer else { return true };
        let user_id = peer.metadata.get("User-Id").map(std::ffi::CStr::to_string_lossy).unwrap_or_default();
        let request = TopicRequest { user_id: &user_id, socket_type: self.socket_type, action, topic };
        // The socket is in the middle of a call, so a panic counts as a refusal.
        panic::catch_unwind(AssertUnwindSafe(|| authorizer(&request))).unwrap_or(false)
    }

    fn report_refusal(&self, peer: &PeerInfo, action: TopicAction, topic: &[u8]) {
        let does = if action == TopicAction::Publish { "publish" } else { "subscribe to" };
        let shown = String::from_utf8_lossy(&topic[..topic.len().min(SHOWN)]);
        let rule = peer.topics.as_ref().filter(|topics| !topics.allows(topic)).map(|topics| topics.rule());
        let by = match (rule, &self.admission) {
            (Some(rule), Some(admission)) => admission.rule_name(rule),
            _ => "the program".to_owned(),
        };
        let get = |name| peer.metadata.get(name).map(std::ffi::CStr::to_bytes).unwrap_or_default();
        let (host, user_id) = (get("Peer-Address"), get("User-Id"));
        let why = format!("it may not {does} `{}`, by {by}", shown.escape_debug());
        let peer_known = KnownPeer { routing_id: get("Routing-Id"), host, user_id };
        let about = EventDetails { peer: peer_known, why: &why, ..EventDetails::default() };
        self.tap.emit_about(event::TOPIC_REFUSED, errno::EACCES as u32, &peer.ends, &about);
        if let (Some(rule), Some(admission)) = (rule, &self.admission) {
            let who = String::from_utf8_lossy(if user_id.is_empty() { host } else { user_id });
            let first = format!("{who} with `{}`", shown.escape_debug());
            admission.report_topic(rule, does, peer.ends.name(), &first);
        }
    }
}
