//! What an owner that is elsewhere has not taken note of yet. Peers may come and go meanwhile as
//! often as they like, so no more is kept for the owner than it needs: of a connection that is made
//! again and again the last peer, and of a peer that came and went its messages.

use super::Connection;
use crate::conn::{NewPipe, News, PeerInfo};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Arc, Mutex, lock};
use tautline_proto::frame;

/// What the owner has not taken note of.
#[derive(Default)]
pub(super) struct Unseen {
    /// The handshakes since the owner has looked; `News::Ready` is on its way.
    meeting: Mutex<Option<Box<Meeting>>>,
    /// The connection has ended for good.
    finished: AtomicBool,
    /// The owner will never hear of it.
    // Relaxed: own: under the lock of the inbox only.
    forgotten: AtomicBool,
}

/// The handshakes of a connection made by `connect`, since the owner has looked.
pub(crate) struct Meeting {
    /// The last peer.
    pub(crate) peer: Box<PeerInfo>,
    /// The connection's first handshake is among them.
    pub(crate) first: bool,
    /// How many others are.
    pub(crate) reconnects: u64,
}

impl Connection {
    /// Driver: the peer of a connection made by `connect` has finished a handshake. What is to be
    /// told to the owner, unless it is to be told so already.
    pub(crate) fn meet(self: &Arc<Self>, peer: Box<PeerInfo>, reconnected: bool) -> Option<News> {
        let mut meeting = lock(&self.unseen.meeting);
        if let Some(meeting) = &mut *meeting {
            meeting.peer = peer;
            meeting.reconnects += 1;
            return None;
        }
        *meeting = Some(Box::new(Meeting { peer, first: !reconnected, reconnects: u64::from(reconnected) }));
        Some(News::Ready(self.clone()))
    }

    /// Owner: `News::Ready` has come.
    pub(crate) fn take_meeting(&self) -> Option<Box<Meeting>> {
        lock(&self.unseen.meeting).take()
    }

    /// Driver: the connection has ended for good. The owner is told, unless it has seen nothing of
    /// the peer, and nothing of it is left.
    pub(crate) fn finish(self: &Arc<Self>) {
        // Release pairs with the Acquire in `is_void`, which then sees all that has come.
        self.unseen.finished.store(true, Release);
        self.inbox.push(News::Ended(self.clone()));
        if self.token().is_none() {
            // That it came and that it went.
            self.inbox.discard(2, News::is_void);
        }
    }

    /// Whether the owner will never hear of it, so that there is no use in telling it of the end.
    pub(crate) fn went_unseen(&self) -> bool {
        self.unseen.forgotten.load(Relaxed)
    }
}

impl NewPipe {
    /// Under the lock of the inbox in which it lies: whether nothing would come of it. The peer is
    /// gone and has left no message that is received. Its subscriptions are dropped.
    pub(crate) fn is_void(&mut self) -> bool {
        let connection = &self.connection;
        if !connection.unseen.finished.load(Acquire) || connection.io.announces_peers() {
            return false;
        }
        let void = !connection.kind.receives
            || match &mut self.incoming {
                Ok(reader) => loop {
                    match reader.head() {
                        None => break true,
                        Some(head) if head.flags & frame::COMMAND == 0 => break false,
                        Some(_) => drop(reader.skip()),
                    }
                },
                Err(slot) => !slot.is_full(),
            };
        if void {
            connection.unseen.forgotten.store(true, Relaxed);
        }
        void
    }
}
