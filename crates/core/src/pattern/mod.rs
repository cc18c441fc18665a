//! The messaging patterns: what a socket type does with its pipes (RFCs 28 to 31).
//!
//! One file per kind of socket, registered by one row of [`REGISTRY`]. What else depends on the
//! type is listed in docs/architecture.md, "How to add". A pattern runs on the owner's thread only,
//! with `&mut` access to the socket's pipes: it takes no locks, does no I/O and never blocks. When
//! an operation cannot go on it returns [`Error::Again`], and the socket waits by the wait rule and
//! calls again.

use crate::error::Error;
use crate::pipe::{Part, PipeId, Pipes, Received, Target};
use tautline_proto::SocketType;

mod dealer;
mod dgram;
mod dish;
mod fan_out;
mod groups;
mod hash;
mod ignored;
mod notices;
mod pair;
mod pipeline;
mod polled;
mod publisher;
mod radio;
mod rep;
mod req;
mod rotation;
mod router;
mod routing;
mod server;
mod short;
mod stream;
mod subscriber;
mod subscriptions;
mod topics;

#[cfg(all(feature = "fuzzing", not(loom)))]
pub(crate) use subscriptions::{OwnSubscriptions, PeerSubscriptions, Regrouped, Removed, Sole};

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod testbed;

/// One socket type's behaviour.
///
/// The socket calls every method, on the owner's thread. No lock of the engine is held, but for
/// thread-safe sockets that of `shared`. A pattern never waits: where it cannot go on it answers
/// [`Error::Again`]. Pipes belong to `pipes`; a pattern keeps their ids, from `attach` to `detach`.
/// What it may do with one are the methods in `pipe.rs`, not those of `pipe/upkeep.rs`.
/// After `Ok` a part was sent or dropped, after an error nothing of it was taken.
///
/// A pattern that has just sent or received may say that the next message goes the same way
/// (`pipe::straight`). In any other call that changes where messages go it must take that back,
/// with `Pipes::ask_where_to`. A pipe that comes or goes, news, and options take it back by
/// themselves.
pub(crate) trait Pattern: Send {
    /// A pipe was added: by `connect` (maybe long before the peer is there) or because a peer
    /// arrived at a bound endpoint. The pipe may be closed at once with [`Pipes::close`]; then
    /// `detach` is not called for it.
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId);

    /// The peer of `pipe` has finished its handshake: `Peer::info` is known. Called after `attach`,
    /// for every (re)connection; `reconnected` is true from the second one on. Never called for a
    /// pipe that was closed.
    fn ready(&mut self, _pipes: &mut Pipes, _pipe: PipeId, _reconnected: bool) {}

    /// The pipe may have something to read again after `recv` or `can_recv` found it empty.
    fn readable(&mut self, pipes: &mut Pipes, pipe: PipeId);

    /// The pipe is gone for good; forget its id. It still exists during the call; its unread
    /// messages are lost after it.
    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId);

    /// Sends one part. [`Error::Again`]: nothing was taken, call again when something has changed.
    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<(), Error>;

    /// Receives one part into `target`.
    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error>;

    /// Whether `send` of a first part would not block (ZMQ_POLLOUT).
    fn can_send(&mut self, pipes: &mut Pipes) -> bool;

    /// Whether the part that `send` has just refused with [`Error::Again`] would be taken now, so
    /// that a blocking send need not wait any longer. Not the same as `can_send` where it depends
    /// on the message (ROUTER, STREAM, XPUB with ZMQ_XPUB_NODROP).
    fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        self.can_send(pipes)
    }

    /// Whether `recv` would not block (ZMQ_POLLIN).
    fn can_recv(&mut self, pipes: &mut Pipes) -> bool;

    /// ZMQ_SUBSCRIBE and ZMQ_UNSUBSCRIBE (SUB, and XPUB with ZMQ_XPUB_MANUAL). Others: EINVAL.
    fn subscribe(&mut self, _pipes: &mut Pipes, _topic: &[u8], _subscribe: bool) -> Result<(), Error> {
        Err(Error::Invalid)
    }

    /// zmq_join and zmq_leave (DISH). Others: ENOTSUP.
    fn join(&mut self, _pipes: &mut Pipes, _group: &[u8], _joins: bool) -> Result<(), Error> {
        Err(Error::NotSupported)
    }

    /// The pipe of the peer with this routing id (ROUTER). Others: ENOTSUP.
    fn addressed(&self, _routing_id: &[u8]) -> Result<Option<PipeId>, Error> {
        Err(Error::NotSupported)
    }

    /// The number of a pipe's peer (SERVER, PEER).
    fn number_of(&self, _pipe: PipeId) -> Option<u32> {
        None
    }

    /// The pipe of the peer with this number (SERVER, PEER).
    fn numbered(&self, _number: u32) -> Option<PipeId> {
        None
    }

    /// Whether `can_recv` has left something that it is to be called again for, however it has
    /// answered: it does no more at a time than another call may wait for.
    fn has_more_to_do(&self) -> bool {
        false
    }

    /// Number of distinct subscriptions held (ZMQ_TOPICS_COUNT), for PUB, XPUB, SUB, XSUB.
    fn topics_count(&self) -> Option<usize> {
        None
    }

    /// An option was just stored in `pipes.options`; for patterns that act on a change (for example
    /// ZMQ_XPUB_WELCOME_MSG does not).
    fn option_changed(&mut self, _pipes: &mut Pipes, _code: i32) {}
}

