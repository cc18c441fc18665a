//! The crowd rule: decides when a thread that sends to many connections leaves the writing to the
//! sweep of the I/O thread.
//!
//! A write per message costs too much for a thread that sends to one connection after another. If
//! the thread only appends and the sweep writes, each write carries all messages that came together
//! since the last one. The pipes of a thread note their flushes in its account (`account`), and ask
//! this rule before the flush rule (`flush`).

use super::flush::times;

/// Up to this number of connections do not form a crowd.
const MAX_WITHOUT_CROWD: usize = 4;
/// A crowd ends after this many rounds of the sweep in a row that found few connections.
const SPARSE_ROUNDS: u32 = 3;

/// The flushes of one thread, as far as this rule needs them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crowd {
    is_crowd: bool,
    /// Used while `is_crowd` is false: the recently flushed connections, their number, and the time
    /// spent on other work since the first of these flushes.
    flushed: [usize; MAX_WITHOUT_CROWD],
    count: usize,
    elsewhere: u64,
    /// End of the last flush, or time of the last mark.
    last: u64,
    /// Used while `is_crowd` is true: the sweep's round of the last mark, and the number of
    /// connections marked in it.
    round: u32,
    marked: usize,
    sparse: u32,
}

impl Crowd {
    pub(super) const fn new() -> Self {
        Crowd {
            is_crowd: false,
            flushed: [0; MAX_WITHOUT_CROWD],
            count: 0,
            elsewhere: 0,
            last: 0,
            round: 0,
            marked: 0,
            sparse: 0,
        }
    }

    pub(super) fn is_crowd(&self) -> bool {
        self.is_crowd
    }

    pub(super) fn record_flush(&mut self, connection: usize, start: u64, end: u64) {
        self.elsewhere = self.elsewhere.saturating_add(start.saturating_sub(self.last));
        self.last = end;
        if self.elsewhere > times().crowd {
            self.elsewhere = 0;
            self.count = 0;
        }
        if self.flushed[..self.count].contains(&connection) {
            return;
        }
        match self.flushed.get_mut(self.count) {
            Some(place) => {
                *place = connection;
                self.count += 1;
            }
            None => *self = Crowd { is_crowd: true, last: end, ..Crowd::new() },
        }
    }

    pub(super) fn should_continue(&mut self, now: u64, sweeper_idle: bool) -> bool {
        // Everything was written, and then no message came for a while. Write the first message of
        // the next burst at once.
        let lull = sweeper_idle && now.saturating_sub(self.last) > times().crowd;
        if lull {
            *self = Crowd { last: now, ..Crowd::new() };
        }
        self.last = now;
        !lull
    }

    pub(super) fn record_mark(&mut self, round: u32) {
        if round != self.round {
            self.sparse = if self.marked <= MAX_WITHOUT_CROWD { self.sparse + 1 } else { 0 };
            self.round = round;
            self.marked = 0;
            if self.sparse == SPARSE_ROUNDS {
                *self = Crowd { last: self.last, ..Crowd::new() };
            }
        }
        self.marked += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> u64 {
        crate::clock::nanos_to_ticks(n * 1000)
    }

    fn crowded() -> Crowd {
        let mut crowd = Crowd::new();
        for connection in 1..=5 {
            assert!(!crowd.is_crowd);
            let start = us(1000 + 10 * connection as u64);
            crowd.record_flush(connection, start, start + us(8));
        }
        assert!(crowd.is_crowd);
        crowd
    }

    #[test]
    fn the_fifth_connection_within_a_short_time_makes_a_crowd() {
        crowded();
    }

    #[test]
    fn four_fast_connections_are_no_crowd() {
        let mut crowd = Crowd::new();
        for n in 0..100 {
            crowd.record_flush(n % 4, us(n as u64), us(n as u64) + 1);
        }
        assert!(!crowd.is_crowd);
    }

    #[test]
    fn many_rarely_flushed_connections_are_no_crowd() {
        let mut crowd = Crowd::new();
        for n in 0..100 {
            let start = us(1000 + n as u64 * 30);
            crowd.record_flush(n, start, start + us(5));
        }
        assert!(!crowd.is_crowd);
    }

    #[test]
    fn a_lull_ends_a_crowd_but_waiting_for_the_sweep_does_not() {
        let mut crowd = crowded();
        assert!(crowd.should_continue(us(20_000), false));
        assert!(crowd.should_continue(us(20_010), true));
        assert!(!crowd.should_continue(us(20_100), true));
        assert!(!crowd.is_crowd);
    }

    #[test]
    fn rounds_that_find_few_end_a_crowd() {
        let mut crowd = crowded();
        for round in 1..=3 {
            for _ in 0..5 {
                crowd.record_mark(round);
            }
        }
        for round in 4..=7 {
            assert!(crowd.is_crowd);
            crowd.record_mark(round);
        }
        assert!(!crowd.is_crowd);
    }
}
