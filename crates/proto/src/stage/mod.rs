//! Stages: what stands between the plain 3.1 frames of a queue and the bytes of one peer.
//!
//! A stage transforms two byte streams in wire order. The two halves of a connection call it, the
//! writing one (pump) and the reading one (intake), under one lock. Both directions take any split
//! and keep their own partial state: a few bytes where bodies stream through, a frame where it must
//! be whole to be judged. In the plain form subscriptions are always SUBSCRIBE and CANCEL commands.
//!
//! | peer | stage |
//! |---|---|
//! | 3.1 | none |
//! | 3.0 | none, or `v2` for the publish-subscribe types: subscriptions are messages on the wire |
//! | 2.0 | `v2`: and no commands at all |
//! | 1.0 | `v1`: and other frame headers |
//! | not ZMTP | [`raw()`]: no frames at all |
//! | any, over CURVE | the stage of the mechanism (`mechanism/curve/traffic.rs`) beyond that of the version |
//! | over WebSocket | one of these or a mechanism's, and the [carrier](crate::Carrier) below it |

mod chain;
mod raw;
mod rewrite;
mod subscription;
mod v1;
mod v2;

use crate::error::ProtocolError;
use crate::greeting::Version;
use crate::socket_type::SocketType;

pub(crate) use chain::chain;
pub use raw::raw;
pub(crate) use v1::put_header as put_v1_header;

/// A transform of one connection's bytes, in both directions.
pub trait Stage: Send {
    /// Takes the next bytes of the outbound queue, plain 3.1 frames split anywhere, and appends
    /// what to write to the peer. Called by the pump with its lock held; does not block.
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>);

    /// Takes the next bytes read from the peer, split anywhere, and appends plain 3.1 frames. After
    /// an error the connection is over. Called by the thread that reads the connection; does not
    /// block.
    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError>;

    /// As `seal`, for whole frames of the connection's own (PING, PONG), at a message boundary.
    fn seal_control(&mut self, frames: &[u8], out: &mut Vec<u8>) {
        self.seal(frames, out);
    }

    /// Whether there is something to write that does not come from the queue: `seal` nothing to get
    /// it.
    fn has_output(&self) -> bool {
        false
    }

    /// Whether there was no memory for what was to be sealed: nothing of it may be written any
    /// more.
    fn exhausted(&self) -> bool {
        false
    }

    /// Whether the peer has said goodbye: nothing more will come.
    fn ended(&self) -> bool {
        false
    }

    /// The connection ends from this side: appends what says so to the peer. Nothing may be written
    /// after that.
    fn finish(&mut self, _out: &mut Vec<u8>) {}

    /// Bytes held back in both directions together, waiting for more. Bounded by the stage,
    /// whatever the peer sends.
    fn buffered(&self) -> usize;
}

/// The stage for an established peer.
pub(crate) fn for_peer(version: Version, ours: SocketType) -> Option<Box<dyn Stage>> {
    match version {
        Version::V1 => Some(v1::v1(ours)),
        Version::V2 => Some(v2::v2(ours)),
        Version::V3_0 if ours.is_publish_subscribe() => Some(v2::v3_0(ours)),
        Version::V3_0 | Version::V3_1 => None,
    }
}

#[cfg(test)]
mod tests;
