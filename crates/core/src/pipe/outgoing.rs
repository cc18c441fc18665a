//! The outgoing half of a pipe: what is sent goes into its queue, and from there to the peer when
//! the flush rule says so.

use super::aside::Uncounted;
use super::errands::Errands;
use super::pace::Pacer;
use super::room::Mark;
use super::{Body, Link, Part, Store};
use crate::conn::inproc::InprocEnd;
use crate::error::NoMemory;
use crate::message::Message;
use crate::queue::{COPIED, FrameWriter, Progress, Slot};
use crate::sync::Arc;
use crate::timing::flush::FlushRule;
use std::mem::offset_of;
use tautline_proto::frame;

/// What only sending needs. What each message touches comes first (`END_OF_BEGINNING`).
#[repr(C)]
pub(super) struct Outgoing {
    pub(super) store: Store<FrameWriter>,
    /// The peer is gone: nothing can be sent, what was received can still be read.
    pub(super) ended: bool,
    /// Some parts of a message were appended, the last one not yet.
    pub(super) in_message: bool,
    /// Something was received since the last message was sent.
    pub(super) answering: bool,
    /// The inproc peer is not woken with each message (see `Summons`).
    pub(super) quiet: bool,
    /// One of many: the queue holds no memory while it is empty.
    pub(super) lean: bool,
    pub(super) errands: Errands,
    pub(super) flush: FlushRule,
    /// The connection reads a log, and what is to be sent goes there: this is how far it has come
    /// (see `Broadcast`).
    pub(super) follows: Option<Arc<Progress>>,
    pub(super) mark: Mark,
    pub(super) pacer: Pacer,
    /// What went through the slot (ZMQ_CONFLATE).
    pub(super) conflated: Option<Box<Uncounted>>,
}

impl Outgoing {
    /// The end of what each message touches, but for the beginning of the flush rule.
    pub(super) const END_OF_BEGINNING: usize = offset_of!(Outgoing, flush);

    /// The half of a pipe over this queue, or slot (ZMQ_CONFLATE).
    pub(super) fn new(store: Result<FrameWriter, Arc<Slot>>) -> Self {
        Outgoing {
            store: store.into(),
            ended: false,
            in_message: false,
            answering: false,
            quiet: false,
            lean: false,
            errands: Errands::default(),
            flush: FlushRule::default(),
            follows: None,
            mark: Mark::default(),
            pacer: Pacer::default(),
            conflated: None,
        }
    }

    /// Appends and publishes a message that is shorter than `SHORT`; false if there is no memory
    /// for it in one piece.
    #[inline(always)]
    pub(super) fn put_short(&mut self, bytes: &[u8]) -> bool {
        let Store::Queue(writer) = &mut self.store else { return false };
        let appended = writer.append_short(0, bytes);
        if appended {
            writer.publish();
            self.in_message = false;
        }
        appended
    }

    /// The same for one that is shorter than `COPIED`.
    #[inline(always)]
    pub(super) fn put_medium(&mut self, bytes: &[u8]) -> bool {
        let Store::Queue(writer) = &mut self.store else { return false };
        let appended = writer.append_medium(0, bytes);
        if appended {
            writer.publish();
            self.in_message = false;
        }
        appended
    }

    /// The same for one that goes by reference to an inproc peer, or is short.
    #[inline(always)]
    pub(super) fn put_owned(&mut self, message: &mut Message) -> bool {
        let Store::Queue(writer) = &mut self.store else { return false };
        let appended = writer.append_parcel(0, message)
            || message.shorter_than(COPIED).is_some_and(|bytes| writer.append_medium(0, bytes));
        if appended {
            writer.publish();
            self.in_message = false;
        }
        appended
    }

    /// Appends one part; true if it was the last one of its message, which is published then by the
    /// queue and has yet to be written.
    #[inline(always)]
    pub(super) fn put(&mut self, link: &Link, part: &mut Part<'_>) -> Result<bool, NoMemory> {
        let Store::Queue(writer) = &mut self.store else {
            return self.put_conflated(link, part).map(|()| false);
        };
        let flags = if part.more { frame::MORE } else { 0 };
        match &mut part.body {
            Body::Borrowed(bytes) => writer.append(flags, bytes)?,
            // What cannot be sent for now stays in the application's memory, which is freed when it
            // is sent: programs watch that.
            Body::Owned(message) if message.is_foreign() && link.is_unlinked() => {
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

    /// Appends and publishes a command frame, which does not count against the high-water mark;
    /// whether it goes. Without memory for it a connection ends: the next session begins with all
    /// that the peer must know.
    pub(super) fn put_command(&mut self, link: &Link, body: &[u8]) -> bool {
        if self.ended || link.inproc_end().is_some_and(InprocEnd::refuses_commands) {
            return false;
        }
        let Store::Queue(writer) = &mut self.store else { return false };
        match (writer.append(frame::COMMAND, body), link) {
            (Ok(()), _) => {
                writer.publish_uncounted();
                return true;
            }
            (Err(_), Link::Wire(connection)) => connection.lose_unsendable(),
            (Err(_), Link::Inproc(_)) => writer.count_dropped(1),
        }
        false
    }

    /// Appends the first parts of a message, encoded; false if there is no memory for them. The
    /// other parts follow with `put`.
    pub(super) fn begin_encoded(&mut self, parts: &[u8]) -> bool {
        let Store::Queue(writer) = &mut self.store else { return true };
        self.in_message = writer.append_encoded(parts).is_ok();
        writer.count_dropped(u64::from(!self.in_message));
        self.in_message
    }

    /// Forgets the appended parts of an unfinished message.
    pub(super) fn rollback(&mut self) {
        if let Store::Queue(writer) = &mut self.store {
            writer.rollback();
        }
        self.in_message = false;
    }

    /// The peer is gone.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.rollback();
    }

    /// One of many from now on.
    pub(super) fn set_lean(&mut self) {
        self.lean = true;
        if let Store::Queue(writer) = &mut self.store {
            writer.set_lean();
        }
    }

    /// ZMQ_SNDHWM of an inproc pipe, now that this much is known of the peer.
    pub(super) fn set_inproc_limit(&mut self, end: &InprocEnd, send_hwm: u32) {
        self.mark.send_hwm = send_hwm;
        if let Store::Queue(writer) = &mut self.store {
            writer.set_limit(end.send_limit(send_hwm));
        }
    }

    /// ZMQ_SNDHWM of a connection has changed.
    pub(super) fn set_wire_limit(&mut self, send_hwm: u32) {
        if let Store::Queue(writer) = &mut self.store {
            writer.set_limit_in_steps(send_hwm);
        }
    }

    /// ZMQ_SNDHWM as it is in force, 0 for none, if there is a queue.
    pub(super) fn queue_limit(&self) -> Option<u32> {
        match &self.store {
            Store::Queue(writer) => Some(writer.limit()),
            Store::Slot(_) => None,
        }
    }

    /// What lies behind the pipe's own memory, and sending touches, is brought into the cache.
    #[inline]
    pub(super) fn prefetch_queue(&self) {
        if let Store::Queue(writer) = &self.store {
            writer.prefetch();
        }
    }
}
