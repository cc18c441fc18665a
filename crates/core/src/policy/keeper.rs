//! Which peers may use which topics of one socket: what the policy has granted its peers stands in
//! their `PeerInfo`; what the program decides itself is asked for here.

use std::panic::{self, AssertUnwindSafe};

use super::Guard;
use crate::conn::PeerInfo;
use crate::monitor::{About, Known, Tap, event};
use crate::pipe::Keeper;
use crate::sync::Arc;
use tautline_io::errno;
use tautline_policy::Act;
use tautline_proto::SocketType;

/// Most bytes of a topic in a message to people.
const SHOWN: usize = 64;

/// What a peer is about to do with a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopicAction {
    /// A peer of PUB or XPUB subscribes to all that begins with the topic.
    Subscribe,
    /// A peer of SUB or XSUB has published a message whose first part is the topic.
    Publish,
}

/// What a program is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicRequest<'a> {
    /// The user that the peer is, by the authentication handler or the policy; else empty.
    pub user_id: &'a str,
    /// The type of the socket here.
    pub socket_type: SocketType,
    /// What the peer is about to do.
    pub action: TopicAction,
    /// With which topic.
    pub topic: &'a [u8],
}

/// Answers whether a peer may. Called on the thread that uses the socket, with no lock of the
/// engine's held.
pub type TopicAuthorizer = dyn Fn(&TopicRequest<'_>) -> bool + Send + Sync;

/// Keeps the topics of one socket.
pub(crate) struct TopicKeeper {
    pub(crate) tap: Arc<Tap>,
    pub(crate) guard: Option<Arc<Guard>>,
    pub(crate) socket_type: SocketType,
    /// What the program decides itself.
    pub(crate) authorizer: Option<std::sync::Arc<TopicAuthorizer>>,
}

impl Keeper for TopicKeeper {
    fn asks(&self) -> bool {
        self.authorizer.is_some()
    }

    fn lets(&self, peer: &PeerInfo, act: Act, topic: &[u8]) -> bool {
        let Some(authorizer) = &self.authorizer else { return true };
        let user_id = peer.metadata.get("User-Id").map(std::ffi::CStr::to_string_lossy).unwrap_or_default();
        let action = match act {
            Act::Publish => TopicAction::Publish,
            _ => TopicAction::Subscribe,
        };
        let request = TopicRequest { user_id: &user_id, socket_type: self.socket_type, action, topic };
        // The socket is in the midst of something: a panic is a no.
        panic::catch_unwind(AssertUnwindSafe(|| authorizer(&request))).unwrap_or(false)
    }

    fn refused(&self, peer: &PeerInfo, act: Act, topic: &[u8]) {
        let does = if act == Act::Publish { "publish" } else { "subscribe to" };
        let shown = String::from_utf8_lossy(&topic[..topic.len().min(SHOWN)]);
        let rule = peer.topics.as_ref().filter(|topics| !topics.has(topic)).map(|topics| topics.rule());
        let by = match (rule, &self.guard) {
            (Some(rule), Some(guard)) => format!("rule `{rule}` of {}", guard.place),
            _ => "the program".to_owned(),
        };
        let get = |name| peer.metadata.get(name).map(std::ffi::CStr::to_bytes).unwrap_or_default();
        let (host, user_id) = (get("Peer-Address"), get("User-Id"));
        let why = format!("it may not {does} `{}`, by {by}", shown.escape_debug());
        let peer_known = Known { routing_id: get("Routing-Id"), host, user_id };
        let about = About { peer: peer_known, why: &why, ..About::default() };
        self.tap.emit_about(event::TOPIC_REFUSED, errno::EACCES as u32, &peer.ends, &about);
        if let (Some(rule), Some(guard)) = (rule, &self.guard) {
            let who = String::from_utf8_lossy(if user_id.is_empty() { host } else { user_id });
            let first = format!("{who} with `{}`", shown.escape_debug());
            guard.tell_of_topic(rule, does, peer.ends.name(), &first);
        }
    }
}
