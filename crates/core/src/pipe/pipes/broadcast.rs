//! `Broadcast`: messages that go to several peers, each stored once.
//!
//! The members are pipes over connections. Members that keep up *follow*: their connections read
//! one log (`queue::Log`), and sending to all of them is one append. The *others* have messages in
//! their own queues and get further messages there, one by one, until their queue is empty and they
//! follow again.
//!
//! A follower becomes one of the others, with its unsent messages, in two cases: the kernel does
//! not take the messages and the high-water mark is near, or the follower blocks the log's window.
//! So the log's memory is bounded, and no member waits for the slowest.
//!
//! The owner itself writes to a few followers, by the flush rule. The I/O thread writes to many
//! (`conn::LogReaders`). At the high-water mark and when the window is full, the owner always
//! helps, so it is as fast as the connections are.
//!
//! Messages with a large part bypass the log: they go through the queues by reference
//! ([`Broadcast::detach_all`]). A socket keeps its broadcasts by number.

use crate::conn::{Connection, Flushed, LogReaders};
use crate::idle::thread_account;
use crate::pipe::part::LARGE;
use crate::pipe::{Link, Pipe, PipeId, Pipes, Store};
use tautline_io::clock;
use tautline_proto::frame;
use tautline_queue::handoff::chore::Hint;
use tautline_queue::sync::{Arc, try_lock};
use tautline_queue::{LONGEST_IN_LOG, Log, Progress};
use tautline_timing::RARE_INTERVAL;
use tautline_timing::flush::{Decision, Deferred, FULL_BYTES, FlushRule};

const _: () = assert!(LARGE + frame::MAX_HEADER <= LONGEST_IN_LOG);
/// Up to this many followers, the owner itself writes to them. For more followers, the kernel's
/// buffers exceed the caches.
const MAX_OWNER_FOLLOWERS: usize = 8;

struct Follower {
    pipe: PipeId,
    connection: Arc<Connection>,
    progress: Arc<Progress>,
    /// High-water mark of the follower; `u64::MAX` for unlimited.
    limit: u64,
}

impl Follower {
    /// Returns the number of messages from which a follower is near its mark. The owner then writes
    /// to the follower, or detaches it.
    fn tight_at(&self) -> u64 {
        (self.limit - self.limit.div_ceil(4)).saturating_add(1)
    }

    /// Writes the queued bytes. If another thread is writing, waits for that thread first.
    fn write(&self) {
        if self.connection.try_flush().is_none() {
            self.connection.await_others();
            self.connection.try_flush();
        }
    }

    fn is_tight(&self) -> bool {
        self.progress.pending_messages() >= self.tight_at()
    }
}

/// The pipes that get the same messages.
pub(crate) struct Broadcast {
    log: Log,
    followers: Vec<Follower>,
    queued_members: Vec<PipeId>,
    log_readers: Option<Arc<LogReaders>>,
    rule: FlushRule,
    /// Set after the I/O thread has written the messages left in the log.
    hint: Arc<Hint>,
    /// The log's byte count at the last flush.
    flushed_to: u64,
    /// The log's message count at which a follower may be near its mark.
    check_at: u64,
    /// ZMQ_SNDHWM when the limits were read.
    send_hwm: u32,
    /// Messages until the next check of the members that do not follow.
    check_in: u32,
    /// Number of small messages that still go through the queues before the log is used again.
    small_in: u32,
}

impl std::fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broadcast")
            .field("followers", &self.followers.len())
            .field("others", &self.queued_members)
            .finish_non_exhaustive()
    }
}

impl Broadcast {
    /// Returns a broadcast without members.
    pub(crate) fn new() -> Self {
        Broadcast {
            log: Log::new(),
            followers: Vec::new(),
            queued_members: Vec::new(),
            log_readers: None,
            rule: FlushRule::default(),
            hint: Arc::new(Hint::new()),
            flushed_to: 0,
            check_at: 0,
            send_hwm: 0,
            check_in: 0,
            small_in: 0,
        }
    }

