//! The timers of an I/O thread.
//!
//! A source cannot cancel a timer. If the source is gone or no longer needs the timer, the timer
//! expires without effect. Until then, the timer holds the memory of its source. Peers that connect
//! and disconnect create many timers within the time of a handshake, and a connect that is retried
//! often creates many within a long ZMQ_CONNECT_TIMEOUT. So useless timers are removed each time
//! the total number has doubled.

use super::EventSource;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Weak;
use std::time::Instant;

/// Number of timers up to which useless timers are not removed.
const MIN_CLEANUP: usize = 1024;

/// One timer.
pub(super) struct Timer {
    pub(super) at: Instant,
    /// Number that the source gets back in `on_timer`. Also orders timers of the same time.
    pub(super) key: u64,
    /// Weak: a useless timer must not keep its source, and with it a closed socket, alive.
    pub(super) source: Weak<dyn EventSource>,
}

/// All timers of the thread.
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
    /// Number of timers at which useless timers are removed next.
    cleanup_at: usize,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new(), cleanup_at: MIN_CLEANUP }
    }
}

impl Timers {
    /// Adds a timer.
    pub(super) fn push(&mut self, timer: Timer) {
        self.heap.push(Reverse(timer));
    }

    /// Removes useless timers if there are many timers. The caller holds no lock of a source.
    pub(super) fn clean_up(&mut self) {
        if self.heap.len() < self.cleanup_at {
            return;
        }
        let is_useful =
            |timer: &Timer| timer.source.upgrade().is_some_and(|source| source.needs_timer(timer.key));
        self.heap.retain(|Reverse(timer)| is_useful(timer));
        self.heap.shrink_to(MIN_CLEANUP);
        self.cleanup_at = (2 * self.heap.len()).max(MIN_CLEANUP);
    }

    /// Time of the next timer.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(timer)| timer.at)
    }

    /// Removes and returns the next timer if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(timer)| timer)
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.key).cmp(&(other.at, other.key))
    }
}

#[cfg(test)]
mod tests {
    use super::super::EventLoop;
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;
    use tautline_io::reactor::Event;
    use tautline_queue::sync::Arc;

    struct Nobody;

    impl EventSource for Nobody {
        fn on_ready(self: Arc<Self>, _turn: &mut EventLoop, _event: &Event) {}
        fn on_timer(self: Arc<Self>, _turn: &mut EventLoop, _key: u64) {}
    }

    /// Needs only its last timer.
    #[derive(Default)]
    struct Retries(AtomicU64);

    impl EventSource for Retries {
        fn on_ready(self: Arc<Self>, _turn: &mut EventLoop, _event: &Event) {}
        fn on_timer(self: Arc<Self>, _turn: &mut EventLoop, _key: u64) {}
        fn needs_timer(&self, key: u64) -> bool {
            key == self.0.load(Relaxed)
        }
    }

    fn timer(source: &Arc<Nobody>, at: Instant, key: u64) -> Timer {
        let weak: Weak<Nobody> = Arc::downgrade(source);
        Timer { at, key, source: weak }
    }

    #[test]
    fn they_come_in_their_order() {
        let (mut timers, source, start) = (Timers::default(), Arc::new(Nobody), Instant::now());
        for key in [3, 1, 2] {
            timers.push(timer(&source, start + Duration::from_secs(key), key));
        }
        assert_eq!(timers.next(), Some(start + Duration::from_secs(1)));
        assert!(timers.pop_due(start).is_none());
        let later = start + Duration::from_secs(2);
        assert_eq!(timers.pop_due(later).map(|timer| timer.key), Some(1));
        assert_eq!(timers.pop_due(later).map(|timer| timer.key), Some(2));
        assert!(timers.pop_due(later).is_none());
    }

    #[test]
    fn timers_of_dropped_sources_are_removed() {
        let (mut timers, stays, at) = (Timers::default(), Arc::new(Nobody), Instant::now());
        for key in 0..100_000 {
            let source = if key % 100 == 0 { stays.clone() } else { Arc::new(Nobody) };
            timers.push(timer(&source, at, key));
            timers.clean_up();
            assert!(timers.heap.len() <= MIN_CLEANUP.max(2 * key as usize / 100 + 2));
        }
        let mut kept = 0;
        while let Some(timer) = timers.pop_due(at) {
            kept += usize::from(timer.source.strong_count() > 0);
        }
        assert_eq!(kept, 1000);
    }

    #[test]
    fn timers_that_a_source_no_longer_needs_are_removed() {
        let (mut timers, source) = (Timers::default(), Arc::new(Retries::default()));
        let at = Instant::now();
        for key in 0..100_000 {
            source.0.store(key, Relaxed);
            let weak: Weak<Retries> = Arc::downgrade(&source);
            timers.push(Timer { at, key, source: weak });
            timers.clean_up();
            assert!(timers.heap.len() <= MIN_CLEANUP);
        }
        let last = std::iter::from_fn(|| timers.pop_due(at)).any(|timer| timer.key == 99_999);
        assert!(last, "the timer that is needed stays");
    }
}
