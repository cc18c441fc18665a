//! Options that only the socket itself answers, each with its name. All others are rows of `table`.

pub(crate) const SUBSCRIBE: i32 = 6;
pub(crate) const UNSUBSCRIBE: i32 = 7;
pub(crate) const RCVMORE: i32 = 13;
pub(crate) const FD: i32 = 14;
pub(crate) const EVENTS: i32 = 15;
pub(crate) const TYPE: i32 = 16;
pub(crate) const LAST_ENDPOINT: i32 = 32;
pub(crate) const THREAD_SAFE: i32 = 81;
pub(crate) const TOPICS_COUNT: i32 = 116;
/// Our own numbers, far from libzmq's.
pub(crate) const STATISTICS: i32 = 0x5441_0001;

pub(crate) const PEERS: i32 = 0x5441_0005;
pub(crate) const WAIT_PEERS: i32 = 0x5441_0006;
pub(crate) const WAIT_SUBSCRIPTIONS: i32 = 0x5441_0007;

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
