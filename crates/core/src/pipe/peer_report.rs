//! Description of a peer, for the program and for a report.

use crate::conn::{Connection, PeerInfo};
use tautline_proto::SocketType;

/// State of the link between a socket and a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PeerState {
    /// The peer has not been reached yet, or was lost and may return. Messages to it are queued.
    #[default]
    Connecting = 0,
    /// Messages flow.
    Connected = 1,
    /// The peer is gone for good, but the program has not received all its messages.
    Gone = 2,
}

impl std::fmt::Display for PeerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            PeerState::Connecting => "connecting",
            PeerState::Connected => "connected",
            PeerState::Gone => "gone",
        })
    }
}

/// A peer of a socket. Counts begin when the peer is added. Bytes are those of whole frames.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PeerReport {
    /// ID within the socket, while the peer exists.
    pub id: u64,
    /// State of the link to the peer.
    pub state: PeerState,
    /// True if this socket connected to the peer, false if the peer connected.
    pub connected_here: bool,
    /// True if bytes go through shared memory.
    pub shared_memory: bool,
    /// Start of the present session in microseconds since 1970; 0 before the first one.
    pub since: u64,
    /// Messages handed to the queue of the peer.
    pub messages_out: u64,
    /// Bytes of these messages. Over inproc, the bytes of a long message count when it is received.
    pub bytes_out: u64,
    /// Messages received from the peer.
    pub messages_in: u64,
    /// Bytes of the received messages.
    pub bytes_in: u64,
    /// Messages queued for sending to the peer.
    pub queued_out: u64,
    /// Bytes of these queued messages.
    pub queued_out_bytes: u64,
    /// Messages from the peer that are queued for the program.
    pub queued_in: u64,
    /// Bytes of these queued messages.
    pub queued_in_bytes: u64,
    /// Most messages in the send queue; 0 is unlimited.
    pub limit_out: u64,
    /// Most messages in the receive queue; 0 is unlimited.
    pub limit_in: u64,
    /// Messages not sent because the peer was at its high-water mark.
    pub dropped: u64,
    /// Number of times that a message found the send queue full.
    pub full: u64,
    /// Number of reconnects of the peer.
    pub reconnects: u64,
    /// Round-trip time of a heartbeat in microseconds; 0 before the first one.
    pub round_trip_us: u64,
    /// Remote address of the connection: `tcp://10.0.0.7:51234`; empty for inproc.
    pub address: String,
    /// Local address of the connection.
    pub local: String,
    /// Local endpoint that was bound or connected.
    pub endpoint: String,
    /// Peer-Address of its messages. For a local peer it includes user, group and process.
    pub host: String,
    /// Mechanism of the connection: `NULL`, `PLAIN`, `CURVE`.
    pub mechanism: String,
    /// User ID that the authentication handler has assigned.
    pub user_id: String,
    /// Routing ID by which a ROUTER addresses the peer.
    pub routing_id: Vec<u8>,
    /// Socket type of the peer, if it has announced one.
    pub socket_type: Option<SocketType>,
}

impl PeerReport {
    /// Returns the description of a peer that has just finished its handshake.
    pub(crate) fn new(connection: &Connection, info: &PeerInfo) -> Self {
        let mut peer = PeerReport {
            id: connection.token().map_or(u64::MAX, u64::from),
            state: PeerState::Connected,
            mechanism: connection.options.mechanism.name().to_owned(),
            limit_in: connection.options.receive_hwm.into(),
            ..PeerReport::default()
        };
        peer.describe(info);
        peer
    }

    /// Fills in the facts about a present peer.
    pub(crate) fn describe(&mut self, info: &PeerInfo) {
        if self.routing_id.is_empty() {
            self.routing_id.clone_from(&info.routing_id);
        }
        self.since = info.since;
        self.socket_type = info.socket_type;
        info.ends.remote().clone_into(&mut self.address);
        info.ends.local().clone_into(&mut self.local);
        if !info.ends.name().is_empty() {
            self.endpoint = info.ends.name().to_string();
        }
        let text = |name| info.metadata.get(name).map(|value| value.to_string_lossy().into_owned());
        self.host = text("Peer-Address").unwrap_or_default();
        self.user_id = text("User-Id").unwrap_or_default();
    }
}
