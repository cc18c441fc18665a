//! Decides when the queued bytes of a pipe are written, and writes them: after a message
//! ([`Pipe::flush_by_rule`]) and before the owner sleeps. (`room` writes at the high-water mark.)
//!
//! *Deferred work* is work of a pipe that its owner does before it sleeps. The owner keeps lists of
//! the pipes with such work, so that it does not check each of its pipes.
//!
//! A cork defers the writes of one socket: they are done when the cork is removed, or when there is
//! much to write. Each thread stores which socket it has corked. So a message that is sent without
//! a cork pays no cost: the stored value is read only when the flush rule is asked.

use super::pace::PACE_TIME;
use super::{Body, Link, Outgoing, Part, Pipe, PipeId, PipesShared, Store};
use crate::conn::{Connection, Flushed, Handover, outbox};
use crate::error::NoMemory;
use crate::idle::thread_account;
use std::cell::Cell;
use std::marker::PhantomData;
use tautline_io::clock;
use tautline_io::lending::may_lend;
use tautline_proto::frame;
use tautline_queue::FrameWriter;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, lock};
use tautline_timing::flush::{Decision, Deferred, FULL_BYTES, FlushRule, framed, is_full_write};
use tautline_timing::{HABIT, ThreadAccount};

/// If the sweep is going to write a connection anyway, this number of messages is left to it
/// without further checks, as long as they are less than a full write together.
const SWEPT_UNSEEN: u32 = 2 * HABIT as u32;

/// Writes the queued bytes, if no other thread is writing. If a lean queue is empty afterwards,
/// releases its memory.
fn write_out(connection: &Arc<Connection>, store: &mut Store<FrameWriter>, lean: bool) -> Option<Flushed> {
    match store {
        Store::Queue(writer) if lean => connection.flush_some(u64::MAX, Some(writer)),
        _ => connection.try_flush(),
    }
}

/// Reports the result of a flush from `start` to `end` to the flush rule. A flush without a stream
/// is not measured, because it wrote no bytes.
pub(super) fn record_flush(rule: &mut FlushRule, start: u64, end: u64, flushed: Option<Flushed>) {
    match flushed {
        Some(Flushed::NoLink) | None => rule.record_no_write(),
        Some(flushed) => {
            thread_account(|thread| {
                rule.record_flush(thread, start, end, matches!(flushed, Flushed::Drained))
            });
        }
    }
}

impl Pipe {
    /// Called after a message of `len` bytes was published: writes the queued bytes, or leaves them
    /// to another thread or to a later moment. The questions are in the order of their cost.
    #[inline(never)]
    pub(super) fn flush_by_rule(&mut self, len: usize, patient: bool) {
        // The peer waits for this message if it has sent messages and all of them are read.
        let reply = self.outgoing.received_since_send && !self.incoming.has_more();
        let out = &mut self.outgoing;
        // The hint that caused this call has been consumed. The next message must ask again, unless
        // the code below decides for both.
        out.flush.ask_after(1);
        if (len as u64) < FULL_BYTES / u64::from(SWEPT_UNSEEN) && out.is_left_to_sweep() {
            return;
        }
        if out.deferred.is_corked()
            && !matches!(&out.store, Store::Queue(writer) if is_full_write(writer.unflushed_bytes(), len))
        {
            out.deferred.defer_flush();
            return;
        }
        if thread_account(ThreadAccount::sends_to_crowd) && !reply && out.leave_to_sweep() {
            return;
        }
        let (Link::Wire(connection), Store::Queue(writer)) = (&out.link, &out.store) else { return };
        let start = clock::ticks();
        let held = !reply
            && outbox::is_wait_expected()
            && !is_full_write(writer.unflushed_bytes(), len)
            && outbox::may_hold(connection, start);
        let decision = match held {
            true => Decision::Later(Deferred::UntilWait),
            false => {
                thread_account(|thread| out.flush.decide(thread, start, writer.unflushed_bytes(), len, reply))
            }
        };
        match decision {
            Decision::Flush => {
                let flushed = write_out(connection, &mut out.store, out.lean);
                if !reply {
                    let end = clock::ticks();
                    thread_account(|thread| thread.record_flush(Arc::as_ptr(connection).addr(), start, end));
                }
                out.handle_flush(start, flushed, patient);
            }
            Decision::Later(rest) => {
                if connection.leave_to_residual(start, rest) {
                    thread_account(|thread| out.flush.resume(thread, clock::ticks()));
                }
                out.deferred.defer_flush();
            }
        }
    }

