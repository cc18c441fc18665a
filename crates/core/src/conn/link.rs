//! What passes between a connection and the layers around it: news to the socket's owner, requests
//! to the I/O thread.

use super::chore::Visit;
use super::reader::ReadSet;
use super::{Connection, wakes};
use crate::message::Metadata;
use crate::monitor::Ends;
use crate::queue::{Descriptor, FrameReader, FrameWriter, Inbox, Signal, Slot, Unpark};
use crate::sync::atomic::AtomicI32;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, Mutex, lock};
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;
use tautline_io::fd::{self, AsRawFd, RawFd};
use tautline_io::net::Stream;
use tautline_io::reactor::{Interest, Token};
use tautline_io::wake::WakeFd;
use tautline_observe::Peer;
use tautline_policy::Topics;
use tautline_proto::{ProtocolError, Stage};

/// What a handshake told about the peer, and what is known of the stream it came over.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeerInfo {
    /// The peer's own routing id; empty if it has none.
    pub(crate) routing_id: Vec<u8>,
    /// Properties that received messages carry.
    pub(crate) metadata: Arc<Metadata>,
    /// The ends of the connection; empty for inproc.
    pub(crate) ends: Arc<Ends>,
    /// Since when it is there, in microseconds since 1970; 0 for inproc.
    pub(crate) since: u64,
    /// The topics that it may use, if the policy says so.
    pub(crate) topics: Option<Arc<Topics>>,
}

impl PeerInfo {
    /// What it says of a peer that is there.
    pub(crate) fn describe(&self, peer: &mut Peer) {
        if peer.routing_id.is_empty() {
            peer.routing_id.clone_from(&self.routing_id);
        }
        peer.since = self.since;
        self.ends.remote().clone_into(&mut peer.address);
        self.ends.local().clone_into(&mut peer.local);
        if !self.ends.name().is_empty() {
            peer.endpoint = self.ends.name().to_string();
        }
        let told = |name| self.metadata.get(name).map(|value| value.to_string_lossy().into_owned());
        peer.host = told("Peer-Address").unwrap_or_default();
        peer.user_id = told("User-Id").unwrap_or_default();
    }
}

/// The owner's queue ends of a connection that has just come to be.
pub(crate) struct NewPipe {
    /// The connection.
    pub(crate) connection: Arc<Connection>,
    /// Producer of the outbound queue, or the slot of ZMQ_CONFLATE.
    pub(crate) outgoing: Result<FrameWriter, Arc<Slot>>,
    /// Consumer of the inbound queue, or the slot of ZMQ_CONFLATE.
    pub(crate) incoming: Result<FrameReader, Arc<Slot>>,
    /// Made by a connect, not by a peer that came.
    pub(crate) connected_here: bool,
}

/// A session's transform, used by both halves.
pub(crate) type SharedStage = Arc<Mutex<Box<dyn Stage>>>;

/// What the I/O side tells a socket's owner.
pub(crate) enum News {
    /// A peer has arrived at a bound endpoint (or, with ZMQ_IMMEDIATE, was reached): a new pipe,
    /// with its peer known.
    Attached(Box<NewPipe>, Box<PeerInfo>),
    /// The peer of a pipe made by `connect` has finished its handshake: `Connection::take_meeting`
    /// tells the rest.
    Ready(Arc<Connection>),
    /// The session of a pipe made by `connect` is over; the next one may come (for ZMQ_HICCUP_MSG
    /// only).
    Interrupted(Arc<Connection>),
    /// Another thread wants to use the socket: a sleeping owner shall make room.
    Knock,
    /// The pipe has something to read.
    Readable(u32),
    /// The peer has refused the connection: the pipe will end, but not before the owner has taken
    /// note.
    Refused(Arc<Connection>),
    /// The pipe will never again send or receive beyond what is queued inbound.
    Ended(Arc<Connection>),
    /// Another socket of the context has connected to an inproc endpoint of this one.
    Inproc(Box<super::inproc::Offer>),
    /// The other side of an inproc pipe has bound at last (or told what it is).
    Met(u32, Box<PeerInfo>),
    /// The other side of an inproc pipe is gone.
    Left(u32),
    /// A name stands no longer for all that it has led to.
    #[cfg(feature = "names")]
    Moved,
    /// Taps have come or gone.
    Tapped,
    /// The context was terminated.
    Terminated,
    /// Another thread closes the socket.
    Closed,
}

impl News {
    /// Whether nothing would come of it if the owner looked now.
    pub(super) fn is_void(&mut self) -> bool {
        match self {
            News::Inproc(offer) => offer.is_void(),
            News::Attached(pipe, _) => pipe.is_void(),
            News::Ended(connection) => connection.went_unseen(),
            _ => false,
        }
    }
}

/// Wakes a socket's owner: through its descriptor, and the task that waits for the socket, if one
/// does.
pub(crate) struct Waker {
    signal: Signal<WakeFd>,
    /// The descriptor's number, for the owner alone; [`fd::NONE`] as long as there is no
    /// descriptor.
    // Relaxed: own, the owner alone.
    number: AtomicI32,
    task: Mutex<Option<std::task::Waker>>,
}

impl Descriptor for WakeFd {
    fn make() -> io::Result<Self> {
        WakeFd::new()
    }

    fn write(&self) {
        self.wake();
    }

    fn read(&self) -> bool {
        self.drain()
    }
}

impl Waker {
    /// A waker without a descriptor and without a task.
    pub(crate) fn new() -> Self {
        Waker { signal: Signal::new(), number: AtomicI32::new(fd::to_int(fd::NONE)), task: Mutex::default() }
    }

