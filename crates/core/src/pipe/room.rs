//! Whether there is room for a message, and what is known of those that had none.

use super::flush::record_flush;
use super::{Link, Outgoing, Store};
use crate::timing::{RARE_INTERVAL, SLICE};
use tautline_io::clock;

/// What becomes of a message if a pipe has no room for it: how hard a yes is worked for depends on
/// that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFull {
    /// The caller takes a longer way, and asks again there. Only what is known counts: the peer is
    /// not looked at.
    SlowPath,
    /// It waits, or goes to another peer. At the high-water mark the caller itself pumps the
    /// connection before it is told no.
    Wait,
    /// As `Wait`, if the sender is patient. One that does not wait is also refused when it has sent
    /// more than the high-water mark in one burst, though the kernel may have taken it all: else
    /// the mark would mean nothing to it, as the kernel's buffers hold thousands of small messages.
    /// The next try succeeds if there is room.
    Refuse { patient: bool },
    /// It is lost. So if another thread is writing the queue just now, this one waits for it: a
    /// reply must not be lost because the peer's next request was faster than the credit for the
    /// reply before.
    DropUncounted,
    /// As `DropUncounted`, and the pipe counts it among those dropped.
    Drop,
    /// One of several receivers misses it, which is counted as well. A peer that takes nothing must
    /// not cost the others a system call per message, so it is tried only now and then. The I/O
    /// thread goes on when the kernel takes bytes again.
    Miss,
}

/// The high-water mark of a pipe, and what came of messages beyond it.
#[derive(Debug, Default)]
pub(super) struct HighWaterMark {
    /// Messages that this pipe has missed since there was room (`OnFull::Miss`).
    missed: u32,
    /// ZMQ_SNDHWM, for inproc, where the peer's part comes on top.
    pub(super) send_hwm: u32,
    /// When a burst was last looked for (clock ticks).
    reached: u64,
    /// A burst was refused.
    burst_refused: bool,
}

impl HighWaterMark {
    /// Whether a message was refused only because it was one too many in a burst. Tells it once.
    pub(super) fn take_burst_refused(&mut self) -> bool {
        std::mem::take(&mut self.burst_refused)
    }

    /// A message to a connection is one too many: whether those since the last such one were a
    /// burst.
    #[cold]
    pub(super) fn is_burst(&mut self) -> bool {
        let now = clock::ticks();
        let before = std::mem::replace(&mut self.reached, now);
        self.burst_refused = before != 0 && now.saturating_sub(before) < clock::nanos_to_ticks(SLICE);
        self.burst_refused
    }
}

impl Outgoing {
    /// As `Pipe::has_room`.
    #[inline(always)]
    pub(super) fn has_room(&mut self, link: &Link, otherwise: OnFull) -> bool {
        match otherwise {
            OnFull::SlowPath => self.has_credit(),
            OnFull::Wait => self.can_send(link),
            OnFull::Refuse { patient } => {
                self.has_credit() || self.can_send(link) && (patient || !self.refuses_burst(link))
            }
            OnFull::DropUncounted => self.can_send(link) || self.has_room_after_others(link),
            OnFull::Drop => self.can_send(link) || self.has_room_after_others(link) || self.count_drop(),
            OnFull::Miss => self.has_room_or_misses(link),
        }
    }

    /// Whether the peer is not gone, and below the high-water mark by what it was last known to
    /// have taken.
    #[inline(always)]
    fn has_credit(&self) -> bool {
        !self.ended && matches!(&self.store, Store::Queue(writer) if writer.has_room_for_sure())
    }

    /// The same by what it has taken by now.
    #[inline]
    fn can_send(&mut self, link: &Link) -> bool {
        match &mut self.store {
            Store::Queue(writer) if !self.ended => writer.has_room() || self.make_room(link),
            Store::Slot(_) => !self.ended,
            Store::Queue(_) => false,
        }
    }

    /// There is no room: false. What a peer that is gone does not get was not dropped.
    fn count_drop(&mut self) -> bool {
        if let (Store::Queue(writer), false) = (&mut self.store, self.ended) {
            writer.count_dropped(1);
        }
        false
    }

    #[cold]
    fn refuses_burst(&mut self, link: &Link) -> bool {
        matches!((link, &self.store), (Link::Wire(_), Store::Queue(_))) && self.high_water_mark.is_burst()
    }

    #[inline]
    fn has_room_or_misses(&mut self, link: &Link) -> bool {
        match &mut self.store {
            Store::Queue(writer) if !self.ended => {
                if writer.has_room() {
                    self.high_water_mark.missed = 0;
                    true
                } else {
                    self.handle_full(link)
                }
            }
            _ => self.has_room(link, OnFull::Drop),
        }
    }

    #[inline(never)]
    fn handle_full(&mut self, link: &Link) -> bool {
        let try_now = self.high_water_mark.missed.is_multiple_of(RARE_INTERVAL);
        self.high_water_mark.missed = self.high_water_mark.missed.wrapping_add(1);
        let room = try_now && self.make_room(link);
        if try_now {
            self.ring(link);
        }
        if let (Link::Wire(connection), true) = (link, try_now && !room) {
            connection.want_write();
        }
        if let (Store::Queue(writer), false) = (&mut self.store, room) {
            writer.count_dropped(1);
        }
        room
    }

    /// At the high-water mark: pumps, or looks whether the mark has moved. True if there is room
    /// now.
    #[cold]
    fn make_room(&mut self, link: &Link) -> bool {
        let Store::Queue(writer) = &mut self.store else { return true };
        writer.count_full();
        match link {
            Link::Wire(connection) => {
                let start = clock::ticks();
                let flushed = connection.try_flush();
                if flushed.is_some() {
                    let end = clock::ticks();
                    connection.note_work(end);
                    record_flush(&mut self.flush, start, end, flushed);
                }
                if !writer.has_room() {
                    connection.request_room();
                }
            }
            Link::Inproc(end) => {
                if end.is_closed() {
                    return false;
                }
                writer.set_limit(end.send_limit(self.high_water_mark.send_hwm));
            }
        }
        writer.has_room()
    }

    /// As `make_room`, which has found none: looks again when the thread that was writing has given
    /// credit.
    #[cold]
    fn has_room_after_others(&mut self, link: &Link) -> bool {
        let (Link::Wire(connection), Store::Queue(writer)) = (link, &mut self.store) else {
            return false;
        };
        if self.ended {
            return false;
        }
        let others = connection.await_others();
        writer.has_room() || others && self.make_room(link)
    }

    /// Whether the queue is full just now, without pumping.
    pub(super) fn is_full(&mut self) -> bool {
        let behind = self.pending_in_log();
        match &mut self.store {
            Store::Queue(writer) => {
                let limit = u64::from(writer.limit());
                !writer.has_room() || limit > 0 && behind >= limit
            }
            Store::Slot(_) => false,
        }
    }
}
