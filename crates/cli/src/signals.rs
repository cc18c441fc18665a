//! SIGINT, SIGTERM and SIGHUP: a descriptor asks a command to end. If the command does not end in
//! time, the process is terminated.
//!
//! A thread reads from the signal handlers. It forwards only the first signal, so that the
//! descriptor does not stay readable. Then it gives the command [`GRACE`] time. This terminates a
//! command that blocks in a write without a reader, or in a program of `--through`. Commands
//! without cleanup do not use this module: the system terminates them.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

use crate::failure::{Code, Failure};
use crate::through;

/// Time that a command has to end: four times the time for its last messages.
const GRACE: Duration = Duration::from_secs(2);
/// A second signal within this time counts as the same one. `timeout` signals both the process and
/// its group, and a closing terminal sends several signals.
const SAME: Duration = Duration::from_millis(200);

/// Signals received by this process.
pub struct Signals {
    /// Carries the number of the first signal.
    first_signal: UnixStream,
    caught: Option<Code>,
}

impl Signals {
    /// Takes over the signals: they no longer terminate the process directly. An ignored SIGHUP
    /// stays ignored, for `nohup`.
    pub fn watch() -> Result<Signals, Failure> {
        Signals::register().map_err(|error| Failure::failed(format!("cannot handle signals: {error}")))
    }

    fn register() -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        let (told, teller) = UnixStream::pair()?;
        told.set_nonblocking(true)?;
        let last = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            // Register in this order, so that the number is set when the thread wakes up.
            signal_hook::flag::register_usize(signal, last.clone(), signal as usize)?;
            low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        thread::Builder::new().name("signals".to_owned()).spawn(move || attend(wake, teller, &last))?;
        Ok(Signals { first_signal: told, caught: None })
    }

    /// Returns a descriptor to wait for. It is no longer readable after [`stop`](Self::stop).
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.first_signal.as_fd()
    }

    /// Returns the exit code if a signal has arrived.
    pub fn stop(&mut self) -> Option<Code> {
        let mut signal = [0];
        if self.caught.is_none() && matches!((&self.first_signal).read(&mut signal), Ok(1)) {
            self.caught = Some(match i32::from(signal[0]) {
                SIGINT => Code::Interrupted,
                SIGHUP => Code::HungUp,
                _ => Code::Terminated,
            });
        }
        self.caught
    }

    /// True if [`stop`](Self::stop) has returned a code.
    pub fn has_stopped(&self) -> bool {
        self.caught.is_some()
    }

    /// Fails if a signal has arrived, because the command has more to do.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.stop().map_or(Ok(()), |code| Err(Failure::new(code, "")))
    }
}

/// Forwards the first signal. Terminates the process after a second signal or at the end of the
/// grace time.
fn attend(mut wake: UnixStream, mut teller: UnixStream, last: &AtomicUsize) {
    if !wait_for_signal(&mut wake) {
        return;
    }
    let start = Instant::now();
    let signal = last.load(Ordering::SeqCst) as u8;
    // If no receiver is left, the process is ending.
    let _ = teller.write_all(&[signal]);
    while let Some(left) = GRACE.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        let waits = wake.set_read_timeout(Some(left)).is_ok();
        if !waits || (wait_for_signal(&mut wake) && start.elapsed() > SAME) {
            break;
        }
    }
    through::abandon();
    low_level::exit(128 + i32::from(signal));
}

/// True if a handler has written. False after the time limit.
fn wait_for_signal(wake: &mut UnixStream) -> bool {
    loop {
        match wake.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return matches!(outcome, Ok(1)),
        }
    }
}

/// True if the process was started with this signal ignored. False if the system does not tell.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
