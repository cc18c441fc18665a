//! How long a receiver from inproc peers stays away before it looks again.
//!
//! A receiver that is faster than its peer and looks all the time takes the queue's counter away from the peer with each look, and
//! gets one message for it: both then run at the speed at which a cache line travels. If it stays away for a moment it finds a
//! batch instead, and disturbs less. So once messages keep coming in short intervals it pauses, longer each time as long as
//! that pays, and not at all when messages come one by one: then it is their latency that counts. (64 bytes: 47 M/s without, 51 with at
//! most 1.5 µs, 53 with 4 µs; 1 KiB into message objects: 12, 17 and 18 M/s.)

use tautline_io::clock;

/// The first pause, and the longest.
const FIRST_NS: u64 = 200;
const LONGEST_NS: u64 = 3000;
/// A wait within this time for each message received since the last one, and once more, is in a stream.
const STREAM_NS: u64 = 300;
/// Messages found after a pause that make it worth while.
const WORTH: u64 = 3;
/// Waits in a stream before the first pause; doubled each time that one was in vain, up to the second value.
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

    /// The receiver has found nothing and is about to wait; it has received and sent so many parts in all. True: it has paused, and
    /// should look again.
    pub(crate) fn before_wait(&mut self, received: u64, sent: u64) -> bool {
        let now = clock::ticks();
        self.ticks = self.next(now, received, sent);
        self.last = now + self.ticks;
        while self.ticks > 0 && clock::ticks() < self.last {
            std::hint::spin_loop();
        }
        self.ticks > 0
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
                return (self.ticks * 2).min(clock::nanos_to_ticks(LONGEST_NS));
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
        let (first, longest) = (ticks(FIRST_NS), ticks(LONGEST_NS));
        assert_eq!(stream(&mut pause, 3, 100, 1), [0; 3]);
        assert_eq!(stream(&mut pause, 1, 100, 1), [first]);
        assert_eq!(stream(&mut pause, 3, 100, 10), [first * 2, first * 4, first * 8]);
        assert_eq!(stream(&mut pause, 3, 100, 10), [longest; 3].map(|longest| longest.min(first * 16)));
        // One message only: back to none, and it takes twice as long until the next try.
        assert_eq!(stream(&mut pause, 8, 100, 1), [0; 8]);
        assert_eq!(stream(&mut pause, 1, 100, 1), [first]);
        assert_eq!(stream(&mut pause, 16, 100, 1), [0; 16]);
        assert_eq!(stream(&mut pause, 1, 100, 1), [first]);
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
