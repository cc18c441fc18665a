//! When what a pipe has queued is written: by the flush rule and the crowd rule after each message,
//! at the high-water mark, and before the owner sleeps.

use super::pace::PACE_TIME;
use super::{Incoming, Link, Outgoing, Part, Pipe, cork};
use crate::conn::{Connection, Flushed};
use crate::error::NoMemory;
use crate::sync::{Arc, lock};
use crate::timing::crowd;
use crate::timing::flush::{Decision, FULL_BYTES, Rest, is_full_write};
use tautline_io::clock;

/// This number of messages is left to a sweep that is about to come by, without a look at anything
/// else, if together they are less than a full write.
const SWEPT_UNSEEN: u32 = 16;

/// Writes what is queued, if no other thread is writing; a lean queue that is empty then gives up
/// its memory.
fn write_out(connection: &Arc<Connection>, outgoing: &mut Outgoing, lean: bool) -> Option<Flushed> {
    match outgoing {
        Outgoing::Queue(writer) if lean => connection.flush_and_rest(writer),
        _ => connection.try_flush(),
    }
}

impl Pipe {
    /// Before the owner sleeps: writes what the flush rule has left queued. True if it must be
    /// asked before the next sleep too: what the pipe has to send is in a log, of which it hears
    /// nothing, or it does not wake its peer itself.
    pub(super) fn flush(&mut self) -> bool {
        self.flush.end_long_batch();
        self.left = self.follows.is_some() || self.quiet;
        let Link::Wire(connection) = &self.link else {
            self.ring();
            return self.left;
        };
        let pending = match &self.outgoing {
            _ if self.follows.as_ref().is_some_and(|progress| progress.behind() > 0) => true,
            Outgoing::Queue(writer) => writer.unflushed_bytes() > 0,
            Outgoing::Slot(slot) => slot.is_full(),
        };
        // Or the residual timer has written it, and the memory is still there.
        let unrested =
            self.lean && matches!(&self.outgoing, Outgoing::Queue(writer) if writer.holds_memory());
        if (pending || unrested) && !connection.swept.is_set() {
            let start = clock::ticks();
            let flushed = write_out(connection, &mut self.outgoing, self.lean);
            if flushed == Some(Flushed::Blocked) {
                connection.want_write();
            }
            if pending {
                self.flush.flushed(start, clock::ticks(), flushed == Some(Flushed::Drained));
            }
        }
        self.left
    }

    /// A corked batch has ended: as `flush`, but batches that make a stream are written by the
    /// flush rule.
    pub(super) fn end_batch(&mut self) -> bool {
        if crowd::is_on() && self.leave_to_sweep() {
            self.left = false;
            return false;
        }
        if let (Link::Wire(connection), Outgoing::Queue(_), None) =
            (&self.link, &self.outgoing, &self.follows)
        {
            let start = clock::ticks();
            if let Decision::Later(rest) = self.flush.end_batch(start) {
                if connection.leave_to_residual(start, rest) {
                    self.flush.resume(clock::ticks());
                }
                return true;
            }
        }
        self.flush()
    }

    /// At the high-water mark: pumps, or looks whether the mark has moved. True if there is room
    /// now.
    #[cold]
    pub(super) fn make_room(&mut self) -> bool {
        let Outgoing::Queue(writer) = &mut self.outgoing else { return true };
        match &self.link {
            Link::Wire(connection) => {
                let start = clock::ticks();
                if let Some(flushed) = connection.try_flush() {
                    let end = clock::ticks();
                    connection.note_work(end);
                    self.flush.flushed(start, end, flushed == Flushed::Drained);
                }
                if !writer.has_room() {
                    connection.want_room();
                }
            }
            Link::Inproc(end) => {
                if end.is_closed() {
                    return false;
                }
                writer.set_limit(end.send_limit(self.send_hwm));
            }
        }
        writer.has_room()
    }

    /// As `make_room`, which has found none: looks again when the thread that was writing has given
    /// credit.
    #[cold]
    pub(crate) fn has_room_after_others(&mut self) -> bool {
        let (Link::Wire(connection), Outgoing::Queue(writer)) = (&self.link, &mut self.outgoing) else {
            return false;
        };
        if self.ended {
            return false;
        }
        let others = connection.await_others();
        writer.has_room() || others && self.make_room()
    }

    /// A message was published.
    #[inline(always)]
    pub(super) fn published(&mut self, len: usize, patient: bool) {
        match &self.link {
            Link::Wire(connection) => {
                if self.flush.count() || connection.take_hint() {
                    self.flush_by_rule(len, patient);
                }
                self.answering = false;
            }
            Link::Inproc(end) => {
                if !self.quiet {
                    end.notify();
                }
                if patient {
                    self.pace_inproc(len);
                }
            }
        }
    }

    #[inline(never)]
    fn flush_by_rule(&mut self, len: usize, patient: bool) {
        // What made this one ask, a hint most likely, is used up: the next one must ask, too,
        // unless something is decided for both.
        self.flush.ask_after(1);
        if (len as u64) < FULL_BYTES / u64::from(SWEPT_UNSEEN) && self.is_left_to_sweep() {
            return;
        }
        if self.is_corked() {
            if !self.has_full_write(len) {
                self.leave();
                return;
            }
            self.flush.begin_long_batch();
        }
        let reply = self.is_reply();
        if crowd::is_on() && !reply && self.leave_to_sweep() {
            return;
        }
        let (Link::Wire(connection), Outgoing::Queue(writer)) = (&self.link, &self.outgoing) else { return };
        let start = clock::ticks();
        match self.flush.decide(start, writer.unflushed_bytes(), len, reply) {
            Decision::Flush => {
                let flushed = write_out(connection, &mut self.outgoing, self.lean);
                if !reply {
                    crowd::flushed(Arc::as_ptr(connection).addr(), start, clock::ticks());
                }
                self.flushed(start, flushed, patient);
            }
            Decision::Later(rest) => {
                if connection.leave_to_residual(start, rest) {
                    self.flush.resume(clock::ticks());
                }
                self.leave();
            }
        }
    }

