//! The outgoing half of a pipe: sent messages go into its queue, and from there to the peer by the
//! flush rule.

use super::flush::DeferredWork;
use super::pace::Pacer;
use super::room::HighWaterMark;
use super::traffic::MessageCounts;
use super::{Body, Part, Store};
use crate::conn::Connection;
use crate::conn::inproc::InprocEnd;
use crate::error::NoMemory;
use std::mem::offset_of;
use tautline_queue::handoff::chore::Hint;
use tautline_queue::message::Message;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, lock};
use tautline_queue::{FrameWriter, Log, Progress};
use tautline_timing::flush::FlushRule;

/// The object behind both queues of a pipe.
pub(super) enum Link {
    /// A connection of a byte-stream transport.
    Wire(Arc<Connection>),
    /// Another socket of the same context.
    Inproc(InprocEnd),
}

/// Sending, and the link. The fields that each message touches come first (`HOT_FIELDS_END`).
#[repr(C)]
pub(crate) struct Outgoing {
    /// The object behind both queues of the pipe.
    pub(super) link: Link,
    pub(super) store: Store<FrameWriter>,
    /// True after the peer is gone: sending is impossible, but received messages can still be read.
    pub(super) ended: bool,
    /// True if some parts of a message were appended, but not the last one.
    pub(super) in_message: bool,
    /// True if a message was received since the last message was sent.
    pub(super) received_since_send: bool,
    /// True if the inproc peer is not woken with each message (see `ReceiverWakeups`).
    pub(super) quiet: bool,
    /// True for one pipe of many: the queue holds no memory while it is empty.
    pub(super) lean: bool,
    pub(super) deferred: DeferredWork,
    pub(super) flush: FlushRule,
    /// Progress of the connection in the log that it reads (see `Broadcast`). If it is set,
    /// messages go to the log.
    pub(super) follows: Option<Arc<Progress>>,
    pub(super) high_water_mark: HighWaterMark,
    pub(super) pacer: Pacer,
    /// Counts of the slot (ZMQ_CONFLATE).
    pub(super) conflated: Option<Box<MessageCounts>>,
}

impl Outgoing {
    /// End of the fields that each message touches, except for the beginning of the flush rule.
    pub(super) const HOT_FIELDS_END: usize = offset_of!(Outgoing, flush);

    /// Replaces the waiting message by this one (ZMQ_CONFLATE). Multipart messages are not
    /// supported, as the documentation of the option says.
    pub(super) fn put_conflated(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        let Store::Slot(slot) = &self.store else { return Ok(()) };
        let message = match &mut part.body {
            Body::Borrowed(bytes) => Message::try_from_slice(bytes).ok_or(NoMemory)?,
            Body::Owned(message) => std::mem::take(*message),
        };
        self.conflated.get_or_insert_default().add((1, message.len() as u64));
        slot.put_part(0, message, part.more);
        match &self.link {
            Link::Wire(connection) => {
                connection.pump_writable();
            }
            Link::Inproc(_) if self.quiet => self.ring(),
            Link::Inproc(end) => end.notify(),
        }
        Ok(())
    }

    /// Drops a message, with its appended parts, because there is no memory or no room for it.
    #[cold]
    pub(crate) fn drop_message(&mut self) {
        self.rollback();
        self.count_dropped();
    }

    /// Forgets the appended parts of an unfinished message.
    pub(crate) fn rollback(&mut self) {
        if let Store::Queue(writer) = &mut self.store {
            writer.rollback();
        }
        self.in_message = false;
    }

    /// Sets ZMQ_SNDHWM of an inproc pipe, after the peer's limit is known.
    /// A connection ignores it.
    pub(super) fn set_inproc_limit(&mut self, send_hwm: u32) {
        if let Link::Inproc(end) = &self.link {
            self.high_water_mark.send_hwm = send_hwm;
            if let Store::Queue(writer) = &mut self.store {
                writer.set_limit(end.send_limit(send_hwm));
            }
        }
    }

    /// Returns the current ZMQ_SNDHWM, 0 for unlimited, if there is a queue.
    pub(super) fn queue_limit(&self) -> Option<u32> {
        match &self.store {
            Store::Queue(writer) => Some(writer.limit()),
            Store::Slot(_) => None,
        }
    }
}

/// A pipe that is one of many receivers of the same messages, for `Broadcast` and
/// `pattern::fan_out`.
impl Outgoing {
    /// Returns the number of messages in the log that wait for the peer; 0 if the pipe follows no
    /// log.
    pub(super) fn pending_in_log(&self) -> u64 {
        self.follows.as_ref().map_or(0, |progress| progress.pending_messages())
    }

    /// True if the peer takes loans.
    pub(crate) fn lends(&self) -> bool {
        matches!(&self.link, Link::Wire(connection) if connection.lends.load(Relaxed))
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
        if !lock(&connection.pump).follow(reader) {
            return None;
        }
        let connection = connection.clone();
        self.deferred.defer_flush();
        // Subtract first, so that a concurrent observer undercounts for a moment and never
        // overcounts.
        writer.subtract_bypass(progress.published());
        *lock(&connection.followed) = Some((hint.clone(), progress.clone()));
        self.follows = Some(progress.clone());
        Some((connection, progress))
    }

    /// Stops reading the log. The unsent messages of the log move to the connection's own queue.
    pub(super) fn unfollow(&mut self) {
        if let (Some(progress), Link::Wire(connection), Store::Queue(writer)) =
            (self.follows.take(), &self.link, &mut self.store)
        {
            *lock(&connection.followed) = None;
            let before = writer.written();
            connection.unfollow(writer);
            // The queue has counted the moved messages, so subtract them here.
            let after = writer.written();
            writer.subtract_bypass((after.0 - before.0, after.1 - before.1));
            writer.add_bypass(progress.published());
            // The readers of the log no longer write this connection, so the residual watch must.
            connection.watch_residual(true);
        }
    }
}