    /// True if a pipe may be a member: it is a connection with a queue, and could follow a log.
    pub(crate) fn can_join(pipe: &mut Pipe) -> bool {
        matches!((&pipe.outgoing.link, &pipe.outgoing.store), (Link::Wire(_), Store::Queue(_)))
    }

    /// Adds a member, from the next message on.
    pub(crate) fn join(&mut self, pipe: PipeId) {
        self.queued_members.push(pipe);
        self.check_in = 0;
    }

    /// Removes a member. Its unsent messages go to its own queue.
    pub(crate) fn leave(&mut self, pipes: &mut Pipes, pipe: PipeId) {
        if let Some(index) = self.followers.iter().position(|follower| follower.pipe == pipe) {
            self.detach_follower(pipes, index);
        }
        self.queued_members.retain(|&other| other != pipe);
    }

    /// Returns the members that get messages through their own queue.
    pub(crate) fn queued_members(&self) -> &[PipeId] {
        &self.queued_members
    }

    /// True if this member follows.
    pub(crate) fn is_follower(&self, pipe: PipeId) -> bool {
        self.followers.iter().any(|follower| follower.pipe == pipe)
    }

    /// True if the broadcast has no members.
    pub(crate) fn is_empty(&self) -> bool {
        self.followers.is_empty() && self.queued_members.is_empty()
    }

    /// True if the log is in use.
    pub(crate) fn has_followers(&self) -> bool {
        !self.followers.is_empty()
    }

    /// Prepares for a message: makes members follow that can, and detaches followers without room.
    /// Returns false only if messages must not be dropped (`lossless`): a follower has no room, or
    /// is refused a burst (see `OnFull::Refuse`).
    #[inline]
    pub(crate) fn prepare(&mut self, pipes: &mut Pipes, lossless: bool, patient: bool) -> bool {
        if !self.queued_members.is_empty() {
            self.check_queued_members(pipes);
        }
        if self.send_hwm != pipes.options.send_hwm {
            self.take_limits(pipes);
        }
        self.log.messages() < self.check_at
            || self.followers.is_empty()
            || self.enforce_limits(pipes, lossless, patient)
    }

    /// Sends a message of one part, smaller than `LARGE`, to the followers. Followers that must be
    /// detached for it do not get it, and are then the last of the others.
    #[inline]
    pub(crate) fn send(&mut self, pipes: &mut Pipes, body: &[u8]) {
        if !self.log.fits(body.len() + frame::MAX_HEADER) {
            self.advance_chunk(pipes, |_, _| ());
        }
        self.log.append(body);
        self.handle_publication(body.len());
    }

    /// Does `prepare` and `send` in one step, if both have no decisions to make. Returns false if
    /// the followers have not got the message.
    #[inline(always)]
    pub(super) fn try_send_fast(&mut self, body: &[u8], send_hwm: u32) -> bool {
        let sure = self.followers_take(body, send_hwm) && self.queued_members.is_empty();
        if sure {
            self.log.append(body);
            self.handle_publication(body.len());
        }
        sure
    }

    /// The same if there are members that do not follow, and all of them miss the message.
    pub(super) fn try_send_past_full(
        &mut self,
        slots: &mut [Option<Pipe>],
        body: &[u8],
        send_hwm: u32,
    ) -> bool {
        let mut full = |&id: &PipeId| {
            let pipe = slots.get_mut(id.0 as usize).and_then(Option::as_mut);
            pipe.is_some_and(|pipe| pipe.outgoing.surely_misses())
        };
        let sure = self.check_in > 0
            && self.followers_take(body, send_hwm)
            && self.queued_members.iter().all(&mut full);
        if sure {
            self.check_in -= 1;
            self.small_in = self.small_in.saturating_sub(1);
            for &id in &self.queued_members {
                if let Some(Some(pipe)) = slots.get_mut(id.0 as usize) {
                    pipe.outgoing.count_miss();
                }
            }
            self.log.append(body);
            self.handle_publication(body.len());
        }
        sure
    }

