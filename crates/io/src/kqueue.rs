//! A kqueue, the basis of the reactor and the timer on systems other than Linux. The C types of its
//! fields differ from system to system. This module hides these differences.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::libc;
use crate::poll::{PollFd, poll};
use crate::sys::{check, timespec};
use crate::thread::process_id;

pub(crate) use crate::libc::{EV_ADD, EV_DELETE, EV_DISABLE, EV_DISPATCH, EV_ENABLE, EV_ONESHOT};

/// Flags of a filter.
#[cfg(not(target_os = "netbsd"))]
pub(crate) type Flags = u16;
/// Flags of a filter.
#[cfg(target_os = "netbsd")]
pub(crate) type Flags = u32;

/// A descriptor of the kernel that holds filters. It can be polled, and it can be a member of
/// another kqueue.
#[derive(Debug)]
pub(crate) struct Kqueue {
    fd: ManuallyDrop<OwnedFd>,
    /// Process that owns the kqueue. A forked child does not inherit it, and its number may name
    /// another descriptor there.
    process: u32,
}

/// Condition that a filter watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    Read,
    Write,
    Timer,
}

/// A change to a filter, or an event of it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Kevent(libc::kevent);

impl Kqueue {
    /// Creates a kqueue without filters.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes no arguments and returns a descriptor of our own.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::kqueue())?) };
        // SAFETY: fcntl on our own descriptor with an integer argument.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) })?;
        Ok(Kqueue { fd: ManuallyDrop::new(fd), process: process_id() })
    }

    /// Makes the changes in order. Stops at the first change that fails.
    pub(crate) fn change(&self, changes: &[Kevent]) -> io::Result<()> {
        let none = std::ptr::null_mut();
        // SAFETY: pointer and length describe the slice of C's structs (repr(transparent)), which
        // the call only reads. The call has no buffer to write to.
        check(unsafe {
            libc::kevent(
                self.fd.as_raw_fd(),
                changes.as_ptr().cast(),
                changes.len() as _,
                none,
                0,
                std::ptr::null(),
            )
        })?;
        Ok(())
    }

    /// Writes events to a prefix of `events` and returns its length. Returns 0 after `timeout`, or
    /// after a hundred days. A signal is an error.
    pub(crate) fn wait(&self, events: &mut [Kevent], timeout: Option<Duration>) -> io::Result<usize> {
        let span = timeout.map(|timeout| timespec(timeout.min(LONGEST)));
        let span = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the call reads no changes. Pointer and length describe one exclusive slice of C's
        // structs (repr(transparent)). The time span, if any, outlives the call.
        let count = unsafe {
            libc::kevent(
                self.fd.as_raw_fd(),
                std::ptr::null(),
                0,
                events.as_mut_ptr().cast(),
                events.len() as _,
                span,
            )
        };
        Ok(check(count)? as usize)
    }
}

impl Drop for Kqueue {
    fn drop(&mut self) {
        if self.process == process_id() {
            // SAFETY: the field is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

impl AsFd for Kqueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Kevent {
    /// Creates a change to the filter of `ident`, which is a descriptor or the number of a timer.
    pub(crate) fn new(ident: usize, filter: Filter, flags: Flags) -> Self {
        // SAFETY: a struct of integers and a pointer, which may be null.
        let mut raw: libc::kevent = unsafe { std::mem::zeroed() };
        raw.ident = ident;
        raw.filter = match filter {
            Filter::Read => libc::EVFILT_READ,
            Filter::Write => libc::EVFILT_WRITE,
            Filter::Timer => libc::EVFILT_TIMER,
        };
        raw.flags = flags;
        Kevent(raw)
    }

    /// Adds a number that the events of the filter return.
    pub(crate) fn with_number(mut self, number: usize) -> Self {
        self.0.udata = std::ptr::without_provenance_mut(number);
        self
    }

    /// Restricts the filter to the end of the stream. The low-water mark is larger than any buffer,
    /// so that data never triggers a read filter.
    pub(crate) fn of_the_end(mut self) -> Self {
        self.0.fflags = libc::NOTE_LOWAT;
        self.0.data = i32::MAX as _;
        self
    }

    /// Adds the time until a timer expires.
    pub(crate) fn after(mut self, span: Duration) -> Self {
        (self.0.fflags, self.0.data) = (TIMER_FLAGS, span.as_nanos().div_ceil(TIMER_UNIT_NS).max(1) as _);
        self
    }

    pub(crate) fn ident(&self) -> usize {
        self.0.ident
    }

    pub(crate) fn number(&self) -> usize {
        self.0.udata.addr()
    }

    pub(crate) fn is_of(&self, filter: Filter) -> bool {
        self.0.filter == Kevent::new(0, filter, 0).0.filter
    }

    /// True if this direction has ended.
    pub(crate) fn is_end(&self) -> bool {
        self.0.flags & libc::EV_EOF != 0
    }
}

/// True if the other end will send no further data to this socket. (The answer of poll(2) differs
/// from system to system.)
pub(crate) fn has_ended(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let queue = Kqueue::new()?;
    let number = socket.as_raw_fd() as usize;
    queue.change(&[Kevent::new(number, Filter::Read, EV_ADD).of_the_end()])?;
    let mut events = [Kevent::new(0, Filter::Read, 0)];
    let count = queue.wait(&mut events, Some(Duration::ZERO))?;
    Ok(count == 1 && events[0].is_end())
}

/// True if both directions of a descriptor have ended. The caller knows that reading has ended.
/// macOS reports the end only for a direction that is asked for, and reports the end of writing
/// only in this case.
pub(crate) fn has_hung_up(fd: RawFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFd::OUT)];
    matches!(poll(&mut fds, Some(Duration::ZERO)), Ok(1..))
        && fds[0].revents & (PollFd::HUP | PollFd::ERR) != 0
}

/// True if the descriptor is a socket.
pub(crate) fn is_socket(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: a struct of integers.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open while borrowed; the struct is exclusive.
    let outcome = unsafe { libc::fstat(fd.as_raw_fd(), &mut status) };
    outcome == 0 && status.st_mode & libc::S_IFMT == libc::S_IFSOCK
}

/// Longest wait. Some kernels refuse to wait for years.
const LONGEST: Duration = Duration::from_secs(10_000_000);

/// Unit of a timer. On macOS also the flag that keeps the system from coalescing it with other
/// timers.
#[cfg(apple)]
const TIMER_FLAGS: u32 = libc::NOTE_USECONDS | libc::NOTE_CRITICAL;
#[cfg(any(target_os = "freebsd", target_os = "netbsd"))]
const TIMER_FLAGS: u32 = libc::NOTE_USECONDS;
#[cfg(any(apple, target_os = "freebsd", target_os = "netbsd"))]
const TIMER_UNIT_NS: u128 = 1_000;

/// Milliseconds, on systems without a finer unit.
#[cfg(not(any(apple, target_os = "freebsd", target_os = "netbsd")))]
const TIMER_FLAGS: u32 = 0;
#[cfg(not(any(apple, target_os = "freebsd", target_os = "netbsd")))]
const TIMER_UNIT_NS: u128 = 1_000_000;
