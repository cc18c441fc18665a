//! How long a receiver from inproc peers stays away before it looks again.
//!
//! A receiver that is faster than its peer and looks all the time takes the queue's counter away
//! from the peer with each look, and gets one message for it: both then run at the speed at which a
//! cache line travels. If it stays away for a moment it finds a batch instead, and disturbs less.
//! So once messages keep coming in short intervals it pauses, longer each time as long as that
//! pays, and not at all when messages come one by one: then it is their latency that counts. While
//! they come as fast as they can be sent it stays away longer still, but goes on only as long as
//! more of them come.

use tautline_io::{clock, thread};

/// The first pause, the longest, and the longest where they come as fast as can be.
const FIRST_NS: u64 = 200;
const LONG_NS: u64 = 3000;
const LONGEST_NS: u64 = 20_000;
/// In a long pause it is looked this often whether more messages come.
const STEP_NS: u64 = 2500;
/// A wait within this time for each message received since the last one, and once more, is in a
/// stream.
const STREAM_NS: u64 = 300;
/// A pause of no more than this for each message that came in it may become a long one.
const DENSE_NS: u64 = 60;
/// Messages found after a pause that make it worth while.
const WORTH: u64 = 3;
/// Waits in a stream before the first pause; doubled each time that one was in vain, up to the
/// second value.
const STREAK: u32 = 4;
const STREAK_MAX: u32 = 256;

/// A receiver's memory of its last waits.
#[derive(Debug)]
pub(crate) struct Pause {
    /// The length of the last pause in ticks; 0: there was none.
    ticks: u64,
    /// When the last wait began, and how many parts had been received and sent by then.
    last: u64,
    received: u64,
    sent: u64,
    /// Waits in a stream, and how many make a pause.
    streak: u32,
    needed: u32,
}

impl Pause {
    pub(crate) fn new() -> Self {
        Pause { ticks: 0, last: 0, received: 0, sent: 0, streak: 0, needed: STREAK }
    }

    /// The receiver has found nothing and is about to wait; in all it has `received` and `sent`
    /// this many parts. True: it has paused, and should look again. `arrived` is a count that
    /// changes with each message that comes.
    pub(crate) fn before_wait(&mut self, received: u64, sent: u64, arrived: impl Fn() -> u64) -> bool {
        let now = clock::ticks();
        self.ticks = self.next(now, received, sent);
        self.last = now;
        if self.ticks == 0 {
            return false;
        }
        let long = self.ticks > clock::nanos_to_ticks(LONG_NS);
        let step = if long { clock::nanos_to_ticks(STEP_NS) } else { self.ticks };
        let (end, mut before) = (now + self.ticks, if long { arrived() } else { 0 });
        loop {
            self.last = end.min(self.last + step);
            while clock::ticks() < self.last {
                std::hint::spin_loop();
            }
            // The latter: the sender is held up, or has come to an end.
            if self.last == end || std::mem::replace(&mut before, arrived()) == before {
                self.ticks = self.last - now;
                return true;
            }
            thread::yield_now_timed();
        }
    }

    /// How long to pause at `now`.
    fn next(&mut self, now: u64, received: u64, sent: u64) -> u64 {
        let batch = received.wrapping_sub(std::mem::replace(&mut self.received, received));
        let answered = std::mem::replace(&mut self.sent, sent) != sent;
        let stream = clock::nanos_to_ticks(STREAM_NS).saturating_mul(batch + 1);
        if batch == 0 || answered || now.wrapping_sub(self.last) >= stream {
            self.streak = 0;
            return 0;
        }
        if self.ticks > 0 {
            if batch >= WORTH {
                self.needed = STREAK;
                let dense = self.ticks <= clock::nanos_to_ticks(DENSE_NS).saturating_mul(batch);
                let most = if dense { LONGEST_NS } else { LONG_NS };
                return (self.ticks * 2).min(clock::nanos_to_ticks(most));
            }
            self.needed = (self.needed * 2).min(STREAK_MAX);
            self.streak = 0;
            return 0;
        }
        self.streak += 1;
        if self.streak < self.needed { 0 } else { clock::nanos_to_ticks(FIRST_NS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn ticks(nanos: u64) -> u64 {
        clock::nanos_to_ticks(nanos)
    }

    /// Waits `waits` times, `gap` nanoseconds apart, with `batch` messages each; the pauses.
    fn stream(pause: &mut Pause, waits: u64, gap: u64, batch: u64) -> Vec<u64> {
        (0..waits)
            .map(|_| {
                let now = pause.last + ticks(gap);
                pause.ticks = pause.next(now, pause.received + batch, 0);
                pause.last = now + pause.ticks;
                pause.ticks
            })
            .collect()
    }

    #[test]
    fn pauses_grow_in_a_stream_and_stop_when_they_bring_nothing() {
        let mut pause = Pause::new();
        let (first, long) = (ticks(FIRST_NS), ticks(LONG_NS));
        assert_eq!(stream(&mut pause, 3, 100, 1), [0; 3]);
        assert_eq!(stream(&mut pause, 1, 100, 1), [first]);
        assert_eq!(stream(&mut pause, 3, 100, 10), [first * 2, first * 4, first * 8]);
        assert_eq!(stream(&mut pause, 3, 100, 10), [long; 3]);
        // One message only: back to none, and it takes twice as long until the next try.
        assert_eq!(stream(&mut pause, 8, 100, 1), [0; 8]);
        assert_eq!(stream(&mut pause, 1, 100, 1), [first]);
        assert_eq!(stream(&mut pause, 16, 100, 1), [0; 16]);
        assert_eq!(stream(&mut pause, 1, 100, 1), [first]);
    }

    #[test]
    fn pauses_are_the_longest_where_messages_come_as_fast_as_can_be() {
        let mut pause = Pause::new();
        stream(&mut pause, 4, 100, 1);
        let dense = |pause: u64| pause.div_ceil(ticks(DENSE_NS));
        while pause.ticks < ticks(LONGEST_NS) {
            let (batch, twice) = (dense(pause.ticks).max(WORTH), pause.ticks * 2);
            assert_eq!(stream(&mut pause, 1, 100, batch), [twice.min(ticks(LONGEST_NS))]);
        }
        let sparse = dense(pause.ticks) - 1;
        assert_eq!(stream(&mut pause, 1, 100, sparse), [ticks(LONG_NS)]);
    }

    /// The length of the longest pause, where there are `count` messages more with each look.
    fn longest(count: u64) -> u64 {
        let mut pause = Pause { ticks: ticks(LONGEST_NS), last: clock::ticks(), ..Pause::new() };
        let all = Cell::new(0);
        assert!(pause.before_wait(1 << 40, 0, || all.replace(all.get() + count)));
        pause.ticks
    }

    #[test]
    fn a_long_pause_goes_on_only_while_messages_come() {
        assert_eq!(longest(1), ticks(LONGEST_NS));
        assert_eq!(longest(0), ticks(STEP_NS));
    }

    #[test]
    fn no_pause_for_messages_that_come_one_by_one_or_are_answered() {
        let mut pause = Pause::new();
        assert_eq!(stream(&mut pause, 100, 1000, 1), [0; 100]);
        for sent in 1..100 {
            let now = pause.last + ticks(100);
            assert_eq!(pause.next(now, pause.received + 1, sent), 0);
            pause.last = now;
        }
    }
}
