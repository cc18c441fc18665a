//! The messaging patterns: the behaviour of each socket type (RFCs 28 to 31).
//!
//! One file per kind of socket, registered by one row of [`REGISTRY`]. "How to add" in
//! docs/develop/architecture.md lists the other places that depend on the type. The trait
//! [`Pattern`] documents the contract between a pattern and its socket.

use crate::error::Error;
use crate::pipe::{Part, PipeId, Pipes, Target, TopicAccess};
use tautline_proto::SocketType;
use tautline_queue::sync::Arc;

mod dealer;
mod dgram;
mod dish;
mod fan_out;
mod greeting;
mod groups;
mod hash;
mod ignored_peers;
mod notices;
mod outcome;
mod pair;
mod pipeline;
mod polled_pipes;
mod publisher;
mod publisher_filter;
mod radio;
mod rep;
mod req;
mod rotation;
mod routed;
mod router;
mod routing;
mod server;
mod stream;
mod subscriber;
mod subscription_permissions;
mod subscriptions;
mod topics;

pub(crate) use outcome::{Received, Sent};
pub(crate) use routed::Routed;
#[cfg(feature = "fuzzing")]
pub(crate) use subscriptions::{Membership, OwnSubscriptions, PeerSubscriptions, Removal, SoleTarget};

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod testbed;

