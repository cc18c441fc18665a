//! The socket types: names on the wire, numbers in the API, and the legal pairs.
//!
//! One row of [`TABLE`] per type holds all of this; a new type needs one variant and one row. The
//! legal pairs are those of RFC 37 ("The Socket-Type Property").

#[cfg(feature = "serde")]
mod named;

use SocketType::*;

/// A ZeroMQ socket type, with the number it has in the C API and in a ZMTP 2.0 greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum SocketType {
    /// Exclusive pair (RFC 31).
    Pair = 0,
    /// Publisher (RFC 29).
    Pub = 1,
    /// Subscriber (RFC 29).
    Sub = 2,
    /// Request client (RFC 28).
    Req = 3,
    /// Reply server (RFC 28).
    Rep = 4,
    /// Asynchronous request client (RFC 28).
    Dealer = 5,
    /// Asynchronous reply server (RFC 28).
    Router = 6,
    /// Pipeline receiver (RFC 30).
    Pull = 7,
    /// Pipeline sender (RFC 30).
    Push = 8,
    /// Publisher that sees subscriptions (RFC 29).
    XPub = 9,
    /// Subscriber that sends subscriptions as messages (RFC 29).
    XSub = 10,
    /// Raw byte streams; speaks no ZMTP.
    Stream = 11,
    /// Thread-safe server (RFC 47).
    Server = 12,
    /// Thread-safe client (RFC 47).
    Client = 13,
    /// Group publisher (RFC 48).
    Radio = 14,
    /// Group subscriber (RFC 48).
    Dish = 15,
    /// Thread-safe pipeline receiver (RFC 49).
    Gather = 16,
    /// Thread-safe pipeline sender (RFC 49).
    Scatter = 17,
    /// Datagrams; speaks no ZMTP.
    Dgram = 18,
    /// Peer to peer (RFC 51).
    Peer = 19,
    /// Thread-safe exclusive pair (RFC 52).
    Channel = 20,
}

struct Row {
    socket_type: SocketType,
    name: &'static str,
    peers: &'static [SocketType],
}

const fn row(socket_type: SocketType, name: &'static str, peers: &'static [SocketType]) -> Row {
    Row { socket_type, name, peers }
}

// The index is the type's number.
static TABLE: [Row; 21] = [
    row(Pair, "PAIR", &[Pair]),
    row(Pub, "PUB", &[Sub, XSub]),
    row(Sub, "SUB", &[Pub, XPub]),
    row(Req, "REQ", &[Rep, Router]),
    row(Rep, "REP", &[Req, Dealer]),
    row(Dealer, "DEALER", &[Rep, Dealer, Router]),
    row(Router, "ROUTER", &[Req, Dealer, Router]),
    row(Pull, "PULL", &[Push]),
    row(Push, "PUSH", &[Pull]),
    row(XPub, "XPUB", &[Sub, XSub]),
    row(XSub, "XSUB", &[Pub, XPub]),
    row(Stream, "STREAM", &[]),
    row(Server, "SERVER", &[Client]),
    row(Client, "CLIENT", &[Server]),
    row(Radio, "RADIO", &[Dish]),
    row(Dish, "DISH", &[Radio]),
    row(Gather, "GATHER", &[Scatter]),
    row(Scatter, "SCATTER", &[Gather]),
    row(Dgram, "DGRAM", &[Dgram]),
    row(Peer, "PEER", &[Peer]),
    row(Channel, "CHANNEL", &[Channel]),
];

impl SocketType {
    /// Returns the name as it stands in the Socket-Type property, for example `"PAIR"`.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// Returns the type with this exact name.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        TABLE.iter().find(|row| row.name.as_bytes() == name).map(|row| row.socket_type)
    }

    /// Returns the type with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        TABLE.get(usize::from(code)).map(|row| row.socket_type)
    }

    /// Returns the number in the C API and in a ZMTP 2.0 greeting.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the number in a greeting of ZMTP 2.0, where XPUB and XSUB are PUB and SUB.
    pub(crate) fn older_code(self) -> u8 {
        match self {
            XPub => Pub.code(),
            XSub => Sub.code(),
            other => other.code(),
        }
    }

    /// True if a socket of this type may talk to a socket of type `peer`.
    pub fn accepts(self, peer: SocketType) -> bool {
        TABLE[self as usize].peers.contains(&peer)
    }

    /// Returns one of the types that may talk to this one.
    pub(crate) fn some_peer(self) -> Option<SocketType> {
        TABLE[self as usize].peers.last().copied()
    }

    /// True if a peer of this type announces a routing id that we use.
    pub(crate) fn has_routing_id(self) -> bool {
        matches!(self, Req | Dealer | Router)
    }

    /// True if a socket of this type receives subscriptions from its peers.
    pub(crate) fn takes_subscriptions(self) -> bool {
        matches!(self, Pub | XPub)
    }

    /// True if a socket of this type sends or receives subscriptions.
    pub(crate) fn is_publish_subscribe(self) -> bool {
        matches!(self, Pub | Sub | XPub | XSub)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_at_their_number() {
        for (code, row) in TABLE.iter().enumerate() {
            assert_eq!(row.socket_type as usize, code);
            assert_eq!(SocketType::from_code(code as u8), Some(row.socket_type));
            assert_eq!(SocketType::from_name(row.name.as_bytes()), Some(row.socket_type));
            assert_eq!(row.socket_type.code(), code as u8);
        }
        assert_eq!(SocketType::from_code(21), None);
        assert_eq!(SocketType::from_code(255), None);
    }

    #[test]
    fn names_are_exact() {
        assert_eq!(SocketType::from_name(b"XPUB"), Some(XPub));
        for unknown in [&b"xpub"[..], b"", b"XPU", b"XPUBX", b"XPUB\0"] {
            assert_eq!(SocketType::from_name(unknown), None);
        }
    }

    #[test]
    fn types_accept_each_other_or_neither_does() {
        for ours in &TABLE {
            for theirs in &TABLE {
                assert_eq!(
                    ours.socket_type.accepts(theirs.socket_type),
                    theirs.socket_type.accepts(ours.socket_type),
                    "{} and {}",
                    ours.name,
                    theirs.name
                );
            }
        }
    }

    #[test]
    fn pairs_of_the_rfc() {
        assert!(Req.accepts(Rep) && Req.accepts(Router) && !Req.accepts(Dealer) && !Req.accepts(Req));
        assert!(
            Dealer.accepts(Dealer) && Dealer.accepts(Router) && Dealer.accepts(Rep) && !Dealer.accepts(Req)
        );
        assert!(Pub.accepts(XSub) && !Pub.accepts(Pub) && !Pub.accepts(XPub));
        assert!(!Stream.accepts(Stream));
    }
}
