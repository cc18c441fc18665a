//! Wakes a task at a time. It works on every executor, because its own thread waits.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Instant;

use crate::error::{Error, Result};

/// An alarm and its thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Alarm {
    shared: Arc<Mutex<AlarmState>>,
    /// Reports an earlier time. Its end ends the thread.
    earlier: Sender<()>,
}

#[derive(Debug, Default)]
struct AlarmState {
    /// `None`: no task waits.
    at: Option<Instant>,
    waker: Option<Waker>,
}

impl Alarm {
    /// # Errors
    /// Returns [`Error::Os`] if the thread cannot be created.
    pub(crate) fn start() -> Result<Alarm> {
        let shared = Arc::<Mutex<AlarmState>>::default();
        let (earlier, changes) = mpsc::channel();
        let of_thread = shared.clone();
        thread::Builder::new()
            .name("ZMQ/alarm".into())
            .spawn(move || run(&of_thread, &changes))
            .map_err(|error| Error::from(tautline_core::Error::from(error)))?;
        Ok(Alarm { shared, earlier })
    }

    /// Wakes the task once at this time. Replaces the previous time and task.
    pub(crate) fn set(&self, at: Instant, waker: &Waker) {
        let mut state = lock(&self.shared);
        // The thread sees a later time when it wakes up at the earlier one.
        let is_earlier = state.at.is_none_or(|before| at < before);
        state.at = Some(at);
        match &mut state.waker {
            Some(old) => old.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        drop(state);
        if is_earlier {
            // The thread exists as long as `self`.
            let _ = self.earlier.send(());
        }
    }
}

fn run(shared: &Mutex<AlarmState>, changes: &Receiver<()>) {
    loop {
        let at = lock(shared).at;
        let outcome = match at {
            Some(at) => changes.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => changes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match outcome {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                // Wake without the lock, because an executor may run any code here.
                let waker = take_due(&mut lock(shared));
                waker.into_iter().for_each(Waker::wake);
            }
        }
    }
}

fn take_due(state: &mut AlarmState) -> Option<Waker> {
    state.at.take_if(|at| *at <= Instant::now())?;
    state.waker.take()
}

// Ignores poisoning: the protected data is consistent even if a task has panicked.
fn lock(shared: &Mutex<AlarmState>) -> MutexGuard<'_, AlarmState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::task::Wake;
    use std::time::Duration;

    use tautline_testkit::with_watchdog;

    use super::*;

    struct Count(Sender<Instant>);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.send(Instant::now()).unwrap();
        }
    }

    #[test]
    fn task_is_woken_at_the_last_set_time() {
        with_watchdog(Duration::from_secs(60), "task_is_woken_at", || {
            let (sender, woken) = mpsc::channel();
            let waker = Arc::new(Count(sender)).into();
            let alarm = Alarm::start().unwrap();
            let after = |time| Instant::now() + Duration::from_millis(time);
            let far = after(3_600_000);
            let near = after(20);
            alarm.set(far, &waker);
            alarm.set(near, &waker);
            assert!(woken.recv().unwrap() >= near);
            let (first, last) = (after(20), after(40));
            alarm.set(first, &waker);
            alarm.set(last, &waker);
            // The first time may have passed before the second call.
            while woken.recv().unwrap() < last {}
            // The end of the thread drops its waker without a further call.
            alarm.set(far, &waker);
            drop((alarm, waker));
            assert!(woken.recv().is_err());
        });
    }
}
