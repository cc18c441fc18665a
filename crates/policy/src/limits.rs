/// Limits of resources, at least 1. `None` means the same as without a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Simultaneous connections that one listener has accepted.
    pub connections: Option<u64>,
    /// Simultaneous connections that one listener has accepted from one address.
    pub connections_per_address: Option<u64>,
    /// Simultaneous incomplete handshakes of one listener. If there are more, the oldest connection
    /// is closed.
    pub handshakes: Option<u64>,
    /// Connections that one listener accepts per second, on average. Further connections wait.
    pub handshakes_per_second: Option<u64>,
    /// Bytes that a peer may send before its handshake is complete.
    pub handshake_bytes: Option<u64>,
    /// Bytes of a message part that a peer may send: the limit of ZMQ_MAXMSGSIZE.
    pub message_bytes: Option<u64>,
    /// Bytes of all subscriptions of one peer.
    pub subscription_bytes_per_peer: Option<u64>,
    /// Bytes queued for a peer that does not read, and bytes received from a peer that the program
    /// does not read.
    pub unread_bytes_per_peer: Option<u64>,
}
