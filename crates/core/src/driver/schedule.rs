//! Chores that the I/O thread runs one by one, each at its own time: the rounds over a log
//! (`conn::LogReaders`) and the wake-ups of inproc receivers (`conn::ReceiverWakeups`).

use std::time::{Duration, Instant};
use tautline_io::fd::BorrowedFd;
use tautline_io::timer::TimerFd;
use tautline_queue::handoff::chore::ScheduledChore;
use tautline_queue::sync::atomic::AtomicBool;
use tautline_queue::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use tautline_queue::sync::{Arc, Mutex, lock};

/// A chore, and the time at which the I/O thread runs it.
pub(super) type Due = (Instant, Arc<dyn ScheduledChore>);

/// New chores that one I/O thread has not taken yet.
pub(super) struct ChoreSchedule {
    /// Expires when a new chore is due. Arming this timer avoids a wake-up of the I/O thread now.
    timer: TimerFd,
    new: Mutex<Vec<Due>>,
    // Relaxed: look: the chores are under a lock, and the thread is woken or the timer armed
    // behind it.
    has_new: AtomicBool,
}

impl ChoreSchedule {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(ChoreSchedule { timer: TimerFd::new()?, new: Mutex::default(), has_new: AtomicBool::new(false) })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Any thread: adds a chore that the I/O thread runs after this time. Returns true if the
    /// caller must wake the I/O thread.
    pub(super) fn add(&self, chore: Arc<dyn ScheduledChore>, after: Duration) -> bool {
        lock(&self.new).push((Instant::now() + after, chore));
        // Release pairs with the swap in `run`, which clears before it takes.
        self.has_new.store(true, Release);
        if !after.is_zero() {
            self.timer.arm(after);
        }
        after.is_zero()
    }

    /// I/O thread: handles the expired timer.
    pub(super) fn handle_expiry(&self) {
        self.timer.drain();
    }

    /// I/O thread: runs the due chores. `waiting` has the chores that the I/O thread has already
    /// taken.
    pub(super) fn run(&self, waiting: &mut Vec<Due>) {
        if self.has_new.load(Relaxed) && self.has_new.swap(false, AcqRel) {
            waiting.append(&mut lock(&self.new));
        }
        if waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        for index in (0..waiting.len()).rev() {
            if waiting[index].0 <= now {
                let (_, chore) = waiting.swap_remove(index);
                if let Some(pause) = chore.run() {
                    waiting.push((Instant::now() + pause, chore));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tautline_queue::sync::atomic::AtomicU32;

    /// Visited so often, at once.
    struct Times(AtomicU32);

    impl ScheduledChore for Times {
        fn run(&self) -> Option<Duration> {
            let left = self.0.load(Relaxed).saturating_sub(1);
            self.0.store(left, Relaxed);
            (left > 0).then_some(Duration::ZERO)
        }
    }

    #[test]
    fn each_is_visited_once_a_turn_until_it_is_done() {
        let visits = ChoreSchedule::new().unwrap();
        let mut waiting = Vec::new();
        let all = [1, 3, 2].map(|times| Arc::new(Times(AtomicU32::new(times))));
        assert!(
            !visits.add(Arc::new(Times(AtomicU32::new(1))), Duration::from_secs(1000)),
            "its timer is armed"
        );
        for chore in &all {
            assert!(visits.add(chore.clone(), Duration::ZERO));
        }
        for left in [3, 2, 1] {
            visits.run(&mut waiting);
            assert_eq!(waiting.len(), left);
        }
    }
}
