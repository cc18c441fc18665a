//! Which peers may use which topics, as patterns ask for it.

use crate::conn::PeerInfo;
use tautline_policy::Act;

/// Decides for one socket, beside what `PeerInfo::topics` says. Called by the owner.
pub(crate) trait Keeper: Send + Sync {
    /// Whether `lets` may say no.
    fn asks(&self) -> bool;

    /// Whether the program lets the peer do this with the topic.
    fn lets(&self, peer: &PeerInfo, act: Act, topic: &[u8]) -> bool;

    /// A peer has done what it may not. Told once for each connection.
    fn refused(&self, peer: &PeerInfo, act: Act, topic: &[u8]);
}
