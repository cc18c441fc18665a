//! Options that only the socket itself answers, each with its name. All others are rows of `table`.

/// ZMQ_SUBSCRIBE.
pub const SUBSCRIBE: i32 = 6;
/// ZMQ_UNSUBSCRIBE.
pub const UNSUBSCRIBE: i32 = 7;
/// ZMQ_RCVMORE.
pub const RCVMORE: i32 = 13;
/// ZMQ_FD.
pub const FD: i32 = 14;
/// ZMQ_EVENTS.
pub const EVENTS: i32 = 15;
/// ZMQ_TYPE.
pub const TYPE: i32 = 16;
/// ZMQ_LAST_ENDPOINT.
pub const LAST_ENDPOINT: i32 = 32;
/// ZMQ_THREAD_SAFE.
pub const THREAD_SAFE: i32 = 81;
/// ZMQ_TOPICS_COUNT.
pub const TOPICS_COUNT: i32 = 116;
/// ZMQ_TAUTLINE_STATISTICS. Our own numbers are far from libzmq's.
pub const STATISTICS: i32 = 0x5441_0001;
/// ZMQ_TAUTLINE_PEERS.
pub const PEERS: i32 = 0x5441_0005;
/// ZMQ_TAUTLINE_WAIT_PEERS.
pub const WAIT_PEERS: i32 = 0x5441_0006;
/// ZMQ_TAUTLINE_WAIT_SUBSCRIPTIONS.
pub const WAIT_SUBSCRIPTIONS: i32 = 0x5441_0007;

/// The name of such an option.
pub(super) fn name_of(code: i32) -> Option<&'static str> {
    Some(match code {
        SUBSCRIBE => "ZMQ_SUBSCRIBE",
        UNSUBSCRIBE => "ZMQ_UNSUBSCRIBE",
        RCVMORE => "ZMQ_RCVMORE",
        FD => "ZMQ_FD",
        EVENTS => "ZMQ_EVENTS",
        TYPE => "ZMQ_TYPE",
        LAST_ENDPOINT => "ZMQ_LAST_ENDPOINT",
        THREAD_SAFE => "ZMQ_THREAD_SAFE",
        TOPICS_COUNT => "ZMQ_TOPICS_COUNT",
        STATISTICS => "ZMQ_TAUTLINE_STATISTICS",
        PEERS => "ZMQ_TAUTLINE_PEERS",
        WAIT_PEERS => "ZMQ_TAUTLINE_WAIT_PEERS",
        WAIT_SUBSCRIPTIONS => "ZMQ_TAUTLINE_WAIT_SUBSCRIPTIONS",
        _ => return None,
    })
}
