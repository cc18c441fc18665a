//! The crowd rule: when a thread that sends to many connections leaves the writing to the sweep of
//! the I/O thread.
//!
//! A write per message is too much for a thread that has something for one connection after the
//! other: appended and swept, as many messages as have come together in the meantime leave with
//! each write. One account per thread, since it is the thread's time that is short: `Pipe` notes
//! its flushes here, and asks before the flush rule (`flush`) what to do.

use super::flush::times;
use crate::ablation::{Rule, without};
use std::cell::Cell;

/// Up to this number of connections are no crowd.
const FEW: usize = 4;
/// A crowd ends after this number of rounds of the sweep in a row that found few connections.
const SPARSE_ROUNDS: u32 = 3;

/// The account of one thread.
#[derive(Debug, Clone, Copy)]
struct Crowd {
    on: bool,
    /// Off: the connections flushed lately, how many they are, and the time spent on anything else
    /// meanwhile.
    flushed: [usize; FEW],
    count: usize,
    elsewhere: u64,
    /// End of the last flush, or the time of the last mark.
    last: u64,
    /// On: the round of the sweep that the last connection was marked for, and how many were.
    round: u32,
    marked: usize,
    sparse: u32,
}

impl Crowd {
    const fn new() -> Self {
        Crowd {
            on: false,
            flushed: [0; FEW],
            count: 0,
            elsewhere: 0,
            last: 0,
            round: 0,
            marked: 0,
            sparse: 0,
        }
    }

    fn flushed(&mut self, connection: usize, start: u64, end: u64) {
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
            None => *self = Crowd { on: true, last: end, ..Crowd::new() },
        }
    }

    fn goes_on(&mut self, now: u64, sweeper_idle: bool) -> bool {
        // Everything was written and then nothing came: the first message of a burst goes out at
        // once.
        let lull = sweeper_idle && now.saturating_sub(self.last) > times().crowd;
        if lull {
            *self = Crowd { last: now, ..Crowd::new() };
        }
        self.last = now;
        !lull
    }

    fn marked(&mut self, round: u32) {
        if round != self.round {
            self.sparse = if self.marked <= FEW { self.sparse + 1 } else { 0 };
            self.round = round;
            self.marked = 0;
            if self.sparse == SPARSE_ROUNDS {
                *self = Crowd { last: self.last, ..Crowd::new() };
            }
        }
        self.marked += 1;
    }
}

thread_local! {
    static CROWD: Cell<Crowd> = const { Cell::new(Crowd::new()) };
    /// `Crowd::on`, for a quick look.
    static ON: Cell<bool> = const { Cell::new(false) };
}

fn change<R>(with: impl FnOnce(&mut Crowd) -> R) -> R {
    let mut crowd = CROWD.get();
    let result = with(&mut crowd);
    CROWD.set(crowd);
    ON.set(crowd.on);
    result
}

/// Whether this thread sends to a crowd: what it has for a connection is left to the sweep.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.get()
}

/// This thread has flushed a connection by itself, from `start` to `end` (ticks), not to reply.
pub(crate) fn flushed(connection: usize, start: u64, end: u64) {
    if !without(Rule::Crowd) {
        change(|crowd| crowd.flushed(connection, start, end));
    }
}

/// This thread has something for a connection that is not marked: whether it is still left to the
/// sweep.
pub(crate) fn goes_on(now: u64, sweeper_idle: bool) -> bool {
    change(|crowd| crowd.goes_on(now, sweeper_idle))
}

/// This thread has marked a connection for this round of the sweep.
pub(crate) fn marked(round: u32) {
    change(|crowd| crowd.marked(round));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> u64 {
        tautline_io::clock::nanos_to_ticks(n * 1000)
    }

    fn crowded() -> Crowd {
        let mut crowd = Crowd::new();
        for connection in 1..=5 {
            assert!(!crowd.on);
            let start = us(1000 + 10 * connection as u64);
            crowd.flushed(connection, start, start + us(8));
        }
        assert!(crowd.on);
        crowd
    }

    #[test]
    fn the_fifth_connection_within_a_short_time_makes_a_crowd() {
        crowded();
    }

    #[test]
    fn four_connections_are_no_crowd_however_fast() {
        let mut crowd = Crowd::new();
        for n in 0..100 {
            crowd.flushed(n % 4, us(n as u64), us(n as u64) + 1);
        }
        assert!(!crowd.on);
    }

    #[test]
    fn connections_flushed_now_and_then_are_no_crowd_however_many() {
        let mut crowd = Crowd::new();
        for n in 0..100 {
            let start = us(1000 + n as u64 * 30);
            crowd.flushed(n, start, start + us(5));
        }
        assert!(!crowd.on);
    }

    #[test]
    fn a_lull_ends_a_crowd_but_waiting_for_the_sweep_does_not() {
        let mut crowd = crowded();
        assert!(crowd.goes_on(us(20_000), false));
        assert!(crowd.goes_on(us(20_010), true));
        assert!(!crowd.goes_on(us(20_100), true));
        assert!(!crowd.on);
    }

    #[test]
    fn rounds_that_find_few_end_a_crowd() {
        let mut crowd = crowded();
        for round in 1..=3 {
            for _ in 0..5 {
                crowd.marked(round);
            }
        }
        for round in 4..=7 {
            assert!(crowd.on);
            crowd.marked(round);
        }
        assert!(!crowd.on);
    }
}
