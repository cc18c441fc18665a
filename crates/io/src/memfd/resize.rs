//! Sets the size of memory without the signal of RLIMIT_FSIZE.
//!
//! Growing a file beyond that limit fails with EFBIG. The kernel also sends SIGXFSZ to the calling
//! thread, which kills the program. A program that writes no files may well have set the limit to
//! 0.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::sys::{check, retry, timespec};

/// Makes the file `size` bytes long. Fails with EFBIG beyond the limit, without a signal.
pub(super) fn resize(fd: BorrowedFd<'_>, size: usize) -> io::Result<()> {
    let size = libc::off_t::try_from(size).map_err(|_| too_big())?;
    if limit()? < size as libc::rlim_t {
        return Err(too_big());
    }
    // Another thread may lower the limit in between.
    block_signal_during(|| {
        // SAFETY: the descriptor is open; integers only.
        check(unsafe { libc::ftruncate(fd.as_raw_fd(), size) }).map(|_| ())
    })
}

fn too_big() -> io::Error {
    io::Error::from_raw_os_error(libc::EFBIG)
}

/// Returns the largest file size that this process may use.
fn limit() -> io::Result<libc::rlim_t> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit, which is ours.
    check(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) })?;
    Ok(limit.rlim_cur)
}

/// Calls `grow` with SIGXFSZ blocked on this thread, and removes the signal that comes with its
/// EFBIG.
fn block_signal_during(grow: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: a set of signals is an array of integers; all zeroes is the empty one.
    let (mut signal, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours.
    unsafe { libc::sigaddset(&mut signal, libc::SIGXFSZ) };
    // SAFETY: two sets that outlive the call.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signal, &mut before) } {
        0 => {}
        number => return Err(io::Error::from_raw_os_error(number)),
    }
    let outcome = grow();
    if outcome.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EFBIG)) {
        let now = timespec(std::time::Duration::ZERO);
        // SAFETY: the set and the time outlive the call. The kernel does not write to a null
        // pointer.
        let _ = retry(|| check(unsafe { libc::sigtimedwait(&signal, std::ptr::null_mut(), &now) }));
    }
    // SAFETY: the mask that was in force before, which outlives the call.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    outcome
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Raises SIGXFSZ for this thread, as the kernel does.
    fn raise() -> io::Result<()> {
        // SAFETY: integers only.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGXFSZ) }, 0);
        Err(too_big())
    }

    /// The signal's default action is to kill the process.
    #[test]
    fn the_signal_of_the_limit_is_taken_back() {
        assert_eq!(block_signal_during(raise).unwrap_err().raw_os_error(), Some(libc::EFBIG));
        assert!(block_signal_during(|| Ok(())).is_ok());
        let mut pending = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the first call writes the set.
        let is_pending = unsafe {
            libc::sigpending(pending.as_mut_ptr());
            libc::sigismember(pending.as_ptr(), libc::SIGXFSZ)
        };
        assert_eq!(is_pending, 0);
    }
}
