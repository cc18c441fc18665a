//! A connection without a driver, for tests. Its requests to the I/O thread are counted, and the
//! test holds the peer's end of its stream.

use super::link::SharedStage;
use super::{Connection, ConnectionKind, IoSide, Loss, NewPipe, News, Session, SocketInbox, Waker};
use crate::options::{ContextDefaults, Options};
use std::ops::ControlFlow;
use std::time::Duration;
use tautline_io::net::Stream;
use tautline_io::reactor::{Interest, Token};
use tautline_proto::SocketType;
use tautline_queue::FrameWriter;
use tautline_queue::handoff::chore::ScheduledChore;
use tautline_queue::sync::Arc;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::atomic::{AtomicBool, AtomicU32};

/// Counts the requests of the connection.
#[derive(Default)]
pub(crate) struct MockIoSide {
    pub(crate) residual: AtomicU32,
    pub(crate) write: AtomicU32,
    pub(crate) unwritable: AtomicU32,
    pub(crate) lost: AtomicU32,
    /// True if there is no memory to wait for room.
    pub(crate) refuses: AtomicBool,
    /// True if the program is notified of each peer.
    pub(crate) announces: AtomicBool,
}

impl IoSide for MockIoSide {
    fn hurry_residual(&self) {}
    fn watch_residual(&self, _: &Arc<Connection>, _: bool) {
        self.residual.fetch_add(1, Relaxed);
    }
    fn schedule(&self, _: Arc<dyn ScheduledChore>, _: Duration) {}
    fn write_soon(&self, _: &Arc<Connection>) -> u32 {
        0
    }
    fn announces_peers(&self) -> bool {
        self.announces.load(Relaxed)
    }
    fn serves_many(&self) -> bool {
        false
    }

    fn sweeper_is_idle(&self) -> bool {
        true
    }
    fn want_write(&self, _: &Stream, _: Token, _: Interest) -> bool {
        self.write.fetch_add(1, Relaxed);
        !self.refuses.load(Relaxed)
    }
    fn resume(&self, _: &Arc<Connection>) {}
    fn read_now(&self, _: &Arc<Connection>) -> ControlFlow<(), bool> {
        ControlFlow::Continue(false)
    }
    fn handle_unwritable(self: Arc<Self>, _: Arc<Connection>, _: u32, _: i32) {
        self.unwritable.fetch_add(1, Relaxed);
    }
    fn handle_stream_end(self: Arc<Self>, _: Arc<Connection>, _: u32, _: Loss) {
        self.lost.fetch_add(1, Relaxed);
    }
    fn give_up(self: Arc<Self>, _: Arc<Connection>) {}
    fn granted_ttl(self: Arc<Self>, _: Arc<Connection>, _: u32) {}
}

/// Returns a connection with a session, the writer of its queue and the peer's end of its stream.
pub(crate) fn open(
    asked: &Arc<MockIoSide>,
    set: impl FnOnce(&mut Options),
) -> (Arc<Connection>, FrameWriter, Stream) {
    open_with(asked, None, set)
}

/// Returns a connection with a session that has this stage, the writer of its queue and the peer's
/// end of its stream.
pub(crate) fn open_with(
    asked: &Arc<MockIoSide>,
    stage: Option<SharedStage>,
    set: impl FnOnce(&mut Options),
) -> (Arc<Connection>, FrameWriter, Stream) {
    let (pipe, peer) = open_pipe(asked, stage, set);
    let NewPipe { connection, outgoing: Ok(writer), .. } = pipe else { panic!("no queue") };
    (connection, writer, peer)
}

/// Returns the owner's parts of a connection with a session that has this stage, and the peer's end
/// of its stream.
pub(crate) fn open_pipe(
    asked: &Arc<MockIoSide>,
    stage: Option<SharedStage>,
    set: impl FnOnce(&mut Options),
) -> (NewPipe, Stream) {
    let pipe = unopened_pipe(asked, set);
    let peer = begin_session(&pipe.connection, stage);
    (pipe, peer)
}

/// Returns the owner's parts of a connection without a session.
pub(crate) fn unopened_pipe(asked: &Arc<MockIoSide>, set: impl FnOnce(&mut Options)) -> NewPipe {
    let kind = ConnectionKind {
        socket_type: SocketType::Pair,
        takes_subscriptions: false,
        takes_replies: false,
        raw: false,
        forgets_on_reconnect: false,
        receives: true,
    };
    let inbox: Arc<SocketInbox> = Arc::new(SocketInbox::new(Waker::new()));
    let mut options = Options::new(SocketType::Pair, &ContextDefaults::default());
    set(&mut options);
    Connection::new(kind, Arc::new(options), inbox, asked.clone()).1
}

/// Begins the connection's first session. Returns the peer's end of the stream.
pub(crate) fn begin_session(connection: &Arc<Connection>, stage: Option<SharedStage>) -> Stream {
    let (stream, peer) = Stream::pair().unwrap();
    let (stream, registration) = (Arc::new(stream), Token(0));
    let session = Session { stream, registration, stage, inbound: Vec::new(), leftover: Vec::new() };
    connection.open(0, session, Some(News::Terminated));
    peer
}
