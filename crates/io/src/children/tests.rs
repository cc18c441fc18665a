use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::IntoRawFd;
use std::sync::Arc;

use std::time::Duration;
use tautline_testkit::with_watchdog;

use super::*;
use crate::slab::tests::one;

/// A forked child that waits for a byte, and then ends.
pub(crate) struct WaitingChild {
    id: libc::pid_t,
    begin: PipeWriter,
    answer: PipeReader,
}

impl WaitingChild {
    /// Forks. `first` runs in the child at once, `last` before its end. They take no lock. The
    /// child succeeds if `last` returns true.
    pub(crate) fn fork(first: impl FnOnce(RawFd), last: impl FnOnce() -> bool) -> Self {
        let ((begun, begin), (answer, answers)) = (pipe().unwrap(), pipe().unwrap());
        let (begun, answers) = (begun.into_raw_fd(), answers.into_raw_fd());
        // SAFETY: the child takes no lock and ends.
        let id = unsafe { libc::fork() };
        if id == 0 {
            first(begun);
            let mut byte = 0_u8;
            // SAFETY: a variable of this function, and the end of the child.
            unsafe {
                libc::write(answers, (&raw const byte).cast(), 1);
                libc::read(begun, (&raw mut byte).cast(), 1);
                libc::_exit(libc::c_int::from(!last()));
            }
        }
        assert!(id > 0);
        // SAFETY: opened above.
        unsafe { [begun, answers].iter().for_each(|fd| _ = libc::close(*fd)) };
        WaitingChild { id, begin, answer }
    }

    /// Waits until the child has called `first`.
    pub(crate) fn await_first(&mut self) {
        self.answer.read_exact(&mut [0]).unwrap();
    }

    /// Ends the child, which must succeed.
    pub(crate) fn end(mut self) {
        self.begin.write_all(&[0]).unwrap();
        let mut status = -1;
        // SAFETY: the child belongs to this process.
        assert_eq!(unsafe { libc::waitpid(self.id, &mut status, 0) }, self.id);
        assert_eq!(status, 0);
    }
}

/// Replaces the child by a program that reads `input` to its end.
pub(crate) fn exec_cat(input: RawFd) {
    let arguments = [c"cat".as_ptr(), std::ptr::null()];
    // SAFETY: the strings end with a zero byte, and the list with a null pointer.
    unsafe {
        libc::dup2(input, 0);
        libc::execv(c"/bin/cat".as_ptr(), arguments.as_ptr());
        libc::_exit(1);
    }
}

/// Waits until `value` is no longer kept. A child of another test may have it for a while.
fn await_end(value: &Arc<()>) {
    while Arc::strong_count(value) > 1 {
        sweep();
        std::thread::yield_now();
    }
}

/// Kept values end only after all children that may use them.
#[test]
fn values_wait_for_the_children_since_their_use() {
    with_watchdog(Duration::from_secs(120), "values", || {
        // The children of one test must not wait for those of another.
        let _one = one();
        let value = Arc::new(());
        let used = Use::new();
        let mut first = WaitingChild::fork(|_| (), || true);
        first.await_first();
        used.keep(value.clone());
        let later = Use::new();
        let mut second = WaitingChild::fork(|_| (), || !used.is_own() && NEWEST.load(Acquire) == 0);
        second.await_first();
        assert!(sweep() && Arc::strong_count(&value) == 2);
        first.end();
        // The second child has no such body.
        await_end(&value);
        assert!(sweep(), "the second child lives");
        later.keep(value.clone());
        assert_eq!(Arc::strong_count(&value), 2);
        second.end();
        await_end(&value);
    });
}

/// Closing all descriptors does not end the use, in contrast to exec.
#[test]
fn exec_ends_the_use_and_close_does_not() {
    with_watchdog(Duration::from_secs(120), "exec", || {
        // The children of one test must not wait for those of another.
        let _one = one();
        let value = Arc::new(());
        let used = Use::new();
        let close_others = |kept: RawFd| {
            for fd in (3..1000).filter(|fd| *fd != kept) {
                // SAFETY: the child uses only `kept`.
                unsafe { libc::close(fd) };
            }
        };
        let closed = WaitingChild::fork(close_others, || true);
        let mut executed = WaitingChild::fork(exec_cat, || false);
        used.keep(value.clone());
        // The end of the pipe: exec has closed it.
        assert_eq!(executed.answer.read(&mut [0]).unwrap(), 0);
        sweep();
        assert_eq!(Arc::strong_count(&value), 2);
        closed.end();
        // The other child has called exec.
        await_end(&value);
        let WaitingChild { id, begin, .. } = executed;
        drop(begin);
        // SAFETY: the child belongs to this process, which does not ask for its status.
        assert_eq!(unsafe { libc::waitpid(id, null_mut(), 0) }, id);
    });
}
