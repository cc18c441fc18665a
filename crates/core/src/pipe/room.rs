//! Decides whether a pipe has room for a message, and counts the messages that had no room.

use super::flush::record_flush;
use super::{Link, Outgoing, Store};
use tautline_io::clock;
use tautline_timing::{RARE_INTERVAL, SLICE};

/// For a peer that misses all messages, one of this number tries to make room.
const RAREST_INTERVAL: u32 = 64 * RARE_INTERVAL;

/// Fate of a message for which a pipe has no room. The choice decides how much `has_room` does to
/// make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFull {
    /// The caller uses its slow path, which asks again. Here only the known credit counts:
    /// `has_room` neither writes to the connection nor reads the state of the peer.
    SlowPath,
    /// The message waits, or goes to another peer. At the high-water mark, `has_room` first writes
    /// queued bytes to the connection. It returns false only if this made no room.
    Wait,
    /// The sender gets an error. A `patient` sender, which waits for room, is treated as in `Wait`.
    ///
    /// A sender that does not wait is also refused after it has sent more than the high-water mark
    /// in one burst, even if the kernel has taken all of it. Otherwise this sender would never
    /// reach the mark, because the kernel's buffers hold thousands of small messages. The next try
    /// succeeds if there is room.
    Refuse { patient: bool },
    /// The message is lost, and not counted. Therefore, if another thread is writing the queue,
    /// `has_room` waits for that thread. Otherwise a reply could be lost if the peer's next request
    /// arrives before that thread has given the credit for the previous reply.
    DropUncounted,
    /// The message is lost, and the pipe counts it as dropped. `has_room` waits for another thread
    /// that is writing the queue, for the reason in `DropUncounted`.
    Drop,
    /// One of several receivers does not get the message, and its pipe counts the message as
    /// dropped. A peer that takes nothing must not cost the other receivers a system call per
    /// message. So `has_room` rarely tries to write (`tries_now`). The I/O thread continues
    /// when the kernel takes bytes again.
    Miss,
}

/// High-water mark of a pipe, and a record of the messages that exceeded it.
#[derive(Debug, Default)]
pub(super) struct HighWaterMark {
    /// Number of messages that this pipe has missed since it last had room (`OnFull::Miss`).
    missed: u32,
    /// ZMQ_SNDHWM. Used for inproc, where the limit is this value plus the peer's ZMQ_RCVHWM.
    pub(super) send_hwm: u32,
    /// Time of the last message that exceeded the credit (clock ticks); 0 if there was none.
    last_excess: u64,
    /// True if the last message that exceeded the credit belonged to a burst. Cleared by
    /// `take_burst_refused`.
    burst_refused: bool,
}

impl HighWaterMark {
    /// Returns true once after a message was refused only because its burst exceeded the mark.
    pub(super) fn take_burst_refused(&mut self) -> bool {
        std::mem::take(&mut self.burst_refused)
    }

    /// True if `OnFull::Miss` tries to make room for this message.
    fn tries_now(&self, link: &Link) -> bool {
        let rare = self.missed.is_multiple_of(RARE_INTERVAL);
        match link {
            // The I/O thread writes when the kernel takes bytes, so further tries are rarely of
            // use. Each takes some system calls.
            Link::Wire(_) => {
                rare && (self.missed.is_multiple_of(RAREST_INTERVAL) || self.missed.is_power_of_two())
            }
            Link::Inproc(_) => rare,
        }
    }

    /// Called for a message that exceeds the credit of a connection. Returns true, and remembers
    /// it, if the previous such message was less than `SLICE` ago: then the messages between them
    /// were one burst.
    #[cold]
    pub(super) fn note_excess(&mut self) -> bool {
        let now = clock::ticks();
        let before = std::mem::replace(&mut self.last_excess, now);
        self.burst_refused = before != 0 && now.saturating_sub(before) < clock::nanos_to_ticks(SLICE);
        self.burst_refused
    }
}

impl Outgoing {
    /// True if the pipe would take the first part of a message now: the peer is present and below
    /// the high-water mark. `on_full` says what happens to the message if there is no room. The
    /// effort to find room depends on it.
    #[inline(always)]
    pub(crate) fn has_room(&mut self, on_full: OnFull) -> bool {
        let has_credit =
            !self.ended && matches!(&self.store, Store::Queue(writer) if writer.has_room_for_sure());
        if has_credit && on_full == OnFull::Miss {
            self.high_water_mark.missed = 0;
        }
        has_credit || on_full != OnFull::SlowPath && self.find_room(on_full)
    }

    /// Called if the last known credit shows no room: checks the current credit, and makes room as
    /// `on_full` says. A slot always has room.
    #[inline(never)]
    fn find_room(&mut self, on_full: OnFull) -> bool {
        if self.ended {
            return false;
        }
        let Store::Queue(writer) = &mut self.store else { return true };
        let mut has_room = writer.has_room();
        let tries = !has_room && (on_full != OnFull::Miss || self.high_water_mark.tries_now(&self.link));
        has_room |= tries && self.make_room();
        match on_full {
            OnFull::SlowPath | OnFull::Wait => {}
            OnFull::Refuse { patient } => {
                let is_wire = matches!(self.link, Link::Wire(_));
                has_room = has_room && (patient || !is_wire || !self.high_water_mark.note_excess());
            }
            OnFull::DropUncounted | OnFull::Drop => {
                if !has_room && let Link::Wire(connection) = &self.link {
                    // Wait for a thread that is writing the queue. Check the credit that it gave.
                    let others = connection.await_others();
                    if let Store::Queue(writer) = &mut self.store {
                        has_room = writer.has_room();
                    }
                    has_room = has_room || others && self.make_room();
                }
                if !has_room && on_full == OnFull::Drop {
                    self.count_dropped();
                }
            }
            OnFull::Miss => {
                if tries {
                    self.ring();
                }
                match &self.link {
                    _ if has_room => self.high_water_mark.missed = 0,
                    Link::Wire(connection) if tries => {
                        connection.want_write();
                        self.count_miss();
                    }
                    _ => self.count_miss(),
                }
            }
        }
        has_room
    }

    /// Called at the high-water mark. For a connection, writes queued bytes; for inproc, reads the
    /// peer's current limit. Returns true if there is room now.
    #[cold]
    fn make_room(&mut self) -> bool {
        let Store::Queue(writer) = &mut self.store else { return true };
        writer.count_full();
        match &self.link {
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

    /// True if the queue is full now. Does not write to the connection.
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

    /// True if the next message finds no room, and `OnFull::Miss` does not try to make room for it.
    /// The caller may then call `count_miss` in place of `has_room`.
    #[inline]
    pub(super) fn surely_misses(&mut self) -> bool {
        match &mut self.store {
            Store::Queue(writer) if !self.ended => {
                !self.high_water_mark.missed.is_multiple_of(RARE_INTERVAL) && !writer.has_room()
            }
            _ => false,
        }
    }

    /// Counts a message that the peer misses.
    #[inline]
    pub(super) fn count_miss(&mut self) {
        self.high_water_mark.missed = self.high_water_mark.missed.wrapping_add(1);
        if let Store::Queue(writer) = &mut self.store {
            writer.count_dropped(1);
        }
    }
}
