//! Handles with which another thread reads the counters of a pipe or a socket, and the state of a
//! pipe for its owner.

use super::discards::{DiscardReason, Examples};
use super::{Link, PeerReport, PeerState, Pipe, PipeId, PipesShared, SocketPipes, Store, address_cache};
use crate::conn::{Connection, NewPipe, News, SocketInbox};
use std::sync::Weak;
use tautline_queue::sync::{Arc, lock};
use tautline_queue::{ChainCounts, FrameReader, FrameWriter, LatestMessage, Probe};

/// Reads the counters of a peer without the owner. Works even before the owner has accepted the
/// pipe.
pub struct PeerProbe {
    /// Counters of its queues; `None` for ZMQ_CONFLATE.
    outgoing: Option<Probe>,
    incoming: Option<Probe>,
    /// The connection, if the pipe is not inproc.
    connection: Option<Weak<Connection>>,
    /// The slots in place of the queues (ZMQ_CONFLATE).
    slots: [Option<Arc<LatestMessage>>; 2],
}

/// Counters of a peer at one moment. Drop them without a lock: with the last reference to a
/// connection its messages are freed.
pub struct PeerCounts {
    /// Counters of the queue to the peer, and of the messages that went past it.
    pub outgoing: ChainCounts,
    /// Counters of the queue from the peer.
    pub incoming: ChainCounts,
    /// State of the connection. `None` over inproc, and after the connection has ended.
    pub connection: Option<ConnectionCounts>,
    /// Parts of multipart messages that ZMQ_CONFLATE has split.
    pub split_parts: u64,
}

/// State of a connection at one moment.
pub struct ConnectionCounts {
    /// True if messages flow.
    pub is_linked: bool,
    /// True if reading is paused at the receive high-water mark.
    pub is_paused: bool,
    /// True if bytes go through shared memory.
    pub shares_memory: bool,
    /// Round-trip time of a heartbeat in microseconds; 0 before the first one.
    pub round_trip_us: u64,
    connection: Arc<Connection>,
}

impl ConnectionCounts {
    /// True if bytes wait to be written. Tries the pump's lock; also true if another thread holds
    /// it.
    pub fn has_pending(&self) -> bool {
        self.connection.has_pending()
    }
}

impl PeerProbe {
    /// Returns the handles of a pipe that its owner does not know yet.
    pub(crate) fn from_new_pipe(pipe: &NewPipe) -> Self {
        PeerProbe {
            outgoing: pipe.outgoing.as_ref().ok().map(FrameWriter::probe),
            incoming: pipe.incoming.as_ref().ok().map(FrameReader::probe),
            connection: Some(Arc::downgrade(&pipe.connection)),
            slots: [pipe.outgoing.as_ref().err().cloned(), pipe.incoming.as_ref().err().cloned()],
        }
    }

    /// Returns the current counters. The queue to the peer may show too little for a moment while
    /// the connection changes its queue.
    pub fn counts(&self) -> PeerCounts {
        let mut outgoing = self.outgoing.as_ref().map(Probe::counts).unwrap_or_default();
        let incoming = self.incoming.as_ref().map(Probe::counts).unwrap_or_default();
        let connection = self.connection.as_ref().and_then(Weak::upgrade).map(|connection| {
            // Messages that go to the peer through a broadcast log.
            let followed = lock(&connection.followed).as_ref().map(|(_, progress)| progress.clone());
            if let Some(progress) = followed {
                let (messages, bytes) = progress.published();
                outgoing.messages = outgoing.messages.wrapping_add(messages);
                outgoing.bytes = outgoing.bytes.wrapping_add(bytes);
                outgoing.queued += progress.pending_messages();
                outgoing.queued_bytes += progress.pending_bytes();
            }
            ConnectionCounts {
                is_linked: connection.is_linked(),
                is_paused: connection.is_paused(),
                shares_memory: connection.shares_memory(),
                round_trip_us: connection.liveness.round_trip_ns().div_ceil(1000),
                connection,
            }
        });
        let split_parts = self.slots.iter().flatten().map(|slot| slot.split_parts()).sum();
        PeerCounts { outgoing, incoming, connection, split_parts }
    }

    /// True if the peer is reached over a stream, and not over inproc.
    pub fn is_wire(&self) -> bool {
        self.connection.is_some()
    }

    /// True if both read the same connection.
    pub fn is_same(&self, other: &PeerProbe) -> bool {
        matches!((&self.connection, &other.connection), (Some(one), Some(other)) if one.ptr_eq(other))
    }
}

