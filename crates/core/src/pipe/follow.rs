//! A pipe as one of many receivers of the same messages, for `Broadcast` and `pattern::fan_out`.

use super::{Link, Outgoing, Store};
use crate::conn::Connection;
use crate::conn::chore::Hint;
use crate::conn::inproc::Doorbell;
use crate::queue::{Log, Progress};
use crate::sync::Arc;

impl Outgoing {
    /// Returns the number of messages of the log that wait for the peer, if the pipe follows a log.
    pub(super) fn pending_in_log(&self) -> u64 {
        self.follows.as_ref().map_or(0, |progress| progress.pending_messages())
    }

    /// Stops waking an inproc peer with each message. `ReceiverWakeups` wakes the peer from now on.
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

    /// Returns true if this pipe can follow a log, because it is a connection with a queue.
    pub(super) fn may_follow(&self, link: &Link) -> bool {
        matches!((link, &self.store), (Link::Wire(_), Store::Queue(_)))
    }

    /// Makes the connection read `log` from now on, if its own queue is empty. `hint` reports that
    /// the I/O thread has written the rest of the log.
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
        // Subtract first, so that a concurrent reader undercounts for a moment and never
        // overcounts.
        writer.subtract_bypass(progress.published());
        connection.set_followed(Some(progress.clone()));
        self.follows = Some(progress.clone());
        Some((connection, progress))
    }

    /// Detaches the connection from the log. Its unsent messages move to its own queue.
    pub(super) fn unfollow(&mut self, link: &Link) {
        if let (Some(progress), Link::Wire(connection), Store::Queue(writer)) =
            (self.follows.take(), link, &mut self.store)
        {
            connection.set_followed(None);
            let before = writer.written();
            connection.unfollow(writer);
            // The queue counts the moved messages from now on.
            let after = writer.written();
            writer.subtract_bypass((after.0 - before.0, after.1 - before.1));
            writer.add_bypass(progress.published());
            // Possibly no other thread covers the messages, so the residual watch must.
            connection.watch_residual();
        }
    }
}