    /// Something stays queued: the owner flushes it before it sleeps.
    pub(super) fn leave(&mut self) {
        if let (Some((id, list)), false) = (&self.left_in, self.left) {
            lock(&list.unflushed).push(*id);
            self.left = true;
        }
    }

    fn is_corked(&self) -> bool {
        cork::holds(self.left_in.as_ref().map(|(_, left)| left))
    }

    /// Whether what is queued is enough for a write of its own, the last message being `len` bytes
    /// long.
    fn has_full_write(&self, len: usize) -> bool {
        matches!(&self.outgoing, Outgoing::Queue(writer) if is_full_write(writer.unflushed_bytes(), len))
    }

    /// Whether the peer waits for the message just sent: it had sent something, and nothing more
    /// than that.
    fn is_reply(&self) -> bool {
        self.answering && matches!(&self.incoming, Incoming::Queue(reader) if !reader.has_more())
    }

    /// Whether the sweep that will come by takes what was published, too. How much that is, only
    /// the other way finds out, every few messages.
    #[inline]
    fn is_left_to_sweep(&self) -> bool {
        !self.answering
            && self.flush.count_so_far() < SWEPT_UNSEEN
            && (self.unrested || !self.lean)
            && matches!(&self.link, Link::Wire(connection) if connection.swept.is_set())
    }

    /// In a crowd: the sweep writes what is queued. False: it is enough for a write of its own, or
    /// the crowd is over.
    fn leave_to_sweep(&mut self) -> bool {
        let (Link::Wire(connection), Outgoing::Queue(writer)) = (&self.link, &self.outgoing) else {
            return false;
        };
        if writer.unflushed_bytes() >= FULL_BYTES {
            return false;
        }
        if !connection.swept.is_set() {
            if !crowd::goes_on(clock::ticks(), connection.sweeper_is_idle()) {
                return false;
            }
            if let Some(round) = connection.leave_to_sweep() {
                crowd::marked(round);
            }
        }
        self.flush.swept();
        if let (Some((id, list)), true, false) = (&self.left_in, self.lean, self.unrested) {
            lock(&list.unrested).push(*id);
            self.unrested = true;
        }
        true
    }

    /// The sweep has come by: gives up the queue's memory, unless more has come since, or the
    /// kernel is full.
    pub(super) fn rest(&mut self) {
        self.unrested = false;
        if let (Link::Wire(connection), Outgoing::Queue(writer)) = (&self.link, &mut self.outgoing)
            && writer.holds_memory()
            && writer.unflushed_bytes() == 0
        {
            connection.flush_and_rest(writer);
        }
    }

    /// Whether the kernel has all that was sent.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_written(&self) -> bool {
        matches!(&self.link, Link::Wire(connection) if !connection.has_pending())
    }

    /// Whether the I/O thread looks after what stays queued.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_watched(&self) -> bool {
        matches!(&self.link, Link::Wire(connection) if connection.watched.is_set())
    }

    /// A flush of the owner's has come to this.
    fn flushed(&mut self, start: u64, flushed: Option<Flushed>, patient: bool) {
        let Link::Wire(connection) = &self.link else { return };
        match flushed {
            Some(flushed) => {
                let end = clock::ticks();
                connection.note_work(end);
                self.flush.flushed(start, end, flushed == Flushed::Drained);
            }
            None => self.flush.contended(),
        }
        match flushed {
            Some(Flushed::Drained) => self.paced_out = None,
            // The session that begins will write all that is queued.
            Some(Flushed::NoLink) => {}
            // The I/O thread tries again, and arms write interest if the kernel is full then: a
            // sender that goes on does it itself. The thread that is writing, the I/O thread most
            // likely, may not have seen the last message: it is not woken for that in a stream.
            _ => {
                connection.leave_to_residual(start, Rest::Told);
                self.leave();
            }
        }
        if flushed == Some(Flushed::Blocked) && patient {
            self.pace();
        }
    }

    /// Sends a large message from the caller's own buffer, without a copy if the kernel takes it.
    #[cold]
    pub(super) fn send_through(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        let (Link::Wire(connection), Outgoing::Queue(writer)) = (&self.link, &mut self.outgoing) else {
            return Ok(());
        };
        let body = part.bytes();
        let start = clock::ticks();
        self.flush.count();
        let patient = part.patient && self.paced_out.is_none_or(|writes| writes != connection.writes());
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
            writer.count_beside();
            let uncounted = &mut self.aside.get_or_insert_default().uncounted;
            uncounted.messages_out += 1;
            uncounted.bytes_out += body.len() as u64;
        }
        if patient && flushed == Some(Flushed::Blocked) {
            self.paced_out = Some(connection.writes());
        }
        match flushed {
            Some(flushed) => self.flushed(start, Some(flushed), part.patient),
            None => self.flush_by_rule(body.len(), part.patient),
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
