//! Operations of a pipe that is one of many receivers of the same messages, for `Broadcast` and
//! `pattern::fan_out`.

use super::{Link, Outgoing, Store};
use crate::conn::Connection;
use crate::conn::inproc::Doorbell;
use tautline_queue::handoff::chore::Hint;
use tautline_queue::sync::Arc;
use tautline_queue::{Log, Progress};

impl Outgoing {
    /// Returns the number of messages in the log that wait for the peer; 0 if the pipe follows no
    /// log.
    pub(super) fn pending_in_log(&self) -> u64 {
        self.follows.as_ref().map_or(0, |progress| progress.pending_messages())
    }

    /// Stops waking an inproc peer with each message: `ReceiverWakeups` wakes it from now on.
    /// Returns the handle to wake it with, unless this was done before.
    pub(super) fn defer_wakeups(&mut self) -> Option<Doorbell> {
        let Link::Inproc(end) = &self.link else { return None };
        end.use_ring();
        let bell = (!std::mem::replace(&mut self.quiet, true)).then(|| end.doorbell());
        self.deferred.defer_flush();
        bell
    }

    /// Wakes an inproc peer that `send` has not woken.
    pub(super) fn ring(&self) {
        if let (Link::Inproc(end), true) = (&self.link, self.quiet) {
            end.ring();
        }
    }

    /// Makes the connection read `log` from now on. Returns `None` if bytes are queued for the
    /// connection or it cannot follow. The I/O thread sets `hint` after it has written the messages
    /// left in the log.
    pub(super) fn follow(
        &mut self,
        log: &mut Log,
        hint: &Arc<Hint>,
    ) -> Option<(Arc<Connection>, Arc<Progress>)> {
        let (Link::Wire(connection), Store::Queue(writer)) = (&self.link, &mut self.store) else {
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
        // Subtract first, so that a concurrent observer undercounts for a moment and never
        // overcounts.
        writer.subtract_bypass(progress.published());
        connection.set_followed(Some(progress.clone()));
        self.follows = Some(progress.clone());
        Some((connection, progress))
    }

    /// Stops reading the log. The unsent messages of the log move to the connection's own queue.
    pub(super) fn unfollow(&mut self) {
        if let (Some(progress), Link::Wire(connection), Store::Queue(writer)) =
            (self.follows.take(), &self.link, &mut self.store)
        {
            connection.set_followed(None);
            let before = writer.written();
            connection.unfollow(writer);
            // The queue has counted the moved messages, so subtract them here.
            let after = writer.written();
            writer.subtract_bypass((after.0 - before.0, after.1 - before.1));
            writer.add_bypass(progress.published());
            // The readers of the log no longer write this connection, so the residual watch must.
            connection.watch_residual();
        }
    }
}
