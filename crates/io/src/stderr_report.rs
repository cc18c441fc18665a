//! Reports to the user of the program, on standard error.

use crate::fd::RawFd;
use crate::poll::{self, PollFd};
use crate::thread::{self, OwnThread};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

/// The descriptor of standard error.
const STDERR: RawFd = 2;

/// Maximum time that the caller waits for the report: a program that is about to exit should have
/// written it.
const PATIENCE: Duration = Duration::from_millis(500);

/// True if the previous line could not be written because standard error has no reader.
// Relaxed: number: an old value costs a wait.
static STUCK: AtomicBool = AtomicBool::new(false);

/// Writes a line, and waits a short time until it is written: for a call that is about to fail.
/// Does not wait if the previous line could not be written.
pub fn report_and_wait(text: &str) {
    let was_stuck = STUCK.load(Relaxed);
    let written = report_in_background(text);
    if !was_stuck && written.recv_timeout(PATIENCE).is_err() {
        STUCK.store(true, Relaxed);
    }
}

/// Writes a line on a separate thread, which blocks all signals: SIGPIPE of a pipe without a reader
/// and SIGXFSZ cannot end the process. If the line cannot be written within half a second, it is
/// lost.
pub fn report_in_background(text: &str) -> mpsc::Receiver<()> {
    let line = format!("tautline: {text}\n");
    let (done, is_done) = mpsc::channel();
    let _ = thread::start("ZMQbg/say", thread::STACK, move || {
        let _own = OwnThread::new();
        // A pipe with room takes a short line as a whole, so the write does not block.
        let mut stderr = [PollFd::new(STDERR, PollFd::OUT)];
        let patience = if STUCK.load(Relaxed) { Duration::ZERO } else { PATIENCE };
        let has_room = !matches!(poll::poll(&mut stderr, Some(patience)), Ok(0));
        if has_room {
            let _ = std::io::stderr().write_all(line.as_bytes());
            let _ = done.send(());
        }
        STUCK.store(!has_room, Relaxed);
    });
    is_done
}
