//! Checks for room for a message, and the results of messages beyond the high-water mark.

use super::flush::record_flush;
use super::{Link, Outgoing, Store};
use crate::timing::{RARE_INTERVAL, SLICE};
use tautline_io::clock;

/// Effect on a message if a pipe has no room for it. The choice decides how much work is spent on
/// finding room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFull {
    /// The caller continues on its slow path, and asks again there. The check uses only the known
    /// credit, and does not look at the peer.
    SlowPath,
    /// The message waits, or goes to another peer. At the high-water mark, the caller pumps the
    /// connection before the check fails.
    Wait,
    /// Like `Wait`, if the sender is patient. A sender that does not wait is also refused after
    /// more messages than the high-water mark in one burst, even if the kernel has taken all of
    /// them. Otherwise the mark would have no effect for this sender, because the kernel's buffers
    /// hold thousands of small messages. The next try succeeds if there is room.
    Refuse { patient: bool },
    /// The message is lost. Therefore the caller waits if another thread is writing the queue: a
    /// reply must not be lost because the peer's next request arrived before the credit for the
    /// previous reply.
    DropUncounted,
    /// Like `DropUncounted`, but the pipe counts the message as dropped.
    Drop,
    /// One of several receivers misses the message, and the pipe counts it as dropped. A stuck peer
    /// must not cost the others a system call per message, so the pipe is pumped only once in
    /// `RARE_INTERVAL` messages. The I/O thread continues when the kernel takes bytes again.
    Miss,
}

/// High-water mark of a pipe, and the results of messages beyond it.
#[derive(Debug, Default)]
pub(super) struct HighWaterMark {
    /// Number of messages that this pipe has missed since it last had room (`OnFull::Miss`).
    missed: u32,
    /// ZMQ_SNDHWM, for inproc, where the peer's limit is added.
    pub(super) send_hwm: u32,
    /// Time of the last check for a burst (clock ticks).
    reached: u64,
    /// True if a burst was refused.
    burst_refused: bool,
}

impl HighWaterMark {
    /// Returns true, once, if a message was refused only because it exceeded the mark in a burst.
    pub(super) fn take_burst_refused(&mut self) -> bool {
        std::mem::take(&mut self.burst_refused)
    }

    /// Called if a message to a connection exceeds the mark. Returns true if the messages since the
    /// previous call were a burst.
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
            OnFull::Drop => self.can_send(link) || self.has_room_after_others(link) || self.drops(),
            OnFull::Miss => self.has_room_or_misses(link),
        }
    }

    /// Returns true if the peer is present and the pipe has room by the last known credit.
    #[inline(always)]
    fn has_credit(&self) -> bool {
        !self.ended && matches!(&self.store, Store::Queue(writer) if writer.has_room_for_sure())
    }

    /// Returns true if the peer is present and the pipe has room by the current credit.
    #[inline]
    fn can_send(&mut self, link: &Link) -> bool {
        match &mut self.store {
            Store::Queue(writer) if !self.ended => writer.has_room() || self.make_room(link),
            Store::Slot(_) => !self.ended,
            Store::Queue(_) => false,
        }
    }

    /// Counts a dropped message, because there is no room. Returns false. Messages for a peer that
    /// is gone do not count as dropped.
    fn drops(&mut self) -> bool {
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
                    self.misses(link)
                }
            }
            _ => self.has_room(link, OnFull::Drop),
        }
    }

    #[inline(never)]
    fn misses(&mut self, link: &Link) -> bool {
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

    /// Called at the high-water mark. Pumps, or checks if the mark has moved. Returns true if there
    /// is room afterwards.
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

    /// Called after `make_room` failed. Checks again when the writing thread has given credit.
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

    /// Returns true if the queue is full at present, without pumping.
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
