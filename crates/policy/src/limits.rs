/// How much there may be. `None`: as without a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections that one listener has accepted, at the same time.
    pub connections: Option<u64>,
    /// The same from one address.
    pub connections_per_address: Option<u64>,
    /// Connections of one listener whose handshakes are not complete, at the same time. The oldest
    /// one ends when there are more.
    pub handshakes: Option<u64>,
    /// Connections that one listener accepts in a second, on average; others wait.
    pub handshakes_per_second: Option<u64>,
    /// Bytes that a peer may send before its handshake is complete.
    pub handshake_bytes: Option<u64>,
    /// Bytes of a message part that a peer may send: the limit of ZMQ_MAXMSGSIZE.
    pub message_bytes: Option<u64>,
    /// Bytes of all subscriptions of one peer.
    pub subscription_bytes_per_peer: Option<u64>,
    /// Bytes that wait for a peer that does not read, and those of a peer that the program does not
    /// read.
    pub unread_bytes_per_peer: Option<u64>,
}
