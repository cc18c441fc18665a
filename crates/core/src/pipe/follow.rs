//! A pipe as one of many receivers of the same messages: what `Broadcast` and `pattern::fan_out`
//! need of it.

use super::{Link, Outgoing, Store};
use crate::conn::Connection;
use crate::conn::chore::Hint;
use crate::conn::inproc::Doorbell;
use crate::queue::{Log, Progress};
use crate::sync::Arc;

impl Outgoing {
    /// How many messages of the log wait for the peer, if it follows one.
    pub(super) fn pending_in_log(&self) -> u64 {
        self.follows.as_ref().map_or(0, |progress| progress.pending_messages())
    }

    /// An inproc peer is not woken with each message from now on: `Summons` does it.
    pub(super) fn defer_wakeups(&mut self, link: &Link) -> Option<Doorbell> {
        let Link::Inproc(end) = link else { return None };
        end.use_ring();
        let bell = (!std::mem::replace(&mut self.quiet, true)).then(|| end.doorbell());
        self.deferred.defer_flush();
        bell
    }

    /// Wakes an inproc peer that `send` has not woken.
    pub(super) fn ring(&self, link: &Link) {
        if let (Link::Inproc(end), true) = (link, self.quiet) {
            end.ring();
        }
    }

    /// Whether this pipe could ever follow a log: it is a connection with a queue.
    pub(super) fn may_follow(&self, link: &Link) -> bool {
        matches!((link, &self.store), (Link::Wire(_), Store::Queue(_)))
    }

    /// Has the connection read `log` from now on, if nothing is queued for it. `hint` tells that
    /// the I/O thread has written what was left in the log.
    pub(super) fn follow(
        &mut self,
        link: &Link,
        log: &mut Log,
        hint: &Arc<Hint>,
    ) -> Option<(Arc<Connection>, Arc<Progress>)> {
        let (Link::Wire(connection), Store::Queue(writer)) = (link, &mut self.store) else {
            return None;
        };
        if self.ended || self.in_message || writer.unflushed_bytes() > 0 {
            return None;
        }
        let (reader, progress) = log.reader()?;
        if !connection.follow(reader, hint) {
            return None;
        }
        let connection = connection.clone();
        self.deferred.defer_flush();
        // A look from outside sees too little for a moment, and not too much.
        writer.subtract_bypass(progress.published());
        connection.set_followed(Some(progress.clone()));
        self.follows = Some(progress.clone());
        Some((connection, progress))
    }

    /// The connection reads the log no more: what it has not sent goes to its own queue.
    pub(super) fn unfollow(&mut self, link: &Link) {
        if let (Some(progress), Link::Wire(connection), Store::Queue(writer)) =
            (self.follows.take(), link, &mut self.store)
        {
            connection.set_followed(None);
            let before = writer.written();
            connection.unfollow(writer);
            // What was moved is counted by the queue from now on.
            let after = writer.written();
            writer.subtract_bypass((after.0 - before.0, after.1 - before.1));
            writer.add_bypass(progress.published());
            // No other thread may look after it any more.
            connection.watch_residual();
        }
    }
}
