//! SIGINT, SIGTERM and SIGHUP: a command is asked to end by a descriptor, and made to if it does
//! not.
//!
//! A thread reads what the handlers write. It passes the first signal on, once, so that nothing
//! stays readable, and then gives the command [`GRACE`]: one that hangs in a write that is not
//! read, or in a command of `--through`, is ended then. Commands that have nothing to put in
//! order do not come here, and are ended by the system.

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

/// How long a command has to end by itself: four times what the last messages are given.
const GRACE: Duration = Duration::from_secs(2);
/// A second signal within this time is the same one: `timeout` sends it to the process and to its
/// group, and a terminal that closes tells more than once.
const SAME: Duration = Duration::from_millis(200);

/// What the signals of this process have asked for.
pub struct Signals {
    /// The number of the first one.
    told: UnixStream,
    caught: Option<Code>,
}

impl Signals {
    /// From now on signals no longer end the process by themselves. SIGHUP stays ignored if it is,
    /// as `nohup` wants it.
    pub fn watch() -> Result<Signals, Failure> {
        Signals::register().map_err(|error| Failure::failed(format!("signals: {error}")))
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
            // In this order: the number is there when the thread is woken.
            signal_hook::flag::register_usize(signal, last.clone(), signal as usize)?;
            low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        thread::Builder::new().name("signals".to_owned()).spawn(move || attend(wake, teller, &last))?;
        Ok(Signals { told, caught: None })
    }

    /// To wait for. No longer readable after [`stop`](Self::stop).
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }

    /// Whether one has come, and which kind of end that is.
    pub fn stop(&mut self) -> Option<Code> {
        let mut signal = [0];
        if self.caught.is_none() && matches!((&self.told).read(&mut signal), Ok(1)) {
            self.caught = Some(match i32::from(signal[0]) {
                SIGINT => Code::Interrupted,
                SIGHUP => Code::HungUp,
                _ => Code::Terminated,
            });
        }
        self.caught
    }

    /// Whether [`stop`](Self::stop) has said so.
    pub fn was_told(&self) -> bool {
        self.caught.is_some()
    }

    /// Whether one has come, as the end of a command that was to do more.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.stop().map_or(Ok(()), |code| Err(Failure::new(code, "")))
    }
}

/// Passes the first signal on; a second one, or the end of the grace, is the end of the process.
fn attend(mut wake: UnixStream, mut teller: UnixStream, last: &AtomicUsize) {
    if !reads(&mut wake) {
        return;
    }
    let start = Instant::now();
    let signal = last.load(Ordering::SeqCst) as u8;
    // With nothing left to hear it, the process is ending.
    let _ = teller.write_all(&[signal]);
    while let Some(left) = GRACE.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        let waits = wake.set_read_timeout(Some(left)).is_ok();
        if !waits || (reads(&mut wake) && start.elapsed() > SAME) {
            break;
        }
    }
    through::abandon();
    low_level::exit(128 + i32::from(signal));
}

/// Whether a handler has written; `false` after the time limit.
fn reads(wake: &mut UnixStream) -> bool {
    loop {
        match wake.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return matches!(outcome, Ok(1)),
        }
    }
}

/// Whether the process was started with this signal ignored. Where the system does not say, it was
/// not.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