    /// True if all followers take this message without a decision.
    #[inline(always)]
    fn followers_take(&self, body: &[u8], send_hwm: u32) -> bool {
        body.len() < LARGE
            && self.log.messages() < self.check_at
            && self.log.fits(body.len() + frame::MAX_HEADER)
            && self.send_hwm == send_hwm
            && !self.followers.is_empty()
    }

    /// Makes room for a message of `len` bytes, including headers. Calls `each` for each follower
    /// that must be detached for it.
    pub(crate) fn make_room(&mut self, pipes: &mut Pipes, len: usize, each: impl FnMut(&mut Pipes, PipeId)) {
        if self.has_followers() && !self.log.fits(len) {
            self.advance_chunk(pipes, each);
        }
    }

    /// Sends an encoded message of several parts, smaller than `LARGE`, to the followers. The
    /// caller has called `make_room` for it.
    pub(crate) fn send_encoded(&mut self, parts: &[u8]) {
        self.log.append_encoded(parts);
        self.handle_publication(parts.len());
    }

    /// Detaches all followers, because a large message follows. Calls `each` for each of them.
    pub(crate) fn detach_all(&mut self, pipes: &mut Pipes, mut each: impl FnMut(&mut Pipes, PipeId)) {
        // The next `RARE_INTERVAL` small messages also go through the queues.
        self.small_in = RARE_INTERVAL;
        while let Some(last) = self.followers.len().checked_sub(1) {
            let pipe = self.followers[last].pipe;
            self.detach_follower(pipes, last);
            each(pipes, pipe);
        }
    }

    /// Makes a follower one of the others.
    fn detach_follower(&mut self, pipes: &mut Pipes, index: usize) {
        let follower = self.followers.swap_remove(index);
        if let Some(herd) = &self.log_readers {
            herd.remove(&follower.connection);
        }
        if let Some(pipe) = pipes.get(follower.pipe) {
            pipe.outgoing.unfollow();
        }
        self.queued_members.push(follower.pipe);
    }

    fn check_queued_members(&mut self, pipes: &mut Pipes) {
        self.small_in = self.small_in.saturating_sub(1);
        if self.check_in > 0 {
            self.check_in -= 1;
        } else if self.small_in == 0 && self.queued_members.len() + self.followers.len() > 1 {
            self.check_in = RARE_INTERVAL;
            self.attach_followers(pipes);
        }
    }

    /// Makes the others with an empty queue follow.
    fn attach_followers(&mut self, pipes: &mut Pipes) {
        let Broadcast { log, followers, queued_members: others, log_readers: herd, hint, .. } = self;
        let before = followers.len();
        others.retain(|&id| {
            let Some(pipe) = pipes.get(id) else { return true };
            let Some((connection, progress)) = pipe.outgoing.follow(log, hint) else {
                return true;
            };
            let herd = herd.get_or_insert_with(|| LogReaders::new(log.length(), connection.io.clone()));
            herd.add(connection.clone());
            followers.push(Follower { pipe: id, connection, progress, limit: 0 });
            false
        });
        if followers.len() > before {
            // No thread watches the new followers yet. (If there are now too many for the owner,
            // the rule remembers this until there are fewer.)
            self.rule.ask_after(1);
            self.take_limits(pipes);
        }
    }

    /// Reads the followers' high-water marks.
    #[cold]
    fn take_limits(&mut self, pipes: &mut Pipes) {
        self.send_hwm = pipes.options.send_hwm;
        for follower in &mut self.followers {
            let limit = pipes.get(follower.pipe).and_then(|pipe| pipe.outgoing.queue_limit()).unwrap_or(0);
            follower.limit = if limit == 0 { u64::MAX } else { limit.into() };
        }
        self.check_at = self.log.messages();
    }

