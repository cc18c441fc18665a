//! Stages: transforms between the frames of a queue, which are unencrypted frames of ZMTP 3.1
//! (*plain* frames), and the bytes of one peer.
//!
//! A stage transforms both byte streams of a connection, each in the order of the wire. The writing
//! half of the connection (pump) and the reading half (intake) call the stage under one lock, the
//! lock of the stage.
//!
//! The input of both directions may be split anywhere. Each direction keeps its incomplete input: a
//! few bytes if bodies stream through, or a whole frame if the stage must check whole frames. In
//! plain frames, subscriptions are always SUBSCRIBE and CANCEL commands.
//!
//! | peer | stage |
//! |---|---|
//! | 3.1 | no stage |
//! | 3.0 | `v2::v3_0` for publish-subscribe types (subscriptions are messages), otherwise none |
//! | 2.0 | `v2::v2`, for all types: subscriptions as for 3.0, and no commands |
//! | 1.0 | `v1`: as for 2.0, with other frame headers |
//! | not ZMTP | [`raw()`]: bytes without frames |
//! | any, over CURVE | the version's stage, then `mechanism/curve/traffic.rs` next to the wire |
//! | over WebSocket | any of these stages, then the [carrier](crate::Carrier) next to the wire |

mod chain;
mod raw;
mod rewrite;
mod subscription;
mod v1;
mod v2;

use crate::error::ProtocolError;
use crate::greeting::Version;
use crate::socket_type::SocketType;

// Joins two stages: the stage of the version, and the stage of the mechanism.
pub(crate) use chain::chain;
pub use raw::raw;
pub(crate) use v1::append_header as put_v1_header;

/// A transform of one connection's bytes, in both directions.
pub trait Stage: Send {
    /// Takes the next bytes of the outbound queue, plain 3.1 frames split anywhere, and appends the
    /// bytes to write to the peer. The pump calls this under its own lock and the lock of the
    /// stage. Does not block.
    fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>);

    /// Takes the next bytes read from the peer, split anywhere, and appends plain 3.1 frames. After
    /// an error the connection is over. The thread that reads the connection calls this, under the
    /// lock of the stage. Does not block.
    fn open(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError>;

    /// Takes whole frames of the connection itself (PING, PONG) at a message boundary, and appends
    /// the bytes to write to the peer. The caller and the locks are those of `seal`.
    fn seal_control(&mut self, frames: &[u8], out: &mut Vec<u8>) {
        self.seal(frames, out);
    }

    /// True if the stage has output that does not come from the queue. Call `seal` with an empty
    /// slice to get it.
    fn has_output(&self) -> bool {
        false
    }

    /// True if there was no memory for sealing. The sealed bytes are then incomplete and must not
    /// be written.
    fn is_out_of_memory(&self) -> bool {
        false
    }

    /// True if the peer has ended the connection in an orderly way and will send no further frames.
    fn is_closed(&self) -> bool {
        false
    }

    /// Ends the connection from this side: appends the bytes that announce the end to the peer. No
    /// other bytes may follow on the connection.
    fn close(&mut self, _out: &mut Vec<u8>) {}

    /// Returns the number of bytes held back in both directions together, waiting for more input.
    /// The stage bounds this number for any input.
    fn buffered(&self) -> usize;
}

/// Returns the stage for the version of a peer after the handshake, or `None` if this version needs
/// no stage. The stage of CURVE is separate.
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
