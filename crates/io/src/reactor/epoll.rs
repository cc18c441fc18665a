//! [`Reactor`] as an epoll set.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::{Event, Interest, Mode, Reactor, Token};
use crate::sys::{check, is_refused, milliseconds};

/// An epoll set. Its own descriptor is readable while any member is ready.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Creates an empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes an integer and returns a descriptor of our own.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) }))
    }

    /// Returns the set's own descriptor.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: BorrowedFd<'_>,
        token: Token,
        interest: Interest,
        mode: Mode,
    ) -> io::Result<()> {
        let mut flags = 0;
        if interest.readable {
            flags |= libc::EPOLLIN;
        }
        if interest.writable {
            flags |= libc::EPOLLOUT;
        }
        if interest.ended {
            flags |= libc::EPOLLRDHUP;
        }
        // The kernel reports hang-ups for every interest. One-shot mode keeps a muted descriptor
        // from reporting them repeatedly.
        if mode == Mode::OneShot || interest == Interest::NONE {
            flags |= libc::EPOLLONESHOT;
        }
        let mut event = libc::epoll_event { events: flags as u32, u64: token.0 };
        // SAFETY: both descriptors are open for as long as they are borrowed; the event outlives
        // the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd.as_raw_fd(), &mut event) })?;
        Ok(())
    }

    fn collect(&self, ready: &mut [libc::epoll_event], timeout: Option<Duration>) -> io::Result<usize> {
        if let Some(timeout) = timeout
            && timeout.subsec_nanos() % 1_000_000 != 0
            && FINE.load(Relaxed)
        {
            match self.collect_fine(ready, timeout) {
                // ENOSYS before Linux 5.11; EPERM from sandboxes that do not know the call.
                Err(error) if is_refused(&error) => {
                    FINE.store(false, Relaxed);
                }
                outcome => return outcome,
            }
        }
        // SAFETY: pointer and length describe one exclusive slice.
        let count = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                ready.as_mut_ptr(),
                ready.len() as libc::c_int,
                milliseconds(timeout),
            )
        };
        Ok(check(count)? as usize)
    }

    fn collect_fine(&self, ready: &mut [libc::epoll_event], timeout: Duration) -> io::Result<usize> {
        let timeout = KernelTimespec {
            seconds: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            nanos: i64::from(timeout.subsec_nanos()),
        };
        // SAFETY: pointer and length describe one exclusive slice; the time span outlives the call
        // and has the kernel's layout; a null mask leaves the signal mask alone.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                ready.as_mut_ptr(),
                ready.len() as libc::c_int,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        Ok(check(count as libc::c_int)? as usize)
    }
}

impl Reactor for Epoll {
    fn add(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest, mode)
    }

    fn modify(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest, mode)
    }

    fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, Token(0), Interest::NONE, Mode::Level)
    }

    fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let mut ready = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        let count = match self.collect(&mut ready, timeout) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        events.extend(ready[..count].iter().map(|&libc::epoll_event { events: happened, u64: token }| {
            let has = |flags: libc::c_int| happened & flags as u32 != 0;
            Event {
                token: Token(token),
                readable: has(libc::EPOLLIN),
                writable: has(libc::EPOLLOUT),
                closed: has(libc::EPOLLHUP | libc::EPOLLERR),
                ended: has(libc::EPOLLRDHUP),
            }
        }));
        Ok(())
    }

    fn as_pollable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Time span that epoll_pwait2 takes, also on 32-bit systems.
#[repr(C)]
struct KernelTimespec {
    seconds: i64,
    nanos: i64,
}

/// True if the kernel has, or may have, the call with the finer timeout.
// Relaxed: number: two racing waits may both find out.
static FINE: AtomicBool = AtomicBool::new(true);

/// Events per wait: 3 KiB of stack. The next wait reports the remaining events first.
const BATCH: usize = 256;
