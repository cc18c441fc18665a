//! Tasks that an I/O thread has to wake.
//!
//! What a task's waker does is up to its executor: it may drop the task, and the sockets that live
//! in it, or run it at once, or panic. An I/O thread has news in the middle of reading, with a
//! baton and locks in its hands, so it wakes when it has none. Others wake at once.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

thread_local! {
    /// Whether the thread puts off.
    static PUTS_OFF: Cell<bool> = const { Cell::new(false) };
    // Without a destructor, see `tautline_io::thread::at_end`; freed by `end`.
    static TASKS: Cell<ManuallyDrop<Vec<Waker>>> = const { Cell::new(ManuallyDrop::new(Vec::new())) };
}

/// From now on the calling thread, an I/O thread, wakes by [`run`].
pub(crate) fn begin() {
    PUTS_OFF.set(true);
}

/// The I/O thread ends.
pub(crate) fn end() {
    run();
    PUTS_OFF.set(false);
    drop(ManuallyDrop::into_inner(TASKS.take()));
}

/// Wakes a task, now or soon.
pub(super) fn wake(task: Waker) {
    if !PUTS_OFF.get() {
        task.wake();
        return;
    }
    let mut tasks = TASKS.take();
    tasks.push(task);
    TASKS.set(tasks);
}

/// I/O thread, without locks: wakes the tasks for which something has come.
pub(crate) fn run() {
    loop {
        let mut tasks = TASKS.take();
        let Some(task) = tasks.pop() else {
            // Back comes the memory, too.
            TASKS.set(tasks);
            return;
        };
        // It may put off others.
        TASKS.set(tasks);
        // A waker that panics harms no other task.
        let _ = catch_unwind(AssertUnwindSafe(|| task.wake()));
    }
}
