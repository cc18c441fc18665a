//! Interfaces between a connection and the layers around it: news to the socket's owner, and
//! requests to the I/O thread.

use super::reader::ReadSet;
use super::{Connection, wakes};
use crate::host::topics::AllowedTopics;
use crate::monitor::Ends;
use std::io;
use std::time::Duration;
use tautline_io::fd::{self, AsRawFd, RawFd};
use tautline_io::net::Stream;
use tautline_io::reactor::{Interest, Token};
use tautline_io::wake::WakeFd;
use tautline_proto::{ProtocolError, SocketType, Stage};
use tautline_queue::handoff::chore::ScheduledChore;
use tautline_queue::handoff::inbox::{Inbox, Unpark};
use tautline_queue::handoff::signal::Signal;
use tautline_queue::message::Metadata;
use tautline_queue::sync::atomic::AtomicI32;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};
use tautline_queue::{FrameReader, FrameWriter, LatestMessage};

/// Information about a peer from its handshake and its stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeerInfo {
    /// The peer's own routing id. Empty if it has no routing id.
    pub(crate) routing_id: Vec<u8>,
    /// Properties that received messages carry.
    pub(crate) metadata: Arc<Metadata>,
    /// The ends of the connection. Empty for inproc.
    pub(crate) ends: Arc<Ends>,
    /// Time of the peer's arrival, in microseconds since 1970. 0 for inproc.
    pub(crate) since: u64,
    /// Topics that the peer may use, if the policy restricts them.
    pub(crate) topics: Option<Arc<AllowedTopics>>,
    /// The peer's socket type, if it has announced one.
    pub(crate) socket_type: Option<SocketType>,
}

/// The owner's queue ends of a new connection.
pub(crate) struct NewPipe {
    /// The connection.
    pub(crate) connection: Arc<Connection>,
    /// Producer of the outbound queue, or the slot of ZMQ_CONFLATE.
    pub(crate) outgoing: Result<FrameWriter, Arc<LatestMessage>>,
    /// Consumer of the inbound queue, or the slot of ZMQ_CONFLATE.
    pub(crate) incoming: Result<FrameReader, Arc<LatestMessage>>,
    /// True if a connect made the pipe, false if a peer connected to us.
    pub(crate) connected_here: bool,
}

/// The stage of a session, used by both halves of the connection.
pub(crate) type SharedStage = Arc<Mutex<Box<dyn Stage>>>;

/// News for a socket's owner, from the I/O side or from an inproc peer.
pub(crate) enum News {
    /// A peer has arrived at a bound endpoint (or, with ZMQ_IMMEDIATE, was reached): a new pipe
    /// with a known peer.
    Attached(Box<NewPipe>, Box<PeerInfo>),
    /// The peer of a pipe made by `connect` has finished its handshake.
    /// `UnseenEvents::take_handshakes` returns the details.
    Ready(Arc<Connection>),
    /// The session of a pipe made by `connect` is over, and the next one may come. Sent only if
    /// ZMQ_HICCUP_MSG is set.
    Interrupted(Arc<Connection>),
    /// Another thread wants to use the socket (`shared`). A sleeping owner must wake up and release
    /// the lock.
    LockRequested,
    /// The pipe has messages to read.
    Readable(u32),
    /// The peer has refused the connection. The pipe will end, but not before the owner has seen
    /// this news.
    Refused(Arc<Connection>),
    /// The pipe has ended: it sends no further messages, and receives only those in its inbound
    /// queue.
    Ended(Arc<Connection>),
    /// Another socket of the context has connected to an inproc endpoint of this one.
    Inproc(Box<super::inproc::Offer>),
    /// The other side of an inproc pipe was bound after the connect, or has announced its type.
    PeerBound(u32, Box<PeerInfo>),
    /// The other side of an inproc pipe is closed.
    PeerClosed(u32),
    /// A name no longer resolves to all of its former endpoints.
    NameChanged,
    /// Taps have come or gone.
    TapsChanged,
    /// A tool asks for the topic of a message.
    TopicWanted,
    /// The context was terminated.
    Terminated,
    /// Another thread closes the socket.
    Closed,
}

impl News {
    /// True if the news would be useless to an owner that looked now.
    pub(super) fn is_obsolete(&mut self) -> bool {
        match self {
            News::Inproc(offer) => offer.is_obsolete(),
            News::Attached(pipe, _) => pipe.is_obsolete(),
            News::Ended(connection) => connection.unseen.are_forgotten(),
            _ => false,
        }
    }
}

/// Wakes a socket's owner: through its descriptor, and through the task that waits for the socket,
/// if any.
pub(crate) struct Waker {
    signal: Signal<WakeFd>,
    /// Number of the descriptor, for the owner alone. [`fd::NONE`] before the descriptor exists.
    // Relaxed: own, the owner alone.
    number: AtomicI32,
    task: Mutex<Option<std::task::Waker>>,
}

impl Waker {
    /// Returns a waker without a descriptor and without a task.
    pub(crate) fn new() -> Self {
        Waker { signal: Signal::new(), number: AtomicI32::new(fd::to_int(fd::NONE)), task: Mutex::default() }
    }

    /// Owner: returns the descriptor, and creates it if needed. The descriptor stays open as long
    /// as the result is kept, and until the socket ends.
    pub(crate) fn descriptor(&self) -> io::Result<Arc<WakeFd>> {
        let made = self.signal.descriptor()?;
        self.number.store(fd::to_int(made.as_fd().as_raw_fd()), Relaxed);
        Ok(made)
    }

