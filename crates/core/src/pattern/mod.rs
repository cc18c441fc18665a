//! The messaging patterns: what a socket type does with its pipes (RFCs 28 to 31).
//!
//! One file per kind of socket, registered by one row of [`REGISTRY`]. What else depends on the
//! type is listed in docs/develop/architecture.md, "How to add". The contract between a pattern
//! and its socket stands at the trait, [`Pattern`].

use crate::error::Error;
use crate::pipe::{Keeper, Part, PipeId, Pipes, Received, Route, Target};
use crate::sync::Arc;
use tautline_proto::SocketType;

mod dealer;
mod dgram;
mod dish;
mod fan_out;
mod greeting;
mod groups;
mod hash;
mod ignored;
mod notices;
mod pair;
mod permits;
mod pipeline;
mod polled;
mod publisher;
mod radio;
mod rep;
mod req;
mod rotation;
mod routed;
mod router;
mod routing;
mod server;
mod short;
mod sieve;
mod stream;
mod subscriber;
mod subscriptions;
mod topics;

pub(crate) use routed::Routed;
#[cfg(all(feature = "fuzzing", not(loom)))]
pub(crate) use subscriptions::{OwnSubscriptions, PeerSubscriptions, Regrouped, Removed, Sole};

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod testbed;

/// One socket type's behaviour: what it does with its pipes.
///
/// **Caller and locks.** The socket calls, by [`Routed`], on the owner's thread. No lock of the
/// engine is held, but for thread-safe sockets that of `shared`. No call comes during another.
///
/// **Blocking.** A pattern does not wait. What it calls of its pipes may write what is queued or
/// read what is there, and hold a patient caller up for a moment (`Part::patient`). Where it cannot
/// go on, it answers [`Error::Again`]. The socket then waits and calls again.
///
/// **Ownership.** Pipes belong to `pipes`. A pattern keeps their ids, from `attach` to `detach`, or
/// to its own [`Pipes::close`]. What it may do with a pipe are the methods in `pipe.rs`, not those
/// of `pipe/upkeep.rs`. With all of them together it does nothing: that is
/// [`SocketPipes`](crate::pipe::SocketPipes), which the socket has. A part belongs to the caller
/// until `send` returns `Ok`.
///
/// **Routes.** With each part a pattern returns a [`Route`]: where the parts after it go, or come
/// from. The socket follows a route without a call, so the pattern does not see those parts. It
/// learns only whether they have ended the message that was begun (`Names::begun`,
/// `Pipes::receiving`). [`Route::ASK`] is always right. Any other route says what the pattern would
/// do with those parts itself, each time, until it is called again. It need not take a route back:
/// [`Routed`] has the rules by which one ends, and a pattern has no access to it.
pub(crate) trait Pattern: Send {
    /// A pipe was added: by `connect` (maybe long before the peer is there) or because a peer
    /// arrived at a bound endpoint. The pipe may be closed at once with [`Pipes::close`]; then
    /// `detach` is not called for it. Ends all routes.
    fn attach(&mut self, pipes: &mut Pipes, pipe: PipeId);

    /// The peer of `pipe` has finished its handshake: `Peer::info` is known. Called after `attach`,
    /// for every (re)connection; `reconnected` is true from the second one on. Never called for a
    /// pipe that was closed. Ends all routes.
    fn ready(&mut self, _pipes: &mut Pipes, _pipe: PipeId, _reconnected: bool) {}

    /// The pipe may have something to read again after `recv` or `can_recv` found it empty. Of
    /// inproc pipes only their beginning and their end are told (`Pipe::is_inproc`). Ends all
    /// routes.
    fn readable(&mut self, pipes: &mut Pipes, pipe: PipeId);

    /// The pipe is gone for good; forget its id. It still exists during the call; its unread
    /// messages are lost after it. Ends all routes.
    fn detach(&mut self, pipes: &mut Pipes, pipe: PipeId);

    /// Sends one part, and says where those after it go. After `Ok` the part was sent or dropped,
    /// and its body is taken or may be released. After an error nothing of it was taken, and there
    /// is no route. [`Error::Again`]: call again with the same part when something has changed.
    ///
    /// The route for what is received holds: to send may not change where messages come from.
    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Route, Error>;

    /// Receives one part into `target`, and says where those after it come from. After `Ok` the
    /// target holds the part. After an error nothing was received, and there is no route.
    /// [`Error::Again`]: call again when something has changed.
    ///
    /// The route for what is sent holds, unless a peer was heard with [`Pipes::recv_any`]: nothing
    /// else that is received may change where messages go.
    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<(Received, Route), Error>;

    /// Whether `send` of a first part would not block (ZMQ_POLLOUT). Both routes hold.
    fn can_send(&mut self, pipes: &mut Pipes) -> bool;

    /// Whether the part that `send` has just refused with [`Error::Again`] would be taken now, so
    /// that a blocking send need not wait any longer. Not the same as `can_send` where it depends
    /// on the message (ROUTER, STREAM, XPUB with ZMQ_XPUB_NODROP). Both routes hold.
    fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        self.can_send(pipes)
    }

    /// Whether `recv` would not block (ZMQ_POLLIN). It may receive, and keep what it has received
    /// for `recv`, only if it has given no route. The route for what is sent holds as in `recv`.
    fn can_recv(&mut self, pipes: &mut Pipes) -> bool;

    /// ZMQ_SUBSCRIBE and ZMQ_UNSUBSCRIBE (SUB, and XPUB with ZMQ_XPUB_MANUAL). Others: EINVAL. Ends
    /// all routes.
    fn subscribe(&mut self, _pipes: &mut Pipes, _topic: &[u8], _subscribe: bool) -> Result<(), Error> {
        Err(Error::Invalid)
    }

    /// zmq_join and zmq_leave (DISH). Others: ENOTSUP. Ends all routes.
    fn join(&mut self, _pipes: &mut Pipes, _group: &[u8], _joins: bool) -> Result<(), Error> {
        Err(Error::NotSupported)
    }

    /// From now on `PeerInfo::topics` and the keeper say which topics peers may use. The pattern
    /// that takes the place of this one, if another one does.
    fn keep_topics(&mut self, _keeper: Arc<dyn Keeper>) -> Option<Box<dyn Pattern>> {
        None
    }

    /// An option was just stored in `pipes.options`; for patterns that act on a change (for example
    /// ZMQ_XPUB_WELCOME_MSG does not). Ends all routes.
    fn option_changed(&mut self, _pipes: &mut Pipes, _code: i32) {}

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
        ..plain(SocketType::Sub, || Box::new(subscriber::Subscriber::<sieve::Open>::new(true)))
    },
    Entry {
        forgets_on_reconnect: true,
        ..plain(SocketType::XSub, || Box::new(subscriber::Subscriber::<sieve::Open>::new(false)))
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