/// What the rest of the engine must know of a socket type without knowing the type.
pub(crate) struct Entry {
    /// The type this row is for.
    pub(crate) socket_type: SocketType,
    /// Makes the pattern of a new socket.
    pub(crate) create: fn() -> Box<dyn Pattern>,
    /// SUBSCRIBE, CANCEL, JOIN and LEAVE commands of peers are delivered to the pattern (as command
    /// frames, see `Pipe::recv_any`).
    pub(crate) takes_subscriptions: bool,
    /// What comes are replies, which are received only while one is awaited (REQ). They must have
    /// the form of one, and a peer from which nothing is read at the moment is seen to go, too.
    pub(crate) takes_replies: bool,
    /// What was queued for a peer is dropped, not kept, when its connection is lost (SUB, XSUB and
    /// DISH tell anew what they want).
    pub(crate) forgets_on_reconnect: bool,
    /// Messages of peers are received. Else the pattern drops them.
    pub(crate) receives: bool,
    /// Several threads may call a socket at once.
    pub(crate) thread_safe: bool,
    /// What a `udp` endpoint is good for.
    pub(crate) datagrams: Datagrams,
}

/// How a socket type uses datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Datagrams {
    /// Not at all.
    Never,
    /// `connect`: sends messages with their groups to one address (RADIO).
    SendGroups,
    /// `bind`: receives messages with their groups (DISH).
    ReceiveGroups,
    /// `bind`: from and to any address, and nothing but datagrams (DGRAM).
    Raw,
}

/// A row without any of the special treatments.
const fn plain(socket_type: SocketType, create: fn() -> Box<dyn Pattern>) -> Entry {
    Entry {
        socket_type,
        create,
        takes_subscriptions: false,
        takes_replies: false,
        forgets_on_reconnect: false,
        receives: true,
        thread_safe: false,
        datagrams: Datagrams::Never,
    }
}

/// The row of a type that several threads may use at once.
const fn thread_safe(socket_type: SocketType, create: fn() -> Box<dyn Pattern>) -> Entry {
    Entry { thread_safe: true, ..plain(socket_type, create) }
}

/// All socket types.
pub(crate) static REGISTRY: &[Entry] = &[
    plain(SocketType::Pair, || Box::<pair::Pair>::default()),
    Entry {
        takes_subscriptions: true,
        receives: false,
        ..plain(SocketType::Pub, || Box::new(publisher::Publisher::new(true)))
    },
    Entry {
        takes_subscriptions: true,
        ..plain(SocketType::XPub, || Box::new(publisher::Publisher::new(false)))
    },
    Entry {
        forgets_on_reconnect: true,
        ..plain(SocketType::Sub, || Box::new(subscriber::Subscriber::new(true)))
    },
    Entry {
        forgets_on_reconnect: true,
        ..plain(SocketType::XSub, || Box::new(subscriber::Subscriber::new(false)))
    },
    Entry { receives: false, ..plain(SocketType::Push, || Box::<pipeline::Push>::default()) },
    plain(SocketType::Pull, || Box::<pipeline::Pull>::default()),
    Entry { takes_replies: true, ..plain(SocketType::Req, || Box::<req::Req>::default()) },
    plain(SocketType::Rep, || Box::<rep::Rep>::default()),
    plain(SocketType::Dealer, || Box::<dealer::Dealer>::default()),
    plain(SocketType::Router, || Box::<router::Router>::default()),
    plain(SocketType::Stream, || Box::<stream::Stream>::default()),
    thread_safe(SocketType::Server, || Box::<server::Server>::default()),
    thread_safe(SocketType::Client, || Box::new(dealer::Dealer::client())),
    Entry {
        takes_subscriptions: true,
        receives: false,
        datagrams: Datagrams::SendGroups,
        ..thread_safe(SocketType::Radio, || Box::<radio::Radio>::default())
    },
    Entry {
        forgets_on_reconnect: true,
        datagrams: Datagrams::ReceiveGroups,
        ..thread_safe(SocketType::Dish, || Box::<dish::Dish>::default())
    },
    thread_safe(SocketType::Gather, || Box::new(pipeline::Pull::gather())),
    Entry { receives: false, ..thread_safe(SocketType::Scatter, || Box::new(pipeline::Push::scatter())) },
    Entry { datagrams: Datagrams::Raw, ..plain(SocketType::Dgram, || Box::<dgram::Dgram>::default()) },
    thread_safe(SocketType::Peer, || Box::<server::Server>::default()),
    thread_safe(SocketType::Channel, || Box::new(pair::Pair::channel())),
];

/// The row of a socket type; `None` if this build has no such type.
pub(crate) fn entry(socket_type: SocketType) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.socket_type == socket_type)
}
