//! Telling the user of the program, on standard error.

use std::io::Write;
use std::sync::mpsc;
use std::time::Duration;
use tautline_io::thread::OwnThread;

/// How long the caller waits for it: a program that is about to end should have told.
const PATIENCE: Duration = Duration::from_millis(500);

/// Writes a line, and waits a little until it is written: for a call that is about to fail.
pub(crate) fn say(text: &str) {
    // It is left alone if nothing reads what it writes.
    let _ = say_later(text).recv_timeout(PATIENCE);
}

/// Writes a line. A thread of its own does, which no signal can reach: neither SIGPIPE of a pipe
/// that nothing reads any more, nor SIGXFSZ. What cannot be written is lost.
pub(crate) fn say_later(text: &str) -> mpsc::Receiver<()> {
    let line = format!("tautline: {text}\n");
    let (done, is_done) = mpsc::channel();
    let _ = std::thread::Builder::new().name("ZMQbg/say".into()).spawn(move || {
        let _own = OwnThread::new();
        let _ = std::io::stderr().write_all(line.as_bytes());
        let _ = done.send(());
    });
    is_done
}
