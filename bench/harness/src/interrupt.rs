//! SIGINT, SIGTERM and SIGHUP: the harness kills the running program and ends the run as after a failure, so
//! that everything it created in the system is removed.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static RUNNING: Mutex<Option<Arc<Mutex<Child>>>> = Mutex::new(None);

/// Error text of an interrupted run.
pub(crate) const INTERRUPTED_ERROR: &str = "interrupted";

/// Installs the handlers. A signal no longer ends the process at once.
pub(crate) fn install_handlers() -> Result<(), String> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(|e| format!("signals: {e}"))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            INTERRUPTED.store(true, Ordering::SeqCst);
            kill_running();
        }
    });
    Ok(())
}

/// Fails if a signal asked the run to end.
pub(crate) fn check() -> Result<(), String> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err(INTERRUPTED_ERROR.to_owned()) } else { Ok(()) }
}

/// Sets the running program, or `None`.
pub(crate) fn set_running(child: Option<Arc<Mutex<Child>>>) {
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = child;
    // The signal may have arrived before the program was registered here.
    if check().is_err() {
        kill_running();
    }
}

fn kill_running() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(child) = running {
        let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }
}
