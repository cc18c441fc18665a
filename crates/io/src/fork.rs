//! Detects a forked child without a system call.
//!
//! A child has the memory of its parent but only the thread that forked. A handler of fork(2) runs
//! in the child before fork returns there. `vfork`, `posix_spawn`, `_Fork` and a bare `clone` call
//! no handlers. After those calls only the process id shows the difference.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

#[cfg_attr(unix, path = "fork/posix.rs")]
#[cfg_attr(windows, path = "fork/windows.rs")]
mod os;

/// Number of forks between this process and the ancestor that called [`start_counting`] first.
// Relaxed: own: written only while the child has one thread.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Returns the number of forks between this process and the ancestor that called [`start_counting`]
/// first.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Starts to count forks. Has no effect after the first call.
pub fn start_counting() {
    // Relaxed: number: one thread registers, and other threads need not wait for it.
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.swap(true, Relaxed) {
        call_in_child(count);
    }
}

/// Calls `handler` in every child forked from now on, in the child's only thread. The handler must
/// not take a lock or allocate memory. If the system lacks the memory to register the handler, it
/// is not called.
pub fn call_in_child(handler: extern "C" fn()) {
    os::call_in_child(handler);
}

/// Calls the handlers at every fork from now on: before it, after it in the parent (also if it has
/// failed), and after it in the child, where [`call_in_child`] sets the rules. All three run on the
/// thread that forks.
#[cfg(linux_kernel)]
pub(crate) fn call_around(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    os::call_around(Some(prepare), Some(parent), child);
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
        start_counting();
        start_counting();
        let mine = generation();
        // SAFETY: the child reads a number and ends; it takes no lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(libc::c_int::from(generation() != mine + 1)) };
        }
        assert!(child > 0);
        let mut status = -1;
        // SAFETY: the child belongs to this process, and the status goes into a variable.
        let ended = unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((ended, status, generation()), (child, 0, mine));
    }
}
