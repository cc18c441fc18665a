//! The outgoing half of a pipe: sent messages go into its queue, and from there to the peer by the
//! flush rule.

use super::errands::DeferredWork;
use super::pace::Pacer;
use super::room::HighWaterMark;
use super::traffic::MessageCounts;
use super::{Body, Link, Part, Store};
use crate::conn::inproc::InprocEnd;
use crate::error::NoMemory;
use std::mem::offset_of;
use tautline_proto::frame;
use tautline_queue::sync::Arc;
use tautline_queue::{FrameWriter, LatestMessage, Progress};
use tautline_timing::flush::FlushRule;

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

    /// Returns the half of a pipe over this queue, or slot (ZMQ_CONFLATE).
    pub(super) fn new(link: Link, store: Result<FrameWriter, Arc<LatestMessage>>) -> Self {
        Outgoing {
            link,
            store: store.into(),
            ended: false,
            in_message: false,
            received_since_send: false,
            quiet: false,
            lean: false,
            deferred: DeferredWork::default(),
            flush: FlushRule::default(),
            follows: None,
            high_water_mark: HighWaterMark::default(),
            pacer: Pacer::default(),
            conflated: None,
        }
    }

    /// Appends one part. Returns true if it was the last part of its message. The message is then
    /// published in the queue and must still be written.
    #[inline(always)]
    pub(super) fn put(&mut self, part: &mut Part<'_>) -> Result<bool, NoMemory> {
        let Store::Queue(writer) = &mut self.store else {
            return self.put_conflated(part).map(|()| false);
        };
        let flags = if part.more { frame::MORE } else { 0 };
        match &mut part.body {
            Body::Borrowed(bytes) => writer.append(flags, bytes)?,
            // A message that cannot be sent now stays in the application's memory, which is freed
            // when it is sent: programs rely on that.
            Body::Owned(message) if message.is_foreign() && self.link.is_unlinked() => {
                writer.append_kept(flags, message)?;
            }
            Body::Owned(message) => writer.append_message(flags, message)?,
        }
        self.in_message = part.more;
        if !part.more {
            writer.publish();
        }
        Ok(!part.more)
    }

    /// Appends and publishes a command frame, which does not count against the high-water mark.
    /// Returns true if it is sent. If there is no memory for it, the connection ends: the next
    /// session begins with all the state that the peer must know.
    pub(super) fn put_command(&mut self, body: &[u8]) -> bool {
        if self.ended || self.link.inproc_end().is_some_and(InprocEnd::refuses_commands) {
            return false;
        }
        let Store::Queue(writer) = &mut self.store else { return false };
        match (writer.append(frame::COMMAND, body), &self.link) {
            (Ok(()), _) => {
                writer.publish_uncounted();
                return true;
            }
            (Err(_), Link::Wire(connection)) => connection.lose_unsendable(),
            (Err(_), Link::Inproc(_)) => writer.count_dropped(1),
        }
        false
    }

    /// Appends the first parts of a message, encoded. Returns false if there is no memory for them.
    /// The other parts follow with `put`.
    pub(super) fn begin_encoded(&mut self, parts: &[u8]) -> bool {
        let Store::Queue(writer) = &mut self.store else { return true };
        self.in_message = writer.append_encoded(parts).is_ok();
        writer.count_dropped(u64::from(!self.in_message));
        self.in_message
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

    /// Notes that the peer is gone.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.rollback();
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