    /// Sends a whole large message directly from the caller's buffer, if that is better. Copies
    /// only the bytes that the kernel does not take. If the peer takes loans, a part that must be
    /// queued is copied to memory that the peer can read. Returns false if the part must be queued
    /// otherwise.
    #[cold]
    pub(super) fn try_send_large(&mut self, part: &Part<'_>) -> Result<bool, NoMemory> {
        let out = &mut self.outgoing;
        let (Link::Wire(connection), Store::Queue(writer), Body::Borrowed(body)) =
            (&out.link, &mut out.store, &part.body)
        else {
            return Ok(false);
        };
        let lends = may_lend(body.len()) && connection.lends.load(Relaxed);
        if part.more || out.in_message || !connection.writes_through(body.len()) {
            let flags = if part.more { frame::MORE } else { 0 };
            if !lends || !writer.append_lendable(flags, body)? {
                return Ok(false);
            }
            if part.more {
                out.in_message = true;
            } else {
                writer.publish();
                self.handle_publication(body.len(), part.patient);
            }
            return Ok(true);
        }
        let start = clock::ticks();
        out.flush.count();
        let patient = part.patient && !out.pacer.is_stuck(lock(&connection.pump).taken.writes);
        let mut queued = Ok(());
        let flushed = connection.write_through(0, body, patient.then_some(PACE_TIME), || {
            queued = match lends.then(|| writer.append_lendable(0, body)) {
                None | Some(Ok(false)) => writer.append(0, body),
                Some(appended) => appended.map(drop),
            };
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
            out.pacer.stuck_at = Some(lock(&connection.pump).taken.writes);
        }
        match flushed {
            Some(_) => out.handle_flush(start, flushed, part.patient),
            // The message is only queued.
            None => self.flush_by_rule(body.len(), part.patient),
        }
        Ok(true)
    }
}

impl Outgoing {
    /// Called before the owner sleeps: writes the bytes that the flush rule has left queued.
    /// Returns true if it must also be called before the next sleep. This is so in two cases: the
    /// messages are in a log, which does not report new messages to the pipe, or the pipe does not
    /// wake its inproc peer with each message.
    pub(super) fn flush(&mut self) -> bool {
        self.deferred.flush = self.follows.is_some() || self.quiet;
        let Link::Wire(connection) = &self.link else {
            self.ring();
            return self.deferred.flush;
        };
        let pending = match &self.store {
            _ if self.pending_in_log() > 0 => true,
            Store::Queue(writer) => writer.unflushed_bytes() > 0,
            Store::Slot(slot) => slot.is_full(),
        };
        // True if another thread has written the bytes, but the empty queue still holds memory.
        let unrested = self.lean && matches!(&self.store, Store::Queue(writer) if writer.holds_memory());
        if (pending || unrested) && !connection.sweep_mark.is_set() {
            let start = clock::ticks();
            let flushed = write_out(connection, &mut self.store, self.lean);
            match flushed {
                Some(Flushed::Blocked) => {
                    connection.want_write();
                }
                // Another thread is writing and may not have seen the end of a corked batch.
                // Nothing else would write those bytes, so the residual watch must.
                None if pending => {
                    connection.watch_residual(true);
                }
                _ => {}
            }
            if pending {
                record_flush(&mut self.flush, start, clock::ticks(), flushed);
            }
        }
        self.deferred.flush
    }

    /// Called at the end of a corked batch: flushes, unless the batches follow each other so
    /// quickly that they are a stream. The flush rule decides when a stream is written. The result
    /// is that of `flush`.
    pub(super) fn end_batch(&mut self) -> bool {
        if thread_account(ThreadAccount::sends_to_crowd) && self.leave_to_sweep() {
            self.deferred.flush = false;
            return false;
        }
        if let (Link::Wire(connection), Store::Queue(_), None) = (&self.link, &self.store, &self.follows) {
            let start = clock::ticks();
            if let Decision::Later(rest) = thread_account(|thread| self.flush.end_batch(thread, start)) {
                if connection.leave_to_residual(start, rest) {
                    thread_account(|thread| self.flush.resume(thread, clock::ticks()));
                }
                return true;
            }
        }
        self.flush()
    }

    /// True if the next round of the sweep also writes the message that was just published. Does
    /// not check the number of queued bytes: `leave_to_sweep` does, every few messages.
    #[inline]
    fn is_left_to_sweep(&self) -> bool {
        !self.received_since_send
            && self.flush.count_so_far() < SWEPT_UNSEEN
            && (self.deferred.release || !self.lean)
            && matches!(&self.link, Link::Wire(connection) if connection.sweep_mark.is_set())
    }

    /// Leaves the queued bytes to the sweep, for a sender in a crowd. Returns false if the bytes
    /// are a full write or if the crowd is over.
    fn leave_to_sweep(&mut self) -> bool {
        let (Link::Wire(connection), Store::Queue(writer)) = (&self.link, &self.store) else {
            return false;
        };
        if writer.unflushed_bytes() >= FULL_BYTES {
            return false;
        }
        if !connection.sweep_mark.is_set() {
            let idle = connection.io.sweeper_is_idle();
            if !thread_account(|thread| thread.continues_crowd(clock::ticks(), idle)) {
                return false;
            }
            if connection.sweep_mark.set() {
                let round = connection.io.hand_over(Handover::Sweep(connection.clone()));
                thread_account(|thread| thread.record_mark(round));
            }
        }
        self.flush.record_sweep();
        if self.lean {
            self.deferred.defer_release();
        }
        true
    }

