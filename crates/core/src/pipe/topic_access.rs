//! Permission of peers to use topics, as patterns check it.

use crate::conn::PeerInfo;
use crate::host::topics::TopicAction;

/// Decides which topics the peers of one socket may use, in addition to `PeerInfo::topics`. Called
/// by the owner.
pub(crate) trait TopicAccess: Send + Sync {
    /// True if `allows` may return false.
    fn may_refuse(&self) -> bool;

    /// True if the program allows the peer to do this with the topic.
    fn allows(&self, peer: &PeerInfo, action: TopicAction, topic: &[u8]) -> bool;

    /// Reports that a peer has tried a forbidden action. Called once for each connection.
    fn report_refusal(&self, peer: &PeerInfo, action: TopicAction, topic: &[u8]);
}
