//! Descriptor primitives of Unix systems other than Linux, where flags are set after the fact.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::libc;

use super::{check, milliseconds, retry, set_close_on_exec_and_nonblocking};

/// Send flag that turns SIGPIPE into EPIPE. macOS lacks it; `prepare` sets a socket option with the
/// same effect there.
pub(crate) const NO_SIGNAL: libc::c_int = if cfg!(target_vendor = "apple") { 0 } else { libc::MSG_NOSIGNAL };

/// Creates a non-blocking, close-on-exec socket.
pub(crate) fn socket(domain: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket takes integers only; the descriptor it returns is ours alone.
    let fd = unsafe { OwnedFd::from_raw_fd(check(libc::socket(domain, kind, 0))?) };
    prepared(fd)
}

/// Creates two connected Unix stream sockets.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    // SAFETY: the kernel writes two descriptors into the array of two; both are ours alone.
    let (first, second) = unsafe {
        check(libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, fds.as_mut_ptr()))?;
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    };
    Ok((prepared(first)?, prepared(second)?))
}

/// Accepts one connection from a listening socket.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: null pointers ask the kernel not to write an address; the descriptor returned is ours
    // alone.
    let fd = retry(|| unsafe {
        check(libc::accept(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut()))
    })?;
    // SAFETY: see above.
    prepared(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits with millisecond precision. An interruption is an error.
pub(crate) fn poll(
    fds: &mut [libc::pollfd],
    timeout: Option<Duration>,
    mask: Option<&libc::sigset_t>,
) -> io::Result<usize> {
    if mask.is_some() {
        // Without ppoll, the thread could miss a signal between setting the mask and sleeping.
        return Err(io::Error::from_raw_os_error(libc::ENOTSUP));
    }
    // SAFETY: pointer and length describe one exclusive slice. Bad descriptors are reported in
    // `revents`.
    let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds(timeout)) };
    Ok(check(ready)? as usize)
}

/// Fills a prefix of `bytes`, and returns its length.
pub(crate) fn random(bytes: &mut [u8]) -> io::Result<usize> {
    let length = bytes.len().min(256);
    // SAFETY: the kernel writes `length` bytes, which the exclusive slice has.
    retry(|| unsafe { check(libc::getentropy(bytes.as_mut_ptr().cast(), length)) })?;
    Ok(length)
}

/// Sets the flags that all our descriptors have.
pub(crate) fn prepare(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_close_on_exec_and_nonblocking(fd)?;
    keep_signals_away(fd)
}

fn prepared(fd: OwnedFd) -> io::Result<OwnedFd> {
    prepare(fd.as_fd())?;
    Ok(fd)
}

#[cfg(apple)]
fn keep_signals_away(fd: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an int that outlives the call.
    let outcome = check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NOSIGPIPE,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    });
    match outcome {
        // A closed connection accepts no options.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Err(io::Error::from_raw_os_error(libc::ECONNABORTED))
        }
        outcome => outcome.map(drop),
    }
}

/// Does not need an option here, because [`NO_SIGNAL`] has the effect.
#[cfg(not(apple))]
fn keep_signals_away(_fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(())
}
