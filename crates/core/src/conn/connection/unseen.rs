//! Events that the owner has not seen yet, because it does not call the socket. Peers may connect
//! and leave any number of times before the owner processes its news. So we keep only the state
//! that the owner needs: the last peer of a connection that reconnects, and the messages of a peer
//! that has connected and left.

use super::Connection;
use crate::conn::{NewPipe, News, PeerInfo};
use tautline_proto::frame;
use tautline_queue::sync::atomic::AtomicBool;
use tautline_queue::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tautline_queue::sync::{Arc, Mutex, lock};

/// Events that the owner has not seen yet.
#[derive(Default)]
pub(crate) struct UnseenEvents {
    /// The handshakes since the owner last looked. `Some` while a `News::Ready` is on its way.
    meeting: Mutex<Option<Box<FinishedHandshakes>>>,
    /// True after the connection has ended permanently.
    finished: AtomicBool,
    /// True if the owner will never learn of the connection.
    // Relaxed: own: under the lock of the inbox only.
    forgotten: AtomicBool,
}

/// The handshakes of a connection made by `connect`, since the owner last looked.
pub(crate) struct FinishedHandshakes {
    /// The last peer.
    pub(crate) peer: Box<PeerInfo>,
    /// True if these handshakes include the connection's first one.
    pub(crate) first: bool,
    /// Number of the other handshakes.
    pub(crate) reconnects: u64,
}

impl UnseenEvents {
    /// Driver: notes that the peer of a connection made by `connect` has finished a handshake.
    /// Returns true if the caller must send `News::Ready`. False if it is already on its way.
    pub(crate) fn note_handshake(&self, peer: Box<PeerInfo>, reconnected: bool) -> bool {
        let mut meeting = lock(&self.meeting);
        if let Some(meeting) = &mut *meeting {
            meeting.peer = peer;
            meeting.reconnects += 1;
            return false;
        }
        *meeting = Some(Box::new(FinishedHandshakes {
            peer,
            first: !reconnected,
            reconnects: u64::from(reconnected),
        }));
        true
    }

    /// Owner: takes the handshakes after `News::Ready` has come.
    pub(crate) fn take_handshakes(&self) -> Option<Box<FinishedHandshakes>> {
        lock(&self.meeting).take()
    }

    /// True if the owner will never learn of the connection, so that news of its end is useless.
    pub(crate) fn are_forgotten(&self) -> bool {
        self.forgotten.load(Relaxed)
    }
}

impl Connection {
    /// Driver: notes that the connection has ended permanently. Notifies the owner, unless the
    /// owner has not seen the peer and the peer left no messages.
    pub(crate) fn finish(self: &Arc<Self>) {
        // Release pairs with the Acquire in `NewPipe::is_obsolete`, which then sees all messages
        // that have arrived.
        self.unseen.finished.store(true, Release);
        self.inbox.push(News::Ended(self.clone()));
        if self.token().is_none() {
            // Discards the news of its arrival and of its end.
            self.inbox.discard(2, News::is_obsolete);
        }
    }
}

impl NewPipe {
    /// Called under the lock of the inbox that holds the pipe. Returns true if the pipe is useless:
    /// the peer is gone and left no message to receive. Subscriptions of the peer are dropped.
    pub(crate) fn is_obsolete(&mut self) -> bool {
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