/// The behaviour of one socket type: how it uses its pipes.
///
/// **Caller and locks.** The socket calls the pattern, by [`Routed`], on the owner's thread. The
/// caller holds no lock of the engine, except the lock of `shared` for thread-safe sockets. Calls
/// never nest.
///
/// **Blocking.** A pattern does not wait. The pipe methods that it calls may write queued messages
/// or read available ones, and may delay a patient caller for a moment (`Part::patient`). If the
/// pattern cannot continue, it returns [`Error::Again`]. The socket then waits and calls again.
///
/// **Ownership.** Pipes belong to `pipes`. A pattern stores their ids, from `attach` to `detach`,
/// or to its own [`Pipes::close`]. A pattern may call the pipe methods in `pipe.rs`, and the
/// `pub(crate)` methods of a pipe's halves, but not the methods of `pipe/upkeep.rs`. Operations on
/// all pipes together belong to [`SocketPipes`](crate::pipe::SocketPipes), which the socket has. A
/// part belongs to the caller until `send` returns `Ok`.
///
/// **Results.** With each part a pattern returns the pipe that the part went to or came from, if
/// there is one ([`Sent`], [`Received`]).
///
/// **Routes.** With each part a pattern also returns a route: the destination or the source of the
/// following parts. The socket follows a route without a call, so the pattern does not see those
/// parts. The pattern learns only if they have ended the message that was begun
/// (`AddressCache::message_target`, `Pipes::receiving`). `Route::NONE` is always right. Any other
/// route must have the same effect as a call of the pattern for each of those parts, until the next
/// call. A pattern need not withdraw a route: [`Routed`] has the rules that end routes, and a
/// pattern has no access to it.
pub(crate) trait Pattern: Send {
    /// Adds a pipe, after a `connect` (maybe long before the peer exists) or because a bound
    /// endpoint accepted a peer. The pattern may close the pipe at once with [`Pipes::close`]; then
    /// `detach` is not called for it. Ends all routes.
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId);

    /// Tells the pattern that the peer of `pipe` has finished its handshake: `Peer::info` is known.
    /// Called after `attach`, for every connect and reconnect; `reconnected` is true from the
    /// second one on. Never called for a closed pipe. Ends all routes.
    fn ready(&mut self, _pipes: &mut Pipes, _pipe: PipeId, _reconnected: bool) {}

    /// Tells the pattern that the pipe may have messages again after `recv` or `can_recv` found it
    /// empty. Inproc pipes report only their start and their end (`Pipe::is_inproc`). Ends all
    /// routes.
    fn handle_readable(&mut self, pipes: &mut Pipes, pipe: PipeId);

    /// Tells the pattern that the pipe is gone for good; the pattern forgets its id. The pipe still
    /// exists during the call. Its unread messages are lost after the call. Ends all routes.
    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId);

    /// Sends one part, and returns its receiver and the route of the following parts. After `Ok`
    /// the part was sent or dropped, and its body is taken or may be released. After an error the
    /// part is unchanged, and there is no route. [`Error::Again`]: call again with the same part
    /// when the state has changed.
    ///
    /// The receive route stays valid: sending must not change the source of messages.
    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error>;

    /// Receives one part into `target`, and returns its sender and the route of the following
    /// parts. After `Ok` the target holds the part. After an error no part was received, and there
    /// is no route. [`Error::Again`]: call again when the state has changed.
    ///
    /// The send route stays valid, unless the pattern read a peer with [`Pipes::recv_any`]: no
    /// other received message may change the destination of messages.
    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error>;

    /// True if `send` of a first part would not block (ZMQ_POLLOUT). Both routes stay valid.
    fn can_send(&mut self, pipes: &mut Pipes) -> bool;

    /// True if the part that `send` has just refused with [`Error::Again`] would be accepted now,
    /// so that a blocking send can stop waiting. Differs from `can_send` if the answer depends on
    /// the message (ROUTER, STREAM, XPUB with ZMQ_XPUB_NODROP). Both routes stay valid.
    fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        self.can_send(pipes)
    }

    /// True if `recv` would not block (ZMQ_POLLIN). If it has given no route, the pattern may
    /// receive a message here and keep it for `recv`. The send route stays valid as in `recv`.
    fn can_recv(&mut self, pipes: &mut Pipes) -> bool;

    /// ZMQ_SUBSCRIBE and ZMQ_UNSUBSCRIBE (SUB, and XPUB with ZMQ_XPUB_MANUAL). Other types: EINVAL.
    /// Ends all routes.
    fn subscribe(&mut self, _pipes: &mut Pipes, _topic: &[u8], _subscribe: bool) -> Result<(), Error> {
        Err(Error::Invalid)
    }

    /// zmq_join and zmq_leave (DISH). Other types: ENOTSUP. Ends all routes.
    fn join(&mut self, _pipes: &mut Pipes, _group: &[u8], _joins: bool) -> Result<(), Error> {
        Err(Error::NotSupported)
    }

    /// Makes the pattern check which topics peers may use, by `PeerInfo::topics` and `keeper`, from
    /// now on. Returns a pattern to replace this one, if necessary.
    fn restrict_topics(&mut self, _keeper: Arc<dyn TopicAccess>) -> Option<Box<dyn Pattern>> {
        None
    }

    /// Handles an option that was just stored in `pipes.options`, for patterns that act on a change
    /// (ZMQ_XPUB_WELCOME_MSG, for example, needs no action). Ends all routes.
    fn option_changed(&mut self, _pipes: &mut Pipes, _code: i32) {}

    /// The pipe of the peer with this routing id (ROUTER). Other types: ENOTSUP.
    fn pipe_by_routing_id(&self, _routing_id: &[u8]) -> Result<Option<PipeId>, Error> {
        Err(Error::NotSupported)
    }

    /// The number of a pipe's peer (SERVER, PEER).
    fn peer_number(&self, _pipe: PipeId) -> Option<u32> {
        None
    }

    /// The pipe of the peer with this number (SERVER, PEER).
    fn pipe_by_number(&self, _number: u32) -> Option<PipeId> {
        None
    }

    /// True if `can_recv` has unfinished work and must be called again, even if it has returned
    /// false. `can_recv` limits the work per call, because another call may be waiting.
    fn has_more_to_do(&self) -> bool {
        false
    }

    /// Makes the next message visible to `send`, which notes its topic (PUB, XPUB). Ends all
    /// routes.
    fn request_topic(&mut self) {}

    /// Number of distinct subscriptions held (ZMQ_TOPICS_COUNT), for PUB, XPUB, SUB, XSUB.
    fn topics_count(&self) -> Option<usize> {
        None
    }
}

