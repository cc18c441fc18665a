//! Tasks that an I/O thread must wake.
//!
//! The executor decides what a task's waker does: it may drop the task and the sockets that live in
//! it, run the task at once, or panic. An I/O thread gets news while it reads, when it holds a
//! baton and locks. So it wakes tasks later, when it holds no locks. Other threads wake tasks at
//! once.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

thread_local! {
    /// True on an I/O thread, which delays the wake-ups until `run`.
    static PUTS_OFF: Cell<bool> = const { Cell::new(false) };
    // Without a destructor, see `tautline_io::thread::on_exit`; freed by `end`.
    static TASKS: Cell<ManuallyDrop<Vec<Waker>>> = const { Cell::new(ManuallyDrop::new(Vec::new())) };
}

/// Makes the calling I/O thread wake tasks in [`run`] from now on.
pub(crate) fn begin() {
    PUTS_OFF.set(true);
}

/// Called when the I/O thread exits.
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

/// I/O thread, without locks: wakes the tasks that have news.
pub(crate) fn run() {
    loop {
        let mut tasks = TASKS.take();
        let Some(task) = tasks.pop() else {
            // Put the vector back to keep its memory.
            TASKS.set(tasks);
            return;
        };
        // The wake-up may add other tasks.
        TASKS.set(tasks);
        // A waker that panics does not affect other tasks.
        let _ = catch_unwind(AssertUnwindSafe(|| task.wake()));
    }
}
