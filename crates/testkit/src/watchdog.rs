//! Ends a hanging test.
//!
//! Tests assert no upper time bounds; a lost wake-up would hang the run forever instead. The
//! watchdog turns that into a message and an abort: the process cannot go on, since the hanging
//! thread cannot be stopped.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Runs `body` and aborts the process with a message naming `name` when it is not back within
/// `limit`.
///
/// `limit` is for hangs, not for speed: choose it a hundred times longer than the test takes. A
/// panic in `body` is passed on as usual.
pub fn with_watchdog<T>(limit: Duration, name: &str, body: impl FnOnce() -> T) -> T {
    // Under wine each system call goes to another process.
    let limit = if cfg!(windows) { limit * 10 } else { limit };
    let _guard = Watchdog::start(limit, name, |message| {
        eprintln!("{message}");
        std::process::abort();
    });
    body()
}

/// A running watchdog; dropping it calls it off.
struct Watchdog {
    off: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Watchdog {
    fn start(limit: Duration, name: &str, bark: impl FnOnce(String) + Send + 'static) -> Self {
        let (off, called_off) = mpsc::channel::<()>();
        let name = name.to_owned();
        let thread = thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || {
                // A disconnect is the guard being dropped, also while unwinding.
                if called_off.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                    bark(format!("watchdog: `{name}` hangs: not back after {limit:?}"));
                }
            })
            .expect("the watchdog thread starts");
        Self { off: Some(off), thread: Some(thread) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.off.take());
        if let Some(thread) = self.thread.take() {
            // The thread only waits and reports: a panic of its own has nothing to tell the test.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_the_result_on() {
        assert_eq!(with_watchdog(Duration::from_secs(60), "quick", || 7), 7);
    }

    #[test]
    fn passes_a_panic_on() {
        let result = std::panic::catch_unwind(|| {
            with_watchdog(Duration::from_secs(60), "panics", || panic!("on purpose"));
        });
        assert!(result.is_err());
    }

    #[test]
    fn names_what_hangs() {
        let (said, heard) = mpsc::channel();
        let _guard = Watchdog::start(Duration::ZERO, "slow", move |message| said.send(message).unwrap());
        assert!(heard.recv().unwrap().starts_with("watchdog: `slow` hangs"));
    }
}