    /// Owner: returns the number of the descriptor, to be polled. Creates the descriptor if needed.
    pub(crate) fn number(&self) -> io::Result<RawFd> {
        match fd::from_int(self.number.load(Relaxed)) {
            fd::NONE => self.descriptor().map(|made| made.as_fd().as_raw_fd()),
            number => Ok(number),
        }
    }

    /// Owner: closes the descriptor, because the owner will never wait again. Other threads may
    /// keep the waker for a long time.
    pub(crate) fn release(&self) {
        self.number.store(fd::to_int(fd::NONE), Relaxed);
        self.signal.release();
    }

    /// Makes the descriptor readable.
    pub(crate) fn ring(&self) {
        self.signal.raise();
    }

    /// Owner: makes the descriptor unreadable and reads the network with `look`. The owner must
    /// look at the news after this call.
    pub(crate) fn coalesce_during(&self, look: impl FnOnce()) {
        self.signal.coalesce_during(look);
    }

    /// Owner: makes the descriptor unreadable. The owner must look at the news after this call.
    pub(crate) fn clear(&self) {
        self.signal.clear();
    }

    /// Sets the task that the next wake-up wakes, once.
    pub(crate) fn set_task(&self, task: Option<&std::task::Waker>) {
        // Drop the former waker in its own statement, after the lock: this may drop the last
        // reference to its task.
        let former = std::mem::replace(&mut *lock(&self.task), task.cloned());
        drop(former);
    }
}

impl Unpark for Waker {
    fn unpark(&self) {
        self.signal.raise();
        // A separate statement, so that the runtime is not called with the lock held.
        let task = lock(&self.task).take();
        if let Some(task) = task {
            wakes::wake(task);
        }
    }
}

/// The inbox of a socket.
pub(crate) type SocketInbox = Inbox<News, Waker>;

/// Reason for the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The peer closed the stream, or the system reported an error (errno, 0 for an orderly end).
    Stream(i32),
    /// The peer broke the protocol.
    Protocol(ProtocolError),
    /// The peer was silent for too long.
    Silent(Silence),
    /// This side has ended the session.
    Closed,
}

/// Limit that a silent peer has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// ZMQ_HANDSHAKE_IVL.
    Handshake,
    /// ZMQ_HEARTBEAT_TIMEOUT.
    Heartbeat,
    /// The time to live that the peer has granted.
    TimeToLive,
}

/// Work that an owner leaves to the I/O thread.
pub(crate) enum Handover {
    /// Flush the queued bytes of this connection, which is marked for the residual watch, if its
    /// owner does not: `soon` or a little later.
    Watch { connection: Arc<Connection>, soon: bool },
    /// Check the connections of the residual watch now.
    HurryWatch,
    /// Write the queue of this connection, which is marked for the sweep, in the next round.
    Sweep(Arc<Connection>),
    /// Visit this marked chore after this time.
    Visit(Arc<dyn ScheduledChore>, Duration),
}

/// Event of a connection for the I/O thread. The number is that of the session.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConnectionEvent {
    /// The stream takes no further bytes (errno). Bytes that the peer sent before are still read.
    Unwritable(u32, i32),
    /// The stream has failed or ended.
    Ended(u32, Loss),
    /// The peer grants a time to live for the first time in this session: we must give the peer up
    /// after this time without a message.
    GrantedTtl(u32),
    /// The owner has seen that the peer refused the connection.
    RefusalSeen,
    /// The owner gives up the connection, which closes when the queued bytes are sent.
    GivenUp,
}

/// Services for a connection that only the I/O thread can provide. Any thread may call the methods,
/// with or without the pump's lock. The methods return at once.
pub(crate) trait IoSide: Send + Sync {
    /// Hands over work. Returns the number of the sweep's next round for [`Handover::Sweep`], and 0
    /// for other work.
    fn hand_over(&self, work: Handover) -> u32;
    /// Reports an event.
    fn report(self: Arc<Self>, connection: Arc<Connection>, event: ConnectionEvent);
    /// Asks the I/O thread to pump when the full kernel buffer is writable again. `idle` are the
    /// other events that the reactor must report. Called under the pump's lock. Returns false if
    /// the system has no memory for it.
    fn want_write(&self, stream: &Stream, registration: Token, idle: Interest) -> bool;
    /// Returns the connections to read of this socket.
    fn read_set(&self) -> Option<&Arc<ReadSet>>;
    /// True if the program wants to be notified of each peer that comes or goes, even if the peer
    /// sent no message.
    fn announces_peers(&self) -> bool;
    /// True if this socket is one of very many on its I/O thread.
    fn serves_many(&self) -> bool;
    /// True if the sweep has no work now.
    fn sweeper_is_idle(&self) -> bool;
}

/// Services for a read set that only the I/O thread can provide.
pub(crate) trait SetKeeper: Send + Sync {
    /// Makes the registration of a read set live, once.
    fn arm(&self, set: &ReadSet);
    /// Cancels `arm`.
    fn disarm(&self, set: &ReadSet);
    /// Starts the periodic tick.
    fn start_tick(&self);
    /// Makes the tick watch a set whose owner has taken the baton.
    fn join_tick(&self, set: Arc<ReadSet>);
    /// Returns the flag that is true while the periodic tick is on.
    fn tick_on(&self) -> &tautline_queue::sync::atomic::AtomicBool;
}
