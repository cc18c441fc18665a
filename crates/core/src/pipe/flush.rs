//! When what a pipe has queued is written: by the flush rule and the crowd rule after each message,
//! and before the owner sleeps. (At the high-water mark: `room`.)

use super::pace::PACE_TIME;
use super::{Body, Link, Outgoing, Part, Store};
use crate::conn::inproc::InprocEnd;
use crate::conn::{Connection, Flushed};
use crate::error::NoMemory;
use crate::queue::FrameWriter;
use crate::sync::Arc;
use crate::timing::flush::{Decision, Deferred, FULL_BYTES, FlushRule, framed, is_full_write};
use crate::timing::{HABIT, crowd};
use tautline_io::clock;

/// This number of messages is left to a sweep that is about to come by, without a look at anything
/// else, if together they are less than a full write.
const SWEPT_UNSEEN: u32 = 2 * HABIT as u32;

/// Writes what is queued, if no other thread is writing; a lean queue that is empty then gives up
/// its memory.
fn write_out(connection: &Arc<Connection>, store: &mut Store<FrameWriter>, lean: bool) -> Option<Flushed> {
    match store {
        Store::Queue(writer) if lean => connection.flush_and_release_memory(writer),
        _ => connection.try_flush(),
    }
}

/// The rule learns what a flush from `start` to `end` has come to. One that had no stream to write
/// to says nothing of what a write costs.
pub(super) fn record_flush(rule: &mut FlushRule, start: u64, end: u64, flushed: Option<Flushed>) {
    match flushed {
        Some(Flushed::NoLink) | None => rule.record_no_write(),
        Some(flushed) => rule.record_flush(start, end, flushed == Flushed::Drained),
    }
}

impl Outgoing {
    /// Before the owner sleeps: writes what the flush rule has left queued. True if it must be
    /// asked before the next sleep too: what the pipe has to send is in a log, of which it hears
    /// nothing, or it does not wake its peer itself.
    pub(super) fn flush(&mut self, link: &Link) -> bool {
        self.deferred.flush = self.follows.is_some() || self.quiet;
        let Link::Wire(connection) = link else {
            self.ring(link);
            return self.deferred.flush;
        };
        let pending = match &self.store {
            _ if self.pending_in_log() > 0 => true,
            Store::Queue(writer) => writer.unflushed_bytes() > 0,
            Store::Slot(slot) => slot.is_full(),
        };
        // Or the residual timer has written it, and the memory is still there.
        let unrested = self.lean && matches!(&self.store, Store::Queue(writer) if writer.holds_memory());
        if (pending || unrested) && !connection.sweep_mark.is_set() {
            let start = clock::ticks();
            let flushed = write_out(connection, &mut self.store, self.lean);
            match flushed {
                Some(Flushed::Blocked) => {
                    connection.want_write();
                }
                // The thread that is writing may not have seen the end of a corked batch, which
                // nothing else looks after.
                None if pending => connection.watch_residual(),
                _ => {}
            }
            if pending {
                record_flush(&mut self.flush, start, clock::ticks(), flushed);
            }
        }
        self.deferred.flush
    }

    /// A corked batch has ended: as `flush`, but batches that make a stream are written by the
    /// flush rule.
    pub(super) fn end_batch(&mut self, link: &Link) -> bool {
        if crowd::is_active() && self.leave_to_sweep(link) {
            self.deferred.flush = false;
            return false;
        }
        if let (Link::Wire(connection), Store::Queue(_), None) = (link, &self.store, &self.follows) {
            let start = clock::ticks();
            if let Decision::Later(rest) = self.flush.end_batch(start) {
                if connection.leave_to_residual(start, rest) {
                    self.flush.resume(clock::ticks());
                }
                return true;
            }
        }
        self.flush(link)
    }

    /// A message of `len` bytes was published: whether the flush rule is to be asked.
    #[inline(always)]
    pub(super) fn is_due(&mut self, connection: &Connection) -> bool {
        self.flush.count() || connection.take_hint()
    }

    /// The same for an inproc peer, which is woken if it sleeps.
    #[inline(always)]
    pub(super) fn notify_inproc(&mut self, end: &InprocEnd, len: usize, patient: bool) {
        if !self.quiet {
            end.notify();
        }
        if patient {
            self.pacer.pace_inproc(&mut self.store, len);
        }
    }

    /// Writes what is queued, or leaves it, after a message of `len` bytes; `reply`: the peer waits
    /// for it.
    #[inline(always)]
    pub(super) fn flush_by_rule(&mut self, link: &Link, len: usize, reply: bool, patient: bool) {
        // What made this one ask, a hint most likely, is used up: the next one must ask, too,
        // unless something is decided for both.
        self.flush.ask_after(1);
        if (len as u64) < FULL_BYTES / u64::from(SWEPT_UNSEEN) && self.is_left_to_sweep(link) {
            return;
        }
        if self.deferred.is_corked() && !self.has_full_write(len) {
            self.deferred.defer_flush();
            return;
        }
        if crowd::is_active() && !reply && self.leave_to_sweep(link) {
            return;
        }
        let (Link::Wire(connection), Store::Queue(writer)) = (link, &self.store) else { return };
        let start = clock::ticks();
        match self.flush.decide(start, writer.unflushed_bytes(), len, reply) {
            Decision::Flush => {
                let flushed = write_out(connection, &mut self.store, self.lean);
                if !reply {
                    crowd::record_flush(Arc::as_ptr(connection).addr(), start, clock::ticks());
                }
                self.handle_flush(link, start, flushed, patient);
            }
            Decision::Later(rest) => {
                if connection.leave_to_residual(start, rest) {
                    self.flush.resume(clock::ticks());
                }
                self.deferred.defer_flush();
            }
        }
    }

