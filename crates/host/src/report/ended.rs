//! Notes in the header of the counters file, written without the thread of the watch: the exit
//! status of a process that does not terminate its contexts, and the refused calls of forked
//! children.

use std::path::{Path, PathBuf};

use tautline_io::{process_end, thread};
use tautline_queue::sync::atomic::AtomicU64;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Mutex, lock};

/// The observed process and its counters file.
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

/// In a forked child: notes a refused call in the file of the parent. Writes the counts 1, 2, 4, 8,
/// so that a child which calls again and again costs little.
pub(super) fn note_forked_call() {
    // Relaxed: number, of this process alone.
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let calls = CALLS.fetch_add(1, Relaxed) + 1;
    if !calls.is_power_of_two() {
        return;
    }
    // A thread of the parent may have held the lock while the parent was forked.
    if let Ok(file) = FILE.try_lock()
        && let Some((_, path)) = &*file
    {
        tautline_observe::note_forked_calls(path, calls);
    }
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
