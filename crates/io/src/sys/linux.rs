//! Descriptor primitives of Linux: flags are set by the call that makes the descriptor, so that no
//! other thread can fork and exec in between.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::{check, check_length, is_refused, milliseconds, retry, timespec};

/// Send flag that turns SIGPIPE into EPIPE.
pub(crate) const NO_SIGNAL: libc::c_int = libc::MSG_NOSIGNAL;

const NEW: libc::c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

/// A non-blocking, close-on-exec socket.
pub(crate) fn socket(domain: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket takes integers only; the descriptor it returns is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(domain, kind | NEW, 0))?)) }
}

/// Two connected Unix stream sockets.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    // SAFETY: the kernel writes two descriptors into the array of two; both are ours alone.
    unsafe {
        check(libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | NEW, 0, fds.as_mut_ptr()))?;
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// Takes one connection from a listening socket.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: null addresses ask for none to be written; the descriptor returned is ours alone.
    let fd = retry(|| unsafe {
        check(libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), NEW))
    })?;
    // SAFETY: see above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits with nanosecond precision; an interruption is an error. Where a sandbox allows no ppoll,
/// without a mask: with milliseconds.
pub(crate) fn poll(
    fds: &mut [libc::pollfd],
    timeout: Option<Duration>,
    mask: Option<&libc::sigset_t>,
) -> io::Result<usize> {
    let span = timeout.map(timespec);
    let span = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let raw_mask = mask.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: pointer and length describe one exclusive slice; time span and mask, if any, outlive
    // the call; a null mask leaves the signal mask alone. Bad descriptors are reported in
    // `revents`, not undefined.
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, span, raw_mask) };
    match check(ready) {
        Err(error) if mask.is_none() && is_refused(&error) => poll_coarsely(fds, timeout),
        outcome => Ok(outcome? as usize),
    }
}

#[cold]
fn poll_coarsely(fds: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<usize> {
    // SAFETY: as above.
    let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds(timeout)) };
    Ok(check(ready)? as usize)
}

/// Fills a prefix of `bytes`, and returns its length.
pub(crate) fn random(bytes: &mut [u8]) -> io::Result<usize> {
    let call = |bytes: &mut [u8]| {
        // By number: glibc before 2.25 has no function for it, and a library that names one does
        // not load there.
        // SAFETY: the kernel writes at most `len` bytes into the exclusive slice.
        unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0_u32) }
    };
    match retry(|| check_length(call(bytes) as libc::ssize_t)) {
        // ENOSYS before Linux 3.17.
        Err(error) if is_refused(&error) => random_by_file(bytes),
        outcome => outcome,
    }
}

/// The same by the generator's device.
#[cold]
fn random_by_file(bytes: &mut [u8]) -> io::Result<usize> {
    // This one gives bytes also before the kernel has gathered entropy; the other one is not
    // readable until then.
    if let Ok(seeded) = File::open("/dev/random") {
        let mut fds = [libc::pollfd { fd: seeded.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        retry(|| poll(&mut fds, None, None))?;
    }
    File::open("/dev/urandom")?.read(bytes)
}