    /// Called when some followers may be near their mark: writes to them, and detaches those that
    /// still have no room. If messages must not be dropped, followers stay, and there is no room at
    /// the mark.
    #[cold]
    fn enforce_limits(&mut self, pipes: &mut Pipes, lossless: bool, patient: bool) -> bool {
        if self.rule.has_unflushed() && self.followers.iter().any(Follower::is_tight) {
            // Write to all of them, because the others would come near their mark next.
            self.flush(clock::ticks());
        }
        let mut all_have_room = true;
        let mut least = u64::from(u32::MAX);
        // The less the log runs ahead of a crowd, the more of it is still in the caches when it is
        // read. But if messages may be dropped, the kernel should hold those that would be dropped.
        let little = lossless && self.followers.len() >= MAX_OWNER_FOLLOWERS;
        // Start at the end of the list, because the I/O thread starts at the beginning.
        for index in (0..self.followers.len()).rev() {
            let follower = &self.followers[index];
            let mut behind = follower.progress.pending_messages();
            if behind >= follower.tight_at() {
                // If another thread is writing now, the setting stays unchanged.
                if let Ok(mut pump) = try_lock(&follower.connection.pump) {
                    pump.keep_little_unsent(little);
                }
                if lossless {
                    // Notifies an owner that waits as a task or on ZMQ_FD.
                    follower.connection.request_room();
                }
                follower.write();
                behind = follower.progress.pending_messages();
                if lossless {
                    let pipe = pipes.get(follower.pipe);
                    let refused =
                        !patient && pipe.is_some_and(|pipe| pipe.outgoing.high_water_mark.note_excess());
                    all_have_room &= behind < follower.limit && !refused;
                } else if behind >= follower.tight_at() {
                    self.detach_follower(pipes, index);
                    continue;
                }
            }
            let far = if behind < follower.tight_at() { follower.tight_at() } else { follower.limit };
            least = least.min(far.saturating_sub(behind));
        }
        self.check_at = self.log.messages().wrapping_add(least);
        // The time of this check, or of a wait for room, is not a pause of the sender.
        thread_account(|thread| self.rule.resume(thread, clock::ticks()));
        all_have_room
    }

    /// Gets a new chunk for the log. Writes to followers that still read the oldest chunk. If that
    /// does not help, detaches them and calls `each` for each of them.
    #[cold]
    fn advance_chunk(&mut self, pipes: &mut Pipes, mut each: impl FnMut(&mut Pipes, PipeId)) {
        while !self.log.next_chunk() {
            let mut any = false;
            for index in (0..self.followers.len()).rev() {
                let follower = &self.followers[index];
                if self.log.holds_oldest(&follower.progress) {
                    any = true;
                    follower.write();
                    if self.log.holds_oldest(&self.followers[index].progress) {
                        let pipe = self.followers[index].pipe;
                        self.detach_follower(pipes, index);
                        each(pipes, pipe);
                    }
                }
            }
            if !any {
                // Another thread has just dropped a reader and is about to release its chunk.
                std::thread::yield_now();
            }
        }
    }

    #[inline]
    fn handle_publication(&mut self, len: usize) {
        if self.followers.len() > MAX_OWNER_FOLLOWERS {
            if let Some(herd) = &self.log_readers {
                herd.schedule_round();
            }
        } else if self.rule.count() || self.hint.take() {
            self.flush_by_rule(len);
        }
    }

    #[inline(never)]
    fn flush_by_rule(&mut self, len: usize) {
        let start = clock::ticks();
        let pending = self.log.bytes().wrapping_sub(self.flushed_to).min(FULL_BYTES);
        match thread_account(|thread| self.rule.decide(thread, start, pending, len, false)) {
            Decision::Flush => self.flush(start),
            Decision::Later(rest) => {
                let mut kept = false;
                for follower in &self.followers {
                    kept |= follower.connection.leave_to_residual(start, rest);
                }
                if kept {
                    thread_account(|thread| self.rule.resume(thread, clock::ticks()));
                }
            }
        }
    }

