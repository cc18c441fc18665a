//! Ends a hanging test.
//!
//! Tests assert no upper time bounds, so a lost wake-up would hang the run forever. The watchdog
//! prints a message and aborts. The process cannot continue, because a hanging thread cannot be
//! stopped.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Runs `body`. If it does not return within `limit`, aborts the process with a message that
/// contains `name`.
///
/// `limit` detects hangs, not slow code: choose it a hundred times longer than the test takes. A
/// panic in `body` is passed on to the caller.
pub fn with_watchdog<T>(limit: Duration, name: &str, body: impl FnOnce() -> T) -> T {
    // Under wine, each system call goes to another process.
    let limit = if cfg!(windows) { limit * 10 } else { limit };
    let _guard = Watchdog::start(limit, name, |message| {
        eprintln!("{message}");
        std::process::abort();
    });
    body()
}

/// A running watchdog. Dropping it stops it.
struct Watchdog {
    disarm: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Watchdog {
    fn start(limit: Duration, name: &str, bark: impl FnOnce(String) + Send + 'static) -> Self {
        let (off, called_off) = mpsc::channel::<()>();
        let name = name.to_owned();
        let thread = thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || {
                // A disconnect means that the guard was dropped, possibly while unwinding.
                if called_off.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                    bark(format!("watchdog: `{name}` hangs: not back after {limit:?}"));
                }
            })
            .expect("the watchdog thread starts");
        Self { disarm: Some(off), thread: Some(thread) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.disarm.take());
        if let Some(thread) = self.thread.take() {
            // The thread only waits and reports, so a panic of its own does not concern the test.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_returned() {
        assert_eq!(with_watchdog(Duration::from_secs(60), "quick", || 7), 7);
    }

    #[test]
    fn panic_is_propagated() {
        let result = std::panic::catch_unwind(|| {
            with_watchdog(Duration::from_secs(60), "panics", || panic!("on purpose"));
        });
        assert!(result.is_err());
    }

    #[test]
    fn hanging_test_is_named() {
        let (said, heard) = mpsc::channel();
        let _guard = Watchdog::start(Duration::ZERO, "slow", move |message| said.send(message).unwrap());
        assert!(heard.recv().unwrap().starts_with("watchdog: `slow` hangs"));
    }
}
