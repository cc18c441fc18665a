//! Facts about socket types for options and endpoints: one row for each type. `pattern::REGISTRY`
//! has the behaviour with messages, `tautline_proto::SocketType` the behaviour on the wire.

use tautline_proto::SocketType;

/// Facts about a socket type. A fact is false if the row of the type does not set it.
#[derive(Debug, Clone, Copy)]
pub struct SocketTypeInfo {
    /// ZMQ_CONFLATE applies to outgoing messages. Not for SUB, whose subscriptions must all arrive.
    pub(crate) conflates_outgoing: bool,
    /// ZMQ_CONFLATE applies to incoming messages. Not for PUB, which receives subscriptions.
    pub(crate) conflates_incoming: bool,
    /// The type has ZMQ_HELLO_MSG.
    pub(crate) has_hello_msg: bool,
    /// The type has ZMQ_DISCONNECT_MSG.
    pub(crate) has_disconnect_msg: bool,
    /// The type has ZMQ_HICCUP_MSG.
    pub(crate) has_hiccup_msg: bool,
    /// The peers of this type do not use ZMTP: the bytes are unframed.
    pub raw: bool,
    /// ZMQ_LINGER of a new socket is 0, because its messages are useless after it is closed.
    pub(crate) has_zero_linger: bool,
    /// A second connection to the same endpoint is useless.
    pub connects_once: bool,
    /// A socket of this type may send the events of a monitor.
    pub can_carry_events: bool,
    /// The peers of this type have numbers, by which the program addresses them.
    pub has_numbered_peers: bool,
    /// The type has `zmq_connect_peer`, which connects and returns the number of the peer.
    pub can_connect_peer: bool,
    /// The type can reply to the sender of each message, so it may be a ZAP handler.
    pub can_handle_zap: bool,
}

const NONE: SocketTypeInfo = SocketTypeInfo {
    conflates_outgoing: false,
    conflates_incoming: false,
    has_hello_msg: false,
    has_disconnect_msg: false,
    has_hiccup_msg: false,
    raw: false,
    has_zero_linger: false,
    connects_once: false,
    can_carry_events: false,
    has_numbered_peers: false,
    can_connect_peer: false,
    can_handle_zap: false,
};

// Indexed by the type's number.
static FACTS: [(SocketType, SocketTypeInfo); 21] = [
    (SocketType::Pair, SocketTypeInfo { can_carry_events: true, ..NONE }),
    (
        SocketType::Pub,
        SocketTypeInfo { conflates_outgoing: true, connects_once: true, can_carry_events: true, ..NONE },
    ),
    (
        SocketType::Sub,
        SocketTypeInfo { conflates_incoming: true, connects_once: true, has_zero_linger: true, ..NONE },
    ),
    (SocketType::Req, SocketTypeInfo { connects_once: true, ..NONE }),
    (SocketType::Rep, SocketTypeInfo { can_handle_zap: true, ..NONE }),
    (
        SocketType::Dealer,
        SocketTypeInfo {
            conflates_outgoing: true,
            conflates_incoming: true,
            has_hello_msg: true,
            has_hiccup_msg: true,
            connects_once: true,
            ..NONE
        },
    ),
    (
        SocketType::Router,
        SocketTypeInfo { has_hello_msg: true, has_disconnect_msg: true, can_handle_zap: true, ..NONE },
    ),
    (SocketType::Pull, SocketTypeInfo { conflates_incoming: true, ..NONE }),
    (SocketType::Push, SocketTypeInfo { conflates_outgoing: true, can_carry_events: true, ..NONE }),
    (SocketType::XPub, NONE),
    (SocketType::XSub, SocketTypeInfo { has_zero_linger: true, ..NONE }),
    (SocketType::Stream, SocketTypeInfo { raw: true, ..NONE }),
    (
        SocketType::Server,
        SocketTypeInfo {
            has_hello_msg: true,
            has_disconnect_msg: true,
            has_numbered_peers: true,
            can_handle_zap: true,
            ..NONE
        },
    ),
    (SocketType::Client, SocketTypeInfo { has_hello_msg: true, has_hiccup_msg: true, ..NONE }),
    (SocketType::Radio, NONE),
    (SocketType::Dish, SocketTypeInfo { has_zero_linger: true, ..NONE }),
    (SocketType::Gather, NONE),
    (SocketType::Scatter, NONE),
    (SocketType::Dgram, NONE),
    (
        SocketType::Peer,
        SocketTypeInfo {
            has_hello_msg: true,
            has_disconnect_msg: true,
            has_hiccup_msg: true,
            has_numbered_peers: true,
            can_connect_peer: true,
            ..NONE
        },
    ),
    (SocketType::Channel, NONE),
];

impl SocketTypeInfo {
    /// The row of this type.
    #[inline]
    pub fn of(socket_type: SocketType) -> &'static SocketTypeInfo {
        &FACTS[usize::from(socket_type.code())].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_at_its_type() {
        for (code, (socket_type, _)) in FACTS.iter().enumerate() {
            assert_eq!(usize::from(socket_type.code()), code);
        }
    }
}
