//! A pipe as one of many receivers of the same messages: what `Broadcast` and `pattern::fan_out`
//! need of it.

use super::{Link, Outgoing, Pipe};
use crate::conn::Connection;
use crate::conn::chore::Hint;
use crate::conn::inproc::Doorbell;
use crate::queue::{Log, Progress};
use crate::sync::Arc;

/// A peer at its high-water mark is tried once for this many messages that it misses.
const TRY_EVERY: u32 = 64;

impl Pipe {
    /// As `takes_or_drops`, for one of several receivers: a peer that takes nothing must not cost
    /// the others a system call per message. The I/O thread goes on when the kernel takes bytes
    /// again.
    #[inline]
    pub(crate) fn takes_or_misses(&mut self) -> bool {
        match &mut self.outgoing {
            Outgoing::Queue(writer) if !self.ended => {
                if writer.has_room() {
                    self.missed = 0;
                    true
                } else {
                    self.misses()
                }
            }
            _ => self.takes_or_drops(),
        }
    }

    #[inline(never)]
    fn misses(&mut self) -> bool {
        let try_now = self.missed.is_multiple_of(TRY_EVERY);
        self.missed = self.missed.wrapping_add(1);
        let room = try_now && self.make_room();
        if try_now {
            self.ring();
        }
        if let (Link::Wire(connection), true) = (&self.link, try_now && !room) {
            connection.want_write();
        }
        self.dropped += u64::from(!room);
        room
    }

    /// An inproc peer is not woken with each message from now on: `Summons` does it.
    pub(crate) fn keep_quiet(&mut self) -> Option<Doorbell> {
        let Link::Inproc(end) = &self.link else { return None };
        end.use_ring();
        let bell = (!std::mem::replace(&mut self.quiet, true)).then(|| end.doorbell());
        self.leave();
        bell
    }

    /// Wakes an inproc peer that `send` has not woken.
    pub(super) fn ring(&self) {
        if let (Link::Inproc(end), true) = (&self.link, self.quiet) {
            end.ring();
        }
    }

    /// ZMQ_SNDHWM as it is in force for this pipe; 0 for none.
    pub(super) fn send_limit(&self) -> u32 {
        match &self.outgoing {
            Outgoing::Queue(writer) => writer.limit(),
            Outgoing::Slot(_) => 0,
        }
    }

    /// Whether this pipe could ever follow a log: it is a connection with a queue.
    pub(crate) fn may_follow(&self) -> bool {
        matches!((&self.link, &self.outgoing), (Link::Wire(_), Outgoing::Queue(_)))
    }

    /// Has the connection read `log` from now on, if nothing is queued for it. `hint` tells that
    /// the I/O thread has written what was left in the log.
    pub(super) fn follow(
        &mut self,
        log: &mut Log,
        hint: &Arc<Hint>,
    ) -> Option<(Arc<Connection>, Arc<Progress>)> {
        let (Link::Wire(connection), Outgoing::Queue(writer)) = (&self.link, &self.outgoing) else {
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
        self.follows = Some(progress.clone());
        self.leave();
        let (messages, bytes) = progress.published();
        let uncounted = &mut self.aside.get_or_insert_default().uncounted;
        uncounted.messages_out = uncounted.messages_out.wrapping_sub(messages);
        uncounted.bytes_out = uncounted.bytes_out.wrapping_sub(bytes);
        Some((connection, progress))
    }

    /// The connection reads the log no more: what it has not sent goes to its own queue.
    pub(super) fn unfollow(&mut self) {
        if let (Some(progress), Link::Wire(connection), Outgoing::Queue(writer)) =
            (self.follows.take(), &self.link, &mut self.outgoing)
        {
            let before = writer.written();
            connection.unfollow(writer);
            // What was moved is counted by the queue from now on.
            let (after, published) = (writer.written(), progress.published());
            let uncounted = &mut self.aside.get_or_insert_default().uncounted;
            uncounted.messages_out =
                uncounted.messages_out.wrapping_add(published.0).wrapping_sub(after.0 - before.0);
            uncounted.bytes_out =
                uncounted.bytes_out.wrapping_add(published.1).wrapping_sub(after.1 - before.1);
            // No other thread may look after it any more.
            connection.watch_residual();
        }
    }

    /// Appends the first parts of a message, encoded; false if there is no memory for them.
    /// `can_send` was asked; the other parts follow with `send`.
    pub(crate) fn begin_encoded(&mut self, parts: &[u8]) -> bool {
        let Outgoing::Queue(writer) = &mut self.outgoing else { return true };
        self.in_message = writer.append_encoded(parts).is_ok();
        self.dropped += u64::from(!self.in_message);
        self.in_message
    }
}
