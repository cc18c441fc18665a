//! State of a pipe, for the counters file ([`crate::watch`]) and for a program that asks for its
//! peers.

use super::{Link, Pipe, PipeId, SocketPipes, Store, address_cache};
use crate::conn::{Connection, NewPipe};
use std::sync::Weak;
use tautline_observe::{Peer, PeerState};
use tautline_queue::sync::Arc;
use tautline_queue::{FrameReader, FrameWriter, Probe};

/// Handles with which another thread reads a pipe's counters, without the owner. They work even
/// before the owner has accepted the pipe.
pub(crate) struct PipeProbe {
    /// Counters of its queues; `None` for ZMQ_CONFLATE.
    pub(crate) outgoing: Option<Probe>,
    pub(crate) incoming: Option<Probe>,
    /// The connection, if the pipe is not inproc.
    pub(crate) connection: Option<Weak<Connection>>,
}

impl PipeProbe {
    /// Returns the handles of a pipe that its owner does not know yet.
    pub(crate) fn from_new_pipe(pipe: &NewPipe) -> Self {
        PipeProbe {
            outgoing: pipe.outgoing.as_ref().ok().map(FrameWriter::probe),
            incoming: pipe.incoming.as_ref().ok().map(FrameReader::probe),
            connection: Some(Arc::downgrade(&pipe.connection)),
        }
    }
}

impl SocketPipes {
    /// Returns the handles with which another thread observes a pipe.
    pub(crate) fn probe(&mut self, id: PipeId) -> Option<PipeProbe> {
        let pipe = self.get(id)?;
        let outgoing = match &pipe.outgoing.store {
            Store::Queue(writer) => Some(writer.probe()),
            Store::Slot(_) => None,
        };
        let incoming = match &pipe.incoming.store {
            Store::Queue(reader) => Some(reader.probe()),
            Store::Slot(_) => None,
        };
        Some(PipeProbe { outgoing, incoming, connection: pipe.connection().map(Arc::downgrade) })
    }

    /// Returns the description of a pipe's peer, without its counters.
    pub(crate) fn describe(&mut self, id: PipeId) -> Option<Peer> {
        let mut room = [0; address_cache::MAX_EXACT];
        let name = self.address_cache.get(id, &mut room).map(<[u8]>::to_vec);
        let receive_hwm = self.options.receive_hwm;
        let pipe = self.get(id)?;
        let mut peer = Peer::default();
        peer.id = id.0.into();
        peer.connected_here = pipe.peer.connected_here;
        peer.reconnects = pipe.peer.reconnects.into();
        peer.limit_in = receive_hwm.into();
        peer.limit_out = pipe.outgoing.queue_limit().map_or(1, u64::from);
        peer.state = pipe.state();
        if let Some(connection) = pipe.connection() {
            peer.mechanism = connection.options.mechanism.name().to_owned();
        }
        peer.routing_id = name.unwrap_or_else(|| pipe.peer.routing_id.clone());
        if let Some(info) = pipe.peer.info() {
            info.describe(&mut peer);
        }
        if peer.state != PeerState::Connected {
            peer.since = 0;
        }
        Some(peer)
    }

    /// Returns the state of the link between the owner and the peer of a pipe.
    pub(crate) fn state(&mut self, id: PipeId) -> Option<PeerState> {
        self.get(id).map(|pipe| pipe.state())
    }

    /// Returns the description of a pipe's peer, with its counters as the owner sees them.
    pub(crate) fn describe_with_counters(&mut self, id: PipeId) -> Option<Peer> {
        let mut peer = self.describe(id)?;
        let pipe = self.get(id)?;
        let traffic = pipe.traffic();
        (peer.messages_out, peer.bytes_out) = (traffic.messages_out, traffic.bytes_out);
        (peer.messages_in, peer.bytes_in) = (traffic.messages_in, traffic.bytes_in);
        (peer.queued_out, peer.queued_in) = (pipe.outgoing.queued(), pipe.incoming.queued());
        peer.dropped = pipe.outgoing.dropped();
        if let Store::Queue(writer) = &pipe.outgoing.store {
            let counts = writer.probe().counts();
            (peer.full, peer.queued_out_bytes) = (counts.full, counts.queued_bytes);
        }
        if let Store::Queue(reader) = &pipe.incoming.store {
            peer.queued_in_bytes = reader.probe().counts().queued_bytes;
        }
        if let Some(connection) = pipe.connection() {
            peer.shared_memory = connection.shares_memory();
            peer.round_trip_us = connection.liveness.round_trip_ns().div_ceil(1000);
        }
        Some(peer)
    }
}

impl Pipe {
    /// Returns the state of the link between the owner and the peer.
    fn state(&self) -> PeerState {
        match &self.outgoing.link {
            _ if self.has_ended() => PeerState::Gone,
            Link::Wire(connection) if connection.is_linked() => PeerState::Connected,
            Link::Inproc(_) if self.peer.info().is_some() => PeerState::Connected,
            _ => PeerState::Connecting,
        }
    }
}