/// Facts about a socket type for the rest of the engine, which does not know the type.
pub(crate) struct PatternEntry {
    /// The type of this row.
    pub(crate) socket_type: SocketType,
    /// Makes the pattern of a new socket.
    pub(crate) create: fn() -> Box<dyn Pattern>,
    /// True if SUBSCRIBE, CANCEL, JOIN and LEAVE commands of peers are delivered to the pattern (as
    /// command frames, see `Pipe::recv_any`).
    pub(crate) takes_subscriptions: bool,
    /// True if incoming messages are replies, which are received only while one is awaited (REQ).
    /// Incoming messages must have the form of a reply. The end of a peer is noticed even while its
    /// messages are not being read.
    pub(crate) takes_replies: bool,
    /// True if the messages queued for a peer are dropped, not kept, when its connection is lost
    /// (SUB, XSUB and DISH send their subscriptions again).
    pub(crate) forgets_on_reconnect: bool,
    /// True if messages of peers are received. If false, the pattern drops them.
    pub(crate) receives: bool,
    /// True if several threads may call a socket at once.
    pub(crate) thread_safe: bool,
    /// Use of a `udp` endpoint.
    pub(crate) datagrams: Datagrams,
}

/// Use of datagrams by a socket type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Datagrams {
    /// Not supported.
    Never,
    /// `connect`: sends messages with their groups to one address (RADIO).
    SendGroups,
    /// `bind`: receives messages with their groups (DISH).
    ReceiveGroups,
    /// `bind`: from and to any address; other transports are not supported (DGRAM).
    Raw,
}

/// A row with default values.
const fn plain(socket_type: SocketType, create: fn() -> Box<dyn Pattern>) -> PatternEntry {
    PatternEntry {
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
const fn thread_safe(socket_type: SocketType, create: fn() -> Box<dyn Pattern>) -> PatternEntry {
    PatternEntry { thread_safe: true, ..plain(socket_type, create) }
}

/// All socket types.
pub(crate) static REGISTRY: &[PatternEntry] = &[
    plain(SocketType::Pair, || Box::<pair::Pair>::default()),
    PatternEntry {
        takes_subscriptions: true,
        receives: false,
        ..plain(SocketType::Pub, || Box::new(publisher::Publisher::new(true)))
    },
    PatternEntry {
        takes_subscriptions: true,
        ..plain(SocketType::XPub, || Box::new(publisher::Publisher::new(false)))
    },
    PatternEntry {
        forgets_on_reconnect: true,
        ..plain(SocketType::Sub, || {
            Box::new(subscriber::Subscriber::<publisher_filter::Unrestricted>::new(true))
        })
    },
    PatternEntry {
        forgets_on_reconnect: true,
        ..plain(SocketType::XSub, || {
            Box::new(subscriber::Subscriber::<publisher_filter::Unrestricted>::new(false))
        })
    },
    PatternEntry { receives: false, ..plain(SocketType::Push, || Box::<pipeline::Push>::default()) },
    plain(SocketType::Pull, || Box::<pipeline::Pull>::default()),
    PatternEntry { takes_replies: true, ..plain(SocketType::Req, || Box::<req::Req>::default()) },
    plain(SocketType::Rep, || Box::<rep::Rep>::default()),
    plain(SocketType::Dealer, || Box::<dealer::Dealer>::default()),
    plain(SocketType::Router, || Box::<router::Router>::default()),
    plain(SocketType::Stream, || Box::<stream::Stream>::default()),
    thread_safe(SocketType::Server, || Box::<server::Server>::default()),
    thread_safe(SocketType::Client, || Box::new(dealer::Dealer::client())),
    PatternEntry {
        takes_subscriptions: true,
        receives: false,
        datagrams: Datagrams::SendGroups,
        ..thread_safe(SocketType::Radio, || Box::<radio::Radio>::default())
    },
    PatternEntry {
        forgets_on_reconnect: true,
        datagrams: Datagrams::ReceiveGroups,
        ..thread_safe(SocketType::Dish, || Box::<dish::Dish>::default())
    },
    thread_safe(SocketType::Gather, || Box::new(pipeline::Pull::gather())),
    PatternEntry {
        receives: false,
        ..thread_safe(SocketType::Scatter, || Box::new(pipeline::Push::scatter()))
    },
    PatternEntry { datagrams: Datagrams::Raw, ..plain(SocketType::Dgram, || Box::<dgram::Dgram>::default()) },
    thread_safe(SocketType::Peer, || Box::<server::Server>::default()),
    thread_safe(SocketType::Channel, || Box::new(pair::Pair::channel())),
];

/// The row of a socket type. `None` if this build does not have the type.
pub(crate) fn entry(socket_type: SocketType) -> Option<&'static PatternEntry> {
    REGISTRY.iter().find(|entry| entry.socket_type == socket_type)
}
