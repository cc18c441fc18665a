//! The peer at the other end of a pipe.

use super::{Received, Target};
use crate::conn::PeerInfo;
use crate::error::NoMemory;
use crate::message::Metadata;
use crate::sync::Arc;

/// The peer of a pipe.
pub(crate) struct Peer {
    info: Option<Box<PeerInfo>>,
    /// The name by which ROUTER and STREAM know it; set by the pattern (or by
    /// ZMQ_CONNECT_ROUTING_ID before `Pattern::attach`).
    pub(crate) routing_id: Vec<u8>,
    /// The pipe was made by `connect`, not by a peer arriving at a bound endpoint.
    pub(crate) connected_here: bool,
    /// How often it was lost and found again.
    pub(crate) reconnects: u32,
}

impl Peer {
    /// A peer of which nothing is known yet.
    pub(super) fn new(connected_here: bool) -> Self {
        Peer { info: None, routing_id: Vec::new(), connected_here, reconnects: 0 }
    }

    /// What the handshake told about it; `None` before that.
    pub(crate) fn info(&self) -> Option<&PeerInfo> {
        self.info.as_deref()
    }

    /// The handshake is done, again maybe.
    pub(super) fn set_info(&mut self, info: Box<PeerInfo>) {
        self.info = Some(info);
    }

    /// What messages are told of it, once the handshake is done.
    pub(crate) fn metadata(&self) -> Option<Arc<Metadata>> {
        self.info().map(|info| Arc::clone(&info.metadata))
    }

    /// Delivers its name as a first part, with its properties.
    #[inline]
    pub(super) fn introduce(&self, name: &[u8], target: &mut Target<'_>) -> Result<Received, NoMemory> {
        let received = target.put(name, true)?;
        if let Target::Message(message) = target {
            message.set_metadata(self.metadata());
        }
        Ok(received)
    }
}