    /// Owner: the descriptor, which is made if it is not there. It stays open as long as the answer
    /// is kept, and to the end of the socket.
    pub(crate) fn descriptor(&self) -> io::Result<Arc<WakeFd>> {
        let made = self.signal.descriptor()?;
        self.number.store(fd::to_int(made.as_fd().as_raw_fd()), Relaxed);
        Ok(made)
    }

    /// Owner: the number of the descriptor, to be polled; it is made if it is not there.
    pub(crate) fn number(&self) -> io::Result<RawFd> {
        match fd::from_int(self.number.load(Relaxed)) {
            fd::NONE => self.descriptor().map(|made| made.as_fd().as_raw_fd()),
            number => Ok(number),
        }
    }

    /// Owner: it will never wait again. Others may hold on to the waker for long; the descriptor is
    /// closed now.
    pub(crate) fn release(&self) {
        self.number.store(fd::to_int(fd::NONE), Relaxed);
        self.signal.release();
    }

    /// Makes the descriptor readable.
    pub(crate) fn ring(&self) {
        self.signal.raise();
    }

    /// Owner: makes the descriptor unreadable and looks at the network by `look`, before it looks
    /// at the news.
    pub(crate) fn quietly(&self, look: impl FnOnce()) {
        self.signal.quietly(look);
    }

    /// Owner: makes the descriptor unreadable, before it looks at the news.
    pub(crate) fn quieten(&self) {
        self.signal.quieten();
    }

    /// The task to wake next time, and only once.
    pub(crate) fn set_task(&self, task: Option<&std::task::Waker>) {
        // Dropped in a statement of its own: with the former waker may go the last of its task.
        let former = std::mem::replace(&mut *lock(&self.task), task.cloned());
        drop(former);
    }
}

impl Unpark for Waker {
    fn unpark(&self) {
        self.signal.raise();
        // In a statement of its own: the runtime is not called with the lock held.
        let task = lock(&self.task).take();
        if let Some(task) = task {
            wakes::wake(task);
        }
    }
}

/// The inbox of a socket.
pub(crate) type SocketInbox = Inbox<News, Waker>;

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The peer closed the stream, or the system reported an error (errno, 0 for an orderly end).
    Stream(i32),
    /// The peer broke the protocol.
    Protocol(ProtocolError),
    /// No sign of life within ZMQ_HEARTBEAT_TIMEOUT.
    Silent,
    /// Ended from this side.
    Closed,
}

/// What only the I/O thread can do for a connection. Methods may be called on any thread, under the
/// pump's lock or none, and return at once.
pub(crate) trait IoSide: Send + Sync {
    /// Bytes stay queued: flush them if the owner does not, `soon` or not quite so soon.
    fn watch_residual(&self, connection: &Arc<Connection>, soon: bool);
    /// Look soon at those whose bytes stay queued.
    fn hurry_residual(&self);
    /// A chore was marked: come by after this time.
    fn come_by(&self, chore: Arc<dyn Visit>, after: Duration);
    /// The connection was marked for the sweep: write its queue with the next round, whose number
    /// is returned.
    fn write_soon(&self, connection: &Arc<Connection>) -> u32;
    /// Whether the program wants to be told of each peer that comes or goes, also if it has sent
    /// nothing.
    fn announces_peers(&self) -> bool;
    /// Whether this socket is one of very many.
    fn serves_many(&self) -> bool;
    /// Whether the sweep has nothing to do just now.
    fn sweeper_is_idle(&self) -> bool;
    /// The owner is going to sleep: what it has left to the sweep is written now.
    fn hurry_sweep(&self);
    /// The kernel's buffer is full: pump when it is writable again. `idle` is what the reactor has
    /// to tell besides. Called under the pump's lock. False: the system has no memory for that.
    fn want_write(&self, stream: &Stream, registration: Token, idle: Interest) -> bool;
    /// Reading was paused at the receive high-water mark and may go on. Called by the owner.
    fn resume(&self, connection: &Arc<Connection>);
    /// Reads once what the peer has sent by now, also if it was not announced yet; beyond the
    /// high-water mark, if the peer sends nothing more. Called by the owner. Returns whether
    /// anything came; `Break`: the session is over.
    fn read_now(&self, connection: &Arc<Connection>) -> ControlFlow<(), bool>;
    /// The session's stream takes nothing more. What the peer sent before it went is still read.
    fn unwritable(self: Arc<Self>, connection: Arc<Connection>, session: u32, errno: i32);
    /// The session's stream has failed or ended.
    fn lost(self: Arc<Self>, connection: Arc<Connection>, session: u32, why: Loss);
    /// The owner has no use for this connection any more: it is closed when what is queued is sent.
    fn give_up(self: Arc<Self>, connection: Arc<Connection>);
    /// The peer asks us to give it up after this much silence, for the first time in this session.
    fn granted_ttl(self: Arc<Self>, connection: Arc<Connection>, session: u32);
}

/// What only the I/O thread can do for a read set.
pub(crate) trait SetKeeper: Send + Sync {
    /// Makes the registration of a read set live, once.
    fn arm(&self, set: &ReadSet);
    /// Ends that.
    fn disarm(&self, set: &ReadSet);
    /// Starts the periodic tick.
    fn start_tick(&self);
    /// Whether the periodic tick is on.
    fn tick_on(&self) -> &crate::sync::atomic::AtomicBool;
}
