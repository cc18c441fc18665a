//! The peer at the other end of a pipe.

use super::{Delivered, Target};
use crate::conn::PeerInfo;
use crate::error::NoMemory;
use tautline_queue::message::Metadata;
use tautline_queue::sync::Arc;

/// The peer of a pipe.
pub(crate) struct Peer {
    pub(super) info: Option<Box<PeerInfo>>,
    /// Name of the peer for ROUTER and STREAM. Set by the pattern (or by ZMQ_CONNECT_ROUTING_ID
    /// before `Pattern::attach`).
    pub(crate) routing_id: Vec<u8>,
    /// True if `connect` made the pipe, false if the peer arrived at a bound endpoint.
    pub(crate) connected_here: bool,
    /// Number of reconnects.
    pub(crate) reconnects: u32,
}

impl Peer {
    /// Returns the information from the handshake. `None` before the handshake.
    pub(crate) fn info(&self) -> Option<&PeerInfo> {
        self.info.as_deref()
    }

    /// Returns the properties for received messages, after the handshake.
    pub(crate) fn metadata(&self) -> Option<Arc<Metadata>> {
        self.info().map(|info| Arc::clone(&info.metadata))
    }

    /// Delivers the peer's name as a first part, with its properties.
    #[inline]
    pub(super) fn deliver_routing_id(
        &self,
        name: &[u8],
        target: &mut Target<'_>,
    ) -> Result<Delivered, NoMemory> {
        let received = target.put(name, true)?;
        if let Target::Message(message) = target {
            message.set_metadata(self.metadata());
        }
        Ok(received)
    }
}
