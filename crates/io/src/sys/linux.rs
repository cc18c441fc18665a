//! Descriptor primitives of Linux. The call that creates a descriptor sets its flags, so that no
//! other thread can fork and exec in between.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::{check, check_length, is_refused, milliseconds, retry, timespec};

/// Send flag that turns SIGPIPE into EPIPE.
pub(crate) const NO_SIGNAL: libc::c_int = libc::MSG_NOSIGNAL;

const NEW: libc::c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

/// Creates a non-blocking, close-on-exec socket.
pub(crate) fn socket(domain: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket takes integers only; the descriptor it returns is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(domain, kind | NEW, 0))?)) }
}

/// Creates two connected Unix stream sockets.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    // SAFETY: the kernel writes two descriptors into the array of two; both are ours alone.
    unsafe {
        check(libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | NEW, 0, fds.as_mut_ptr()))?;
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// Accepts one connection from a listening socket.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: null pointers ask the kernel not to write an address; the descriptor returned is ours
    // alone.
    let fd = retry(|| unsafe {
        check(libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), NEW))
    })?;
    // SAFETY: see above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits with nanosecond precision. An interruption is an error. If a sandbox forbids ppoll and
/// there is no mask, waits with millisecond precision.
pub(crate) fn poll(
    fds: &mut [libc::pollfd],
    timeout: Option<Duration>,
    mask: Option<&libc::sigset_t>,
) -> io::Result<usize> {
    let span = timeout.map(timespec);
    let span = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let raw_mask = mask.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: pointer and length describe one exclusive slice. Time span and mask, if any, outlive
    // the call. A null mask leaves the signal mask alone. Bad descriptors are reported in
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
        // By number, because glibc before 2.25 has no function for it and cannot load a library
        // that imports one. SAFETY: the kernel writes at most `len` bytes into the exclusive slice.
        unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0_u32) }
    };
    match retry(|| check_length(call(bytes) as libc::ssize_t)) {
        // ENOSYS before Linux 3.17.
        Err(error) if is_refused(&error) => random_by_file(bytes),
        outcome => outcome,
    }
}

/// Reads random bytes from the generator's device.
#[cold]
fn random_by_file(bytes: &mut [u8]) -> io::Result<usize> {
    // urandom gives bytes even before the kernel has gathered entropy. random is not readable until
    // then, so wait for it first.
    if let Ok(seeded) = File::open("/dev/random") {
        let mut fds = [libc::pollfd { fd: seeded.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        retry(|| poll(&mut fds, None, None))?;
    }
    File::open("/dev/urandom")?.read(bytes)
}
