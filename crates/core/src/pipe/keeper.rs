//! Permission of peers to use topics, as patterns check it.

use crate::conn::PeerInfo;
use tautline_policy::Act;

/// Decides for one socket, in addition to `PeerInfo::topics`. Called by the owner.
pub(crate) trait Keeper: Send + Sync {
    /// True if `lets` may return false.
    fn asks(&self) -> bool;

    /// True if the program allows the peer to do this with the topic.
    fn lets(&self, peer: &PeerInfo, act: Act, topic: &[u8]) -> bool;

    /// Reports that a peer has tried a forbidden action. Called once for each connection.
    fn refused(&self, peer: &PeerInfo, act: Act, topic: &[u8]);
}