    /// Whether what is queued is enough for a write of its own, the last message being `len` bytes
    /// long.
    fn has_full_write(&self, len: usize) -> bool {
        matches!(&self.store, Store::Queue(writer) if is_full_write(writer.unflushed_bytes(), len))
    }

    /// Whether the sweep that will come by takes what was published, too. How much that is, only
    /// the other way finds out, every few messages.
    #[inline]
    fn is_left_to_sweep(&self, link: &Link) -> bool {
        !self.received_since_send
            && self.flush.count_so_far() < SWEPT_UNSEEN
            && (self.deferred.release || !self.lean)
            && matches!(link, Link::Wire(connection) if connection.sweep_mark.is_set())
    }

    /// In a crowd: the sweep writes what is queued. False: it is enough for a write of its own, or
    /// the crowd is over.
    fn leave_to_sweep(&mut self, link: &Link) -> bool {
        let (Link::Wire(connection), Store::Queue(writer)) = (link, &self.store) else {
            return false;
        };
        if writer.unflushed_bytes() >= FULL_BYTES {
            return false;
        }
        if !connection.sweep_mark.is_set() {
            if !crowd::should_continue(clock::ticks(), connection.sweeper_is_idle()) {
                return false;
            }
            if let Some(round) = connection.leave_to_sweep() {
                crowd::record_mark(round);
            }
        }
        self.flush.record_sweep();
        if self.lean {
            self.deferred.defer_release();
        }
        true
    }

    /// The sweep has come by: gives up the queue's memory, unless more has come since, or the
    /// kernel is full.
    pub(super) fn release_memory(&mut self, link: &Link) {
        self.deferred.release = false;
        if let (Link::Wire(connection), Store::Queue(writer)) = (link, &mut self.store)
            && writer.holds_memory()
            && writer.unflushed_bytes() == 0
        {
            connection.flush_and_release_memory(writer);
        }
    }

    /// A flush of the owner's has come to this.
    pub(super) fn handle_flush(&mut self, link: &Link, start: u64, flushed: Option<Flushed>, patient: bool) {
        let Link::Wire(connection) = link else { return };
        let end = clock::ticks();
        if flushed.is_some() {
            connection.note_work(end);
        }
        record_flush(&mut self.flush, start, end, flushed);
        match flushed {
            Some(Flushed::Drained) => self.pacer.record_catch_up(),
            // The session that begins will write all that is queued.
            Some(Flushed::NoLink) => {}
            // The I/O thread tries again, and arms write interest if the kernel is full then: a
            // sender that goes on does it itself. The thread that is writing, the I/O thread most
            // likely, may not have seen the last message: it is not woken for that in a stream.
            _ => {
                connection.leave_to_residual(start, Deferred::WatchNotified);
                self.deferred.defer_flush();
                if flushed.is_none() {
                    self.flush.ask_after(HABIT.into());
                }
            }
        }
        if flushed == Some(Flushed::Blocked) && patient {
            self.pacer.pace(connection, &self.store);
        }
    }

    /// Whether a whole message is written from the caller's own buffer.
    pub(super) fn writes_through(&self, link: &Link, part: &Part<'_>) -> bool {
        let (Link::Wire(connection), Store::Queue(_), Body::Borrowed(_)) = (link, &self.store, &part.body)
        else {
            return false;
        };
        !self.in_message && connection.writes_through(part.bytes().len())
    }

    /// Sends a large message from the caller's own buffer, without a copy if the kernel takes it.
    /// True: it is queued, and the flush rule is to be asked.
    #[inline(always)]
    pub(super) fn write_through(&mut self, link: &Link, part: &Part<'_>) -> Result<bool, NoMemory> {
        let (Link::Wire(connection), Store::Queue(writer)) = (link, &mut self.store) else {
            return Ok(false);
        };
        let body = part.bytes();
        let start = clock::ticks();
        self.flush.count();
        let patient = part.patient && !self.pacer.is_stuck(connection.writes());
        let mut queued = Ok(());
        let flushed = connection.write_through(0, body, patient.then_some(PACE_TIME), || {
            queued = writer.append(0, body);
            if queued.is_ok() {
                writer.publish();
            }
            queued.is_ok()
        });
        queued?;
        if flushed == Some(Flushed::Drained) {
            writer.count_bypass();
            writer.add_bypass((1, framed(body.len())));
        }
        if patient && flushed == Some(Flushed::Blocked) {
            self.pacer.set_stuck(connection.writes());
        }
        if flushed.is_some() {
            self.handle_flush(link, start, flushed, part.patient);
        }
        Ok(flushed.is_none())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
