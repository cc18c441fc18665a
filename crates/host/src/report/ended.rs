//! The end of an observed process that does not terminate its contexts: its counters file goes, or
//! keeps the exit status.

use std::path::{Path, PathBuf};

use tautline_io::{process_end, thread};
use tautline_queue::sync::{Mutex, lock};

/// The process and its counters file.
static FILE: Mutex<Option<(u32, PathBuf)>> = Mutex::new(None);

/// Looks after the counters file of this process from now on.
pub(super) fn watch(pid: u32, path: &Path) {
    *lock(&FILE) = Some((pid, path.to_owned()));
    process_end::call_at_exit(at_exit);
}

/// The file is removed otherwise.
pub(super) fn forget() {
    *lock(&FILE) = None;
}

fn at_exit(status: i32) {
    // Another thread, or the parent of a forked child, may hold the lock: then the file stays.
    let Ok(file) = FILE.try_lock() else { return };
    if let Some((pid, path)) = &*file
        && *pid == thread::process_id()
    {
        tautline_observe::note_exit(path, status);
    }
}
