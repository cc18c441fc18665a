//! Facts about socket types for options and endpoints: one row for each type. `pattern::REGISTRY`
//! has the behaviour with messages, `tautline_proto::SocketType` the behaviour on the wire.

use tautline_proto::SocketType;

/// Facts about a socket type. A fact is false if the row of the type does not set it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// ZMQ_CONFLATE applies to outgoing messages. Not for SUB, whose subscriptions must all arrive.
    pub(crate) conflates_outgoing: bool,
    /// ZMQ_CONFLATE applies to incoming messages. Not for PUB, which receives subscriptions.
    pub(crate) conflates_incoming: bool,
    /// The type has ZMQ_HELLO_MSG.
    pub(crate) greets: bool,
    /// The type has ZMQ_DISCONNECT_MSG.
    pub(crate) hears_farewells: bool,
    /// The type has ZMQ_HICCUP_MSG.
    pub(crate) hears_hiccups: bool,
    /// Its peers do not use ZMTP: the bytes are unframed.
    pub(crate) raw: bool,
    /// ZMQ_LINGER of a new socket is 0, because its messages are useless after it is closed.
    pub(crate) forgets_at_close: bool,
    /// A second connection to the same endpoint is useless.
    pub(crate) connects_once: bool,
    /// The socket may carry the events of a monitor.
    pub(crate) carries_events: bool,
    /// Its messages go to each peer that wants them.
    pub(crate) sends_to_all: bool,
    /// Its peers have numbers, which the program sees.
    pub(crate) has_numbered_peers: bool,
    /// It may connect to a numbered peer and get the peer's number.
    pub(crate) connects_numbered: bool,
    /// It replies to each peer, so it may be a ZAP handler.
    pub(crate) answers: bool,
}

const NONE: Facts = Facts {
    conflates_outgoing: false,
    conflates_incoming: false,
    greets: false,
    hears_farewells: false,
    hears_hiccups: false,
    raw: false,
    forgets_at_close: false,
    connects_once: false,
    carries_events: false,
    sends_to_all: false,
    has_numbered_peers: false,
    connects_numbered: false,
    answers: false,
};

// Indexed by the type's number.
static FACTS: [(SocketType, Facts); 21] = [
    (SocketType::Pair, Facts { carries_events: true, ..NONE }),
    (
        SocketType::Pub,
        Facts {
            conflates_outgoing: true,
            connects_once: true,
            carries_events: true,
            sends_to_all: true,
            ..NONE
        },
    ),
    (
        SocketType::Sub,
        Facts { conflates_incoming: true, connects_once: true, forgets_at_close: true, ..NONE },
    ),
    (SocketType::Req, Facts { connects_once: true, ..NONE }),
    (SocketType::Rep, Facts { answers: true, ..NONE }),
    (
        SocketType::Dealer,
        Facts {
            conflates_outgoing: true,
            conflates_incoming: true,
            greets: true,
            hears_hiccups: true,
            connects_once: true,
            ..NONE
        },
    ),
    (SocketType::Router, Facts { greets: true, hears_farewells: true, answers: true, ..NONE }),
    (SocketType::Pull, Facts { conflates_incoming: true, ..NONE }),
    (SocketType::Push, Facts { conflates_outgoing: true, carries_events: true, ..NONE }),
    (SocketType::XPub, Facts { sends_to_all: true, ..NONE }),
    (SocketType::XSub, Facts { forgets_at_close: true, sends_to_all: true, ..NONE }),
    (SocketType::Stream, Facts { raw: true, ..NONE }),
    (
        SocketType::Server,
        Facts { greets: true, hears_farewells: true, has_numbered_peers: true, answers: true, ..NONE },
    ),
    (SocketType::Client, Facts { greets: true, hears_hiccups: true, ..NONE }),
    (SocketType::Radio, Facts { sends_to_all: true, ..NONE }),
    (SocketType::Dish, Facts { forgets_at_close: true, ..NONE }),
    (SocketType::Gather, NONE),
    (SocketType::Scatter, NONE),
    (SocketType::Dgram, NONE),
    (
        SocketType::Peer,
        Facts {
            greets: true,
            hears_farewells: true,
            hears_hiccups: true,
            has_numbered_peers: true,
            connects_numbered: true,
            ..NONE
        },
    ),
    (SocketType::Channel, NONE),
];

impl Facts {
    /// The row of this type.
    pub(crate) fn of(socket_type: SocketType) -> &'static Facts {
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
