//! Forked children, told from their parents without a system call.
//!
//! A child has the memory of its parent, and none of its other threads. A handler of fork(2) runs
//! in the child before fork returns there. `vfork`, `posix_spawn`, `_Fork` and a bare `clone` call
//! no handlers: after them the process id alone tells.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

#[cfg_attr(unix, path = "fork/posix.rs")]
#[cfg_attr(windows, path = "fork/windows.rs")]
mod os;

/// Number of forks between this process and the ancestor that has called [`watch`] first.
// Relaxed: own: written while the child has one thread only.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Returns the number of forks that lie between this process and the one that called [`watch`].
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Begins to count forks. Without effect after the first call.
pub fn watch() {
    // Relaxed: number: one thread registers, and others need not wait for it.
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.swap(true, Relaxed) {
        call_in_child(count);
    }
}

/// Calls `handler` in every child that is forked from now on, in its only thread. The handler must
/// take no lock and no memory. Where the system has no memory for the handler, it is not called.
pub fn call_in_child(handler: extern "C" fn()) {
    os::call_in_child(handler);
}

extern "C" fn count() {
    GENERATION.store(GENERATION.load(Relaxed).wrapping_add(1), Relaxed);
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::libc;

    #[test]
    fn a_child_is_of_the_next_generation() {
        watch();
        watch();
        let mine = generation();
        // SAFETY: the child reads a number and ends; it takes no lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(libc::c_int::from(generation() != mine + 1)) };
        }
        assert!(child > 0);
        let mut status = -1;
        // SAFETY: the child is of this process, and the status goes into a variable.
        let ended = unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((ended, status, generation()), (child, 0, mine));
    }
}