    /// Writes to all followers, on the owner's thread.
    fn flush(&mut self, start: u64) {
        let mut drained = false;
        // Until the last follower has been written to, no other thread need watch them.
        let end = start + self.rule.last_took();
        self.followers.iter().for_each(|follower| follower.connection.note_work(end));
        for Follower { connection, .. } in &self.followers {
            match connection.try_flush() {
                Some(Flushed::Drained) => drained = true,
                Some(Flushed::NoLink) => {}
                // If another thread is writing, it may miss the last bytes; if the kernel is full,
                // bytes stay queued. The residual watch covers both.
                _ => {
                    connection.leave_to_residual(start, Deferred::WatchNotified);
                }
            }
        }
        self.flushed_to = self.log.bytes();
        let end = clock::ticks();
        self.followers.iter().for_each(|follower| follower.connection.note_work(end));
        thread_account(|thread| self.rule.record_flush(thread, start, end, drained));
    }
}

/// The broadcasts of a socket.
impl Pipes {
    /// Queues the first parts of a message (encoded; may be empty) for a pipe that has just stopped
    /// following. The caller sends the other parts by `Pipe::send`. Returns false if the peer is
    /// gone. Also returns false if there is no memory for the parts; the pipe then counts a dropped
    /// message.
    ///
    /// Does not check for room, because the pipe had room as a follower. Its own queue now holds
    /// all its unsent messages and gives credit in steps.
    pub(crate) fn continue_in_queue(&mut self, pipe: PipeId, parts: &[u8]) -> bool {
        let Some(pipe) = self.get(pipe).filter(|pipe| !pipe.has_ended()) else { return false };
        let out = &mut pipe.outgoing;
        let (false, Store::Queue(writer)) = (parts.is_empty(), &mut out.store) else { return true };
        out.in_message = writer.append_encoded(parts).is_ok();
        writer.count_dropped(u64::from(!out.in_message));
        out.in_message
    }

    /// Calls `f` with a broadcast and the pipes. If the broadcast does not exist yet, it has no
    /// members.
    pub(crate) fn with_broadcast<T>(
        &mut self,
        number: u32,
        f: impl FnOnce(&mut Broadcast, &mut Pipes) -> T,
    ) -> T {
        let number = number as usize;
        if number >= self.broadcasts.len() {
            self.broadcasts.resize_with(number + 1, || None);
        }
        let mut broadcast = self.broadcasts[number].take().unwrap_or_else(|| Box::new(Broadcast::new()));
        let result = f(&mut broadcast, self);
        if !broadcast.is_empty() {
            self.broadcasts[number] = Some(broadcast);
        }
        result
    }

    /// Sends a message of one part to the members of this broadcast, if all of them follow and
    /// certainly have room, or if all are certainly full and miss it. Returns false if no member
    /// has got or missed the message.
    #[inline(never)]
    pub(crate) fn try_publish_fast(&mut self, number: u32, body: &[u8]) -> bool {
        let Some(Some(broadcast)) = self.broadcasts.get_mut(number as usize) else { return false };
        broadcast.try_send_fast(body, self.options.send_hwm) || self.try_publish_past_full(number, body)
    }

    /// Sends the message to the following members, if the other members are full and miss it.
    #[inline(never)]
    fn try_publish_past_full(&mut self, number: u32, body: &[u8]) -> bool {
        let Pipes { slots, broadcasts, options, .. } = self;
        let Some(Some(broadcast)) = broadcasts.get_mut(number as usize) else { return false };
        !options.xpub_nodrop && broadcast.try_send_past_full(slots, body, options.send_hwm)
    }
}

#[cfg(test)]
mod tests;
