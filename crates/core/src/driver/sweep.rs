//! The sweep: writes the queues of connections whose senders have too many of them to do it
//! themselves (`timing::crowd`).
//!
//! A sender marks a connection and adds it to the dirty list, once until the sweep has come by; the
//! first one wakes the I/O thread. While it writes one queue after the other, the senders fill them
//! again, so that the more there is to do the more goes out with each write. The I/O thread's other
//! duties come in between, after every few connections.
//!
//! If a round ends when half as many connections wait again as it has written, messages come in a
//! stream. If there was little for each, the next round begins a little later: the senders, which
//! may need this very core, put more into each write. An owner that goes to sleep ends the rest,
//! since nothing will come from it.

use crate::ablation::{Rule, without};
use crate::conn::dirty::{Added, DirtyList};
use crate::conn::{Connection, Flushed};
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Connections swept before others get their turn.
const BATCH: usize = 64;
/// Most bytes of one connection in one round.
const MOST_BYTES: u64 = 256 * 1024;

/// After rounds so short that the rest would be shorter, the next one begins at once: it is the
/// sender that has too little time, not the sweep. A longer rest would be too long for the last
/// message of a stream.
const REST: std::ops::RangeInclusive<Duration> = Duration::from_micros(500)..=Duration::from_millis(10);

/// If this many bytes went out with each write, more would not make them cheaper.
const ENOUGH: u64 = 4096;

/// The sweep of one I/O thread.
pub(super) struct Sweep {
    dirty: DirtyList<Arc<Connection>>,
    rest: Rest,
}

/// The I/O thread's rest between two rounds, which owners end.
#[derive(Default)]
struct Rest {
    resting: AtomicBool,
    hurried: AtomicBool,
}

impl Rest {
    /// I/O thread: begins, unless it has been hurried since the last time.
    fn begin(&self) -> bool {
        // Store, then load, and the other way round in `hurry`: one of the two sees the other.
        self.resting.store(true, SeqCst);
        !self.hurried.swap(false, SeqCst)
    }

    /// I/O thread: whether no thread has ended it.
    fn goes_on(&self) -> bool {
        self.resting.load(SeqCst)
    }

    /// I/O thread: has begun the next round.
    fn end(&self) {
        self.resting.store(false, SeqCst);
    }

    /// Any thread: what waits is written now. True if the I/O thread must be woken for that.
    fn hurry(&self) -> bool {
        self.hurried.store(true, SeqCst);
        self.resting.swap(false, SeqCst)
    }
}

/// What the I/O thread has taken from the list and not written yet.
pub(super) struct Work {
    connections: Vec<Arc<Connection>>,
    round: Option<Round>,
    rests_until: Option<Instant>,
}

/// A round under way.
struct Round {
    began: Instant,
    connections: usize,
    bytes: u64,
}

impl Round {
    /// How long the next round waits for more, if `waiting` connections have something by now.
    fn rest(&self, waiting: usize) -> Option<Duration> {
        let streams = waiting * 2 >= self.connections && !without(Rule::SweepPause);
        let little = self.bytes < self.connections as u64 * ENOUGH;
        let rest = (self.began.elapsed() / 2).min(*REST.end());
        (streams && little && rest >= *REST.start()).then_some(rest)
    }
}

impl Work {
    pub(super) fn new() -> Self {
        Work { connections: Vec::new(), round: None, rests_until: None }
    }
}

/// What is to come after a step of the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing, before something is added.
    Idle,
    /// Another step.
    Go,
    /// Another step, at this time or when it is hurried.
    Rest(Instant),
}

impl Sweep {
    pub(super) fn new() -> Self {
        Sweep { dirty: DirtyList::new(), rest: Rest::default() }
    }

    /// Any thread: a connection that was just marked.
    pub(super) fn add(&self, connection: &Arc<Connection>) -> Added {
        self.dirty.add(connection.clone())
    }

    /// Whether all that was marked is written.
    pub(super) fn is_idle(&self) -> bool {
        self.dirty.is_idle()
    }

    /// Owner, before it sleeps: there is nothing to wait for. True if the I/O thread rests, and
    /// must be woken.
    pub(super) fn hurry(&self) -> bool {
        !self.is_idle() && self.rest.hurry()
    }

    /// I/O thread: writes some queues.
    pub(super) fn run(&self, work: &mut Work) -> Next {
        if let Some(until) = work.rests_until {
            if self.rest.goes_on() && Instant::now() < until {
                return Next::Rest(until);
            }
            work.rests_until = None;
        } else if work.connections.is_empty()
            && let Some(round) = work.round.take()
            && let Some(rest) = round.rest(self.dirty.len())
            && self.rest.begin()
        {
            let until = Instant::now() + rest;
            work.rests_until = Some(until);
            return Next::Rest(until);
        }
        if work.connections.is_empty() {
            self.rest.end();
            if !self.dirty.take(&mut work.connections, |connection| &connection.swept) {
                return Next::Idle;
            }
            work.round = Some(Round { began: Instant::now(), connections: work.connections.len(), bytes: 0 });
            // In the order of the list, from the end.
            work.connections.reverse();
        }
        let Work { connections: work, round, .. } = work;
        let mut bytes = 0;
        for connection in work.drain(work.len().saturating_sub(BATCH)..).rev() {
            match connection.flush_some(MOST_BYTES, &mut bytes) {
                Some(Flushed::Drained) => connection.tell_room(),
                Some(Flushed::NoLink | Flushed::Lost(_)) => {}
                Some(Flushed::Blocked) => {
                    connection.want_write();
                }
                Some(Flushed::Partly) => {
                    if connection.swept.set() {
                        self.add(&connection);
                    }
                }
                // Its owner is writing, or waits for the kernel.
                None => connection.watch_residual(),
            }
        }
        if let Some(round) = round {
            round.bytes += bytes;
        }
        Next::Go
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_rounds_of_a_stream_with_little_for_each_are_followed_by_a_rest() {
        let began = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let rest = |bytes, waiting| Round { began, connections: 100, bytes }.rest(waiting);
        assert_eq!(rest(6600, 50), Some(*REST.end()));
        assert_eq!(rest(6600, 49), None, "one message each, and then few");
        assert_eq!(rest(100 * ENOUGH, 100), None, "enough for each");
        let short = Round { began: Instant::now() + Duration::from_secs(1), connections: 100, bytes: 6600 };
        assert_eq!(short.rest(100), None, "too short to tell");
    }

    #[test]
    fn a_rest_is_ended_once_and_not_begun_if_that_came_before() {
        let rest = Rest::default();
        assert!(rest.begin() && rest.goes_on());
        assert!(rest.hurry(), "wake it");
        assert!(!rest.goes_on() && !rest.hurry());
        rest.end();
        assert!(!rest.begin(), "it was hurried meanwhile");
        rest.end();
        assert!(rest.begin() && rest.goes_on());
    }
}
