//! The kinds of sockets and the operations of each kind. Calls that a kind does not support do not
//! compile.
//!
//! ```
//! use tautline::{Socket, kind};
//!
//! /// Works with any socket that sends and receives.
//! fn ask<K: kind::Sends + kind::Receives>(socket: &mut Socket<K>, question: &str) -> tautline::Result<tautline::Message> {
//!     socket.send(question)?;
//!     socket.recv()
//! }
//! ```
//!
//! ```compile_fail
//! let mut pull = tautline::Pull::new(&tautline::Context::new()).unwrap();
//! pull.send("a Pull has no `send`");
//! ```

pub use tautline_core::SocketType;

/// Returns `req` for REQ, `rep` for REP, and `None` for types without fixed turns.
pub(crate) fn select_for_req_rep<T>(socket_type: SocketType, req: T, rep: T) -> Option<T> {
    match socket_type {
        SocketType::Req => Some(req),
        SocketType::Rep => Some(rep),
        _ => None,
    }
}

/// SUB subscribes by an option, XSUB by a message.
pub(crate) fn subscribes_by_message(socket_type: SocketType) -> bool {
    socket_type == SocketType::XSub
}

mod sealed {
    pub trait Sealed {}
}

/// A kind of socket: the type parameter of [`Socket`](crate::Socket). Only the types of this module
/// implement it.
pub trait Kind: sealed::Sealed + Send + 'static {
    /// Number and name of the socket type.
    const TYPE: SocketType;
}

/// Kinds that send messages.
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets do not send",
    label = "only kinds that send have this",
    note = "PULL, SUB, DISH and GATHER receive; their peers PUSH, PUB, RADIO and SCATTER send"
)]
pub trait Sends: Kind {}

/// Kinds that receive messages.
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets do not receive",
    label = "only kinds that receive have this",
    note = "PUSH, PUB, RADIO and SCATTER send; their peers PULL, SUB, DISH and GATHER receive. XPUB receives subscriptions"
)]
pub trait Receives: Kind {}

/// Kinds whose messages may have several parts: all except the newer, thread-safe kinds of libzmq.
#[diagnostic::on_unimplemented(
    message = "the messages of `{Self}` sockets have one part",
    label = "only kinds with messages of several parts have this",
    note = "use `send` and `recv`, which transfer one part"
)]
pub trait HasMultipart: Kind {}

/// Kinds that subscribe by an option: SUB and XSUB.
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets do not subscribe",
    label = "only SUB and XSUB have this",
    note = "a DISH joins groups instead of subscribing"
)]
pub trait Subscribes: Kind {}

/// Kinds that distribute messages to subscribers: PUB and XPUB.
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets have no subscribers",
    label = "only PUB and XPUB have this"
)]
pub trait Publishes: Kind {}

/// Kinds whose messages have topics: PUB, SUB, XPUB and XSUB.
#[diagnostic::on_unimplemented(
    message = "the messages of `{Self}` sockets have no topics",
    label = "only PUB, SUB, XPUB and XSUB have this"
)]
pub trait HasTopics: Kind {}

/// Kinds that know each peer by a routing id: ROUTER and REP.
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets do not know their peers by routing ids",
    label = "only ROUTER and REP have this"
)]
pub trait Routes: Kind {}

/// Kinds that can announce themselves to a ROUTER: REQ, REP, DEALER and ROUTER.
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets do not talk to ROUTERs",
    label = "only REQ, REP, DEALER and ROUTER have this"
)]
pub trait Probes: Kind {}

/// Kinds that can greet new peers: DEALER and ROUTER.
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets have no hello message",
    label = "only DEALER and ROUTER have this"
)]
pub trait Greets: Kind {}

/// Kinds that send requests and wait for the reply: REQ.
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets do not send requests",
    label = "only REQ has this"
)]
pub trait Requests: Kind {}

/// Kinds that send and receive independently of each other, so that a socket can be
/// [split](crate::Socket::split).
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets cannot be split",
    label = "only kinds that send and receive independently of each other have this",
    note = "REQ and REP send and receive in turn"
)]
pub trait Splits: Sends + Receives + HasMultipart {}

/// Kinds whose messages begin with the routing id of a peer: ROUTER and STREAM.
#[diagnostic::on_unimplemented(
    message = "`{Self}` sockets cannot choose the peer of a message",
    label = "only ROUTER and STREAM have this",
    note = "DEALER and REQ let the pattern choose the peer"
)]
pub trait Addresses: Sends + Receives + HasMultipart {}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $($capability:ident)*;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub enum $name {}

        impl sealed::Sealed for $name {}
        impl Kind for $name {
            const TYPE: SocketType = SocketType::$name;
        }
        $(impl $capability for $name {})*
    )*};
}

kinds! {
    /// Exclusive pair (RFC 31).
    Pair: Sends Receives HasMultipart Splits;
    /// Distributes messages to subscribers (RFC 29).
    Pub: Sends HasMultipart Publishes HasTopics;
    /// Receives the messages that it subscribed to (RFC 29).
    Sub: Receives HasMultipart Subscribes HasTopics;
    /// PUB that receives the subscriptions of its subscribers (RFC 29).
    XPub: Sends Receives HasMultipart Publishes Splits HasTopics;
    /// SUB that subscribes by sending (RFC 29).
    XSub: Sends Receives HasMultipart Subscribes Splits HasTopics;
    /// Sends a request to one of its peers, and waits for the reply (RFC 28).
    Req: Sends Receives HasMultipart Requests Probes;
    /// Answers requests (RFC 28).
    Rep: Sends Receives HasMultipart Routes Probes;
    /// Sends requests to many peers at once (RFC 28).
    Dealer: Sends Receives HasMultipart Splits Probes Greets;
    /// Answers each peer by its routing id (RFC 28).
    Router: Sends Receives HasMultipart Routes Splits Addresses Probes Greets;
    /// Distributes work (RFC 30).
    Push: Sends HasMultipart;
    /// Receives work (RFC 30).
    Pull: Receives HasMultipart;
    /// Sends requests to SERVERs (RFC 47, a draft).
    Client: Sends Receives;
    /// Answers CLIENTs (RFC 47, a draft).
    Server: Sends Receives;
    /// Distributes messages to groups (RFC 48, a draft).
    Radio: Sends;
    /// Receives the messages of the groups that it has joined (RFC 48, a draft).
    Dish: Receives;
    /// Distributes work (RFC 49, a draft).
    Scatter: Sends;
    /// Receives work (RFC 49, a draft).
    Gather: Receives;
    /// Sends requests and replies (RFC 51, a draft).
    Peer: Sends Receives;
    /// Exclusive pair (RFC 52, a draft).
    Channel: Sends Receives;
    /// Datagrams over `udp` (a draft).
    Dgram: Sends Receives HasMultipart;
    /// Raw TCP.
    Stream: Sends Receives HasMultipart Splits Addresses;
}