    /// Called after the sweep: releases the queue's memory, unless new bytes are queued or the
    /// kernel is full.
    pub(super) fn release_memory(&mut self) {
        self.deferred.release = false;
        if let (Link::Wire(connection), Store::Queue(writer)) = (&self.link, &mut self.store)
            && writer.holds_memory()
            && writer.unflushed_bytes() == 0
        {
            connection.flush_some(u64::MAX, Some(writer));
        }
    }

    /// Handles the result of a flush by the owner, which began at `start`.
    fn handle_flush(&mut self, start: u64, flushed: Option<Flushed>, patient: bool) {
        let Link::Wire(connection) = &self.link else { return };
        let end = clock::ticks();
        if flushed.is_some() {
            connection.note_work(end);
        }
        record_flush(&mut self.flush, start, end, flushed);
        match flushed {
            Some(Flushed::Drained) => self.pacer.stuck_at = None,
            // There is no stream. The next session writes all queued bytes when it begins.
            Some(Flushed::NoLink) => {}
            // The kernel is full or another thread is writing. In both cases the residual watch of
            // the I/O thread checks again later, and waits for a writable stream if the kernel is
            // still full. A sender that continues writes before that. The other thread, probably
            // the I/O thread, may not have seen the last message; in a stream it is not woken for
            // that.
            _ => {
                connection.leave_to_residual(start, Deferred::WatchNotified);
                self.deferred.defer_flush();
                if flushed.is_none() {
                    self.flush.ask_after(HABIT.into());
                }
            }
        }
        if matches!(flushed, Some(Flushed::Blocked)) && patient {
            self.pacer.pace(connection, &self.store);
        }
    }
}

/// Deferred work of one pipe.
#[derive(Debug, Default)]
pub(super) struct DeferredWork {
    /// True if the pipe is in the list of unflushed pipes.
    pub(super) flush: bool,
    /// True if the pipe is in the list of pipes whose memory is to be released.
    pub(super) release: bool,
    /// Id of the pipe, and the lists of its socket. `None` before `attach`.
    list: Option<(PipeId, Arc<PipesShared>)>,
}

impl DeferredWork {
    /// Called when the pipe gets an id and an owner.
    pub(super) fn attach(&mut self, id: PipeId, list: Arc<PipesShared>) {
        self.list = Some((id, list));
    }

    /// Makes the owner flush this pipe before it sleeps, because bytes stay queued.
    pub(super) fn defer_flush(&mut self) {
        if let (Some((id, list)), false) = (&self.list, self.flush) {
            lock(&list.unflushed).push(*id);
            self.flush = true;
        }
    }

    /// Makes the owner release the memory of the queue after the sweep, which writes the queued
    /// bytes.
    pub(super) fn defer_release(&mut self) {
        if let (Some((id, list)), false) = (&self.list, self.release) {
            lock(&list.unreleased).push(*id);
            self.release = true;
        }
    }

    /// True if the calling thread has corked the owner's socket.
    pub(super) fn is_corked(&self) -> bool {
        let corked = CORKED.get();
        corked != 0 && self.list.as_ref().is_some_and(|(_, list)| Arc::as_ptr(list).addr() == corked)
    }
}

thread_local! {
    /// Address of the corked socket's `PipesShared`, which lists its unflushed pipes. 0 without a
    /// cork.
    static CORKED: Cell<usize> = const { Cell::new(0) };
    /// Number of the cork that counts, and of the last cork of this thread.
    static CORKS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// A cork: while this value exists, its thread does not write the messages of one socket. Corks
/// nest. One that is dropped before a newer one ends both.
#[derive(Debug)]
pub struct Cork {
    number: u64,
    /// Values of `CORKED` and of the number that counted, before this cork.
    former: (usize, u64),
    /// Binds the cork to its thread.
    not_send: PhantomData<*const ()>,
}

impl Cork {
    pub(super) fn new(left: &Arc<PipesShared>) -> Cork {
        let (before, last) = CORKS.get();
        CORKS.set((last + 1, last + 1));
        let former = (CORKED.replace(Arc::as_ptr(left).addr()), before);
        Cork { number: last + 1, former, not_send: PhantomData }
    }
}

impl Drop for Cork {
    fn drop(&mut self) {
        let (current, last) = CORKS.get();
        // A newer cork must not leave the address of a socket whose cork has ended.
        let (corked, number) = if current == self.number { self.former } else { (0, 0) };
        CORKED.set(corked);
        CORKS.set((number, last));
    }
}

#[cfg(test)]
mod tests;
