//! Telling the user of the program, on standard error.

use std::io::Write;
use std::sync::mpsc;
use std::time::Duration;
use tautline_io::thread::OwnThread;

/// How long the caller waits for it: a program that is about to end should have told.
const PATIENCE: Duration = Duration::from_millis(500);

/// Writes a line. A thread of its own does, which no signal can reach: neither SIGPIPE of a pipe
/// that nothing reads any more, nor SIGXFSZ. What cannot be written is lost.
pub(crate) fn say(text: &str) {
    let line = format!("tautline: {text}\n");
    let (done, is_done) = mpsc::channel();
    let said = std::thread::Builder::new().name("ZMQbg/say".into()).spawn(move || {
        let _own = OwnThread::new();
        let _ = std::io::stderr().write_all(line.as_bytes());
        let _ = done.send(());
    });
    if said.is_ok() {
        // It is left alone if nothing reads what it writes.
        let _ = is_done.recv_timeout(PATIENCE);
    }
}