/// Reads the counters of a socket without its owner.
pub struct SocketProbe {
    counters: Arc<PipesShared>,
    inbox: Arc<SocketInbox>,
}

/// Counters that a socket keeps for all of its pipes.
pub struct SocketCounts {
    /// Messages not sent because no peer has that routing id.
    pub unroutable: u64,
    /// Calls that were refused because it was not their turn (EFSM).
    pub out_of_turn: u64,
    /// Received messages that the socket discarded, and the reason of the last one.
    pub discarded: (u64, DiscardReason),
    /// Peers that were refused because another peer had their routing id.
    pub duplicates: u64,
    /// Peers whose routing id a newer peer took over.
    pub taken_over: u64,
    /// Messages that no subscription matched.
    pub unmatched: u64,
    /// Examples of these messages and peers, and topics.
    pub examples: Examples,
}

impl SocketProbe {
    /// Returns a probe. The socket keeps examples from now on.
    pub(crate) fn new(counters: &Arc<PipesShared>, inbox: &Arc<SocketInbox>) -> Self {
        counters.discards.keep_examples();
        SocketProbe { counters: counters.clone(), inbox: inbox.clone() }
    }

    /// Returns the current counters. A published topic is returned once.
    pub fn counts(&self) -> SocketCounts {
        let [duplicates, taken_over, unmatched] = self.counters.discards.counts();
        SocketCounts {
            unroutable: self.counters.unroutable(),
            out_of_turn: self.counters.out_of_turn(),
            discarded: self.counters.discards.discarded(),
            duplicates,
            taken_over,
            unmatched,
            examples: self.counters.discards.take_examples(),
        }
    }

    /// Makes the owner update its taps in its next call.
    pub fn notify_taps_changed(&self) {
        self.inbox.push(News::TapsChanged);
    }

    /// Makes a PUB or XPUB note the topic of its next message.
    pub fn request_topics(&self) {
        self.counters.discards.request_topics();
        self.inbox.push(News::TopicWanted);
    }
}

impl SocketPipes {
    /// Returns the handles with which another thread observes a pipe.
    pub(crate) fn probe(&mut self, id: PipeId) -> Option<PeerProbe> {
        let pipe = self.get(id)?;
        let outgoing = match &pipe.outgoing.store {
            Store::Queue(writer) => Some(writer.probe()),
            Store::Slot(_) => None,
        };
        let incoming = match &pipe.incoming.store {
            Store::Queue(reader) => Some(reader.probe()),
            Store::Slot(_) => None,
        };
        let slot_of_incoming = match &pipe.incoming.store {
            Store::Queue(_) => None,
            Store::Slot(slot) => Some(slot.clone()),
        };
        let slot_of_outgoing = match &pipe.outgoing.store {
            Store::Queue(_) => None,
            Store::Slot(slot) => Some(slot.clone()),
        };
        let connection = pipe.connection().map(Arc::downgrade);
        Some(PeerProbe { outgoing, incoming, connection, slots: [slot_of_outgoing, slot_of_incoming] })
    }

    /// Returns the description of a pipe's peer, without its counters.
    pub(crate) fn describe(&mut self, id: PipeId) -> Option<PeerReport> {
        let mut room = [0; address_cache::MAX_EXACT];
        let name = self.address_cache.get(id, &mut room).map(<[u8]>::to_vec);
        let receive_hwm = self.options.receive_hwm;
        let pipe = self.get(id)?;
        let mut peer = PeerReport::default();
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
            peer.describe(info);
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
    pub(crate) fn describe_with_counters(&mut self, id: PipeId) -> Option<PeerReport> {
        let mut peer = self.describe(id)?;
        let pipe = self.get(id)?;
        let traffic = pipe.traffic();
        (peer.messages_out, peer.bytes_out) = (traffic.messages_out, traffic.bytes_out);
        (peer.messages_in, peer.bytes_in) = (traffic.messages_in, traffic.bytes_in);
        (peer.queued_out, peer.queued_in) = (pipe.outgoing.queued(), pipe.incoming.queued());
        peer.dropped = pipe.outgoing.dropped();
        let PeerCounts { outgoing, incoming, connection, .. } = self.probe(id)?.counts();
        (peer.full, peer.queued_out_bytes) = (outgoing.full, outgoing.queued_bytes);
        peer.queued_in_bytes = incoming.queued_bytes;
        if let Some(connection) = connection {
            peer.shared_memory = connection.shares_memory;
            peer.round_trip_us = connection.round_trip_us;
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
