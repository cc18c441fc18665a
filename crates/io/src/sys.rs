//! Helpers for C calls: return values as `io::Result`, retries of interrupted calls, and the
//! descriptor primitives that differ between systems (`os`).

use std::io;
use std::time::Duration;

use crate::libc;

#[cfg_attr(windows, path = "sys/windows.rs")]
#[cfg_attr(all(unix, not(linux_kernel)), path = "sys/unix.rs")]
#[cfg_attr(linux_kernel, path = "sys/linux.rs")]
mod os;

#[cfg(not(linux_kernel))]
pub(crate) use os::prepare;
#[cfg(linux_kernel)]
pub(crate) use set_close_on_exec_and_nonblocking as prepare;

#[cfg(windows)]
pub(crate) use os::start_winsock;
pub(crate) use os::{NO_SIGNAL, accept, poll, random, socket, socket_pair};

#[cfg(unix)]
mod posix;
#[cfg(windows)]
pub(crate) use os::{REUSE_OLD_PORT, check_open};
#[cfg(unix)]
pub(crate) use posix::{REUSE_OLD_PORT, check_open, set_close_on_exec_and_nonblocking, timespec};

/// Returns the value of a C call that returns -1 on failure.
pub(crate) fn check(value: libc::c_int) -> io::Result<libc::c_int> {
    if value == -1 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// Returns the length that a C call transferred, or its failure.
pub(crate) fn check_length(value: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(value).map_err(|_| io::Error::last_os_error())
}

/// True if the system lacks a call, or a sandbox forbids it.
pub(crate) fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
}

/// Repeats `call` while a signal interrupts it.
#[inline]
pub(crate) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            outcome => return outcome,
        }
    }
}

/// Converts a time span to whole milliseconds, for calls without a finer unit. Rounds up, so that
/// no thread wakes too early. No span is -1, which means no limit.
pub(crate) fn milliseconds(span: Option<Duration>) -> libc::c_int {
    match span {
        None => -1,
        Some(span) => libc::c_int::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_up() {
        assert_eq!(milliseconds(None), -1);
        assert_eq!(milliseconds(Some(Duration::ZERO)), 0);
        assert_eq!(milliseconds(Some(Duration::from_nanos(1))), 1);
        assert_eq!(milliseconds(Some(Duration::from_micros(1001))), 2);
        assert_eq!(milliseconds(Some(Duration::MAX)), libc::c_int::MAX);
    }

    #[test]
    fn retry_repeats_only_interruptions() {
        let mut calls = 0;
        let outcome = retry(|| {
            calls += 1;
            if calls < 3 { Err(io::Error::from_raw_os_error(libc::EINTR)) } else { Ok(calls) }
        });
        assert_eq!(outcome.unwrap(), 3);
        let outcome: io::Result<()> = retry(|| Err(io::Error::from_raw_os_error(libc::EAGAIN)));
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
    }
}
