//! A timer without a timerfd: a thread sleeps until the timer expires, and then makes a descriptor
//! readable.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::fd::BorrowedFd;
use crate::thread;
use crate::wake::WakeFd;

/// A one-shot timer.
#[derive(Debug)]
pub(super) struct ThreadTimer {
    shared: Arc<Shared>,
    /// The thread, and the process that owns it. A forked child does not have the thread.
    thread: Option<(thread::Started, u32)>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified at every change of the state.
    changed: Condvar,
    wake: WakeFd,
}

#[derive(Debug, Default)]
struct State {
    due: Option<Instant>,
    dropped: bool,
}

impl ThreadTimer {
    /// Creates a timer that is not armed, and starts its thread.
    pub(super) fn start() -> io::Result<Self> {
        let shared =
            Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), wake: WakeFd::new()? });
        let sleeper = shared.clone();
        let thread = thread::start("ZMQbg/timer", STACK, move || sleeper.work())?;
        Ok(ThreadTimer { shared, thread: Some((thread, thread::process_id())) })
    }

    /// Arms or disarms the timer. Forgets an expiry that was not drained.
    pub(super) fn set(&self, after: Option<Duration>) {
        let mut state = self.shared.state();
        state.due = after.map(|after| Instant::now() + after);
        self.shared.wake.drain();
        self.shared.changed.notify_one();
    }

    pub(super) fn drain(&self) -> bool {
        self.shared.wake.drain()
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        let Some((sleeper, process)) = self.thread.take() else { return };
        if process != thread::process_id() {
            // In a forked child the state may stay locked, because the thread that holds the lock
            // does not exist there. The handle may belong to one of the child's own threads.
            return std::mem::forget(sleeper);
        }
        self.shared.state().dropped = true;
        self.shared.changed.notify_one();
        sleeper.join();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let _own = thread::OwnThread::new();
        thread::set_timer_slack_ns(1);
        let mut state = self.state();
        while !state.dropped {
            let left = state.due.map(|due| due.saturating_duration_since(Instant::now()));
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => {
                    // Under the lock, because `set` forgets an earlier expiry.
                    state.due = None;
                    self.wake.wake();
                    state
                }
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// Stack size. Sufficient for a thread that only sleeps.
const STACK: usize = 64 * 1024;
