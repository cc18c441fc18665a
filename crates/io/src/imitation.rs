//! Emulates functions of macOS's C library on Linux. Built only with `--cfg tautline_bsd`, which is
//! for tests. The code for other systems thereby runs on the machines that run the tests. These
//! tests show that the code does as intended. They cannot show that the real kernels behave as the
//! code assumes.
//!
//! A kqueue is emulated by an epoll set with a table beside it. A timer is a timerfd in that set.
//! If the kernels differ, the table follows the stricter ones:
//! - Adding a filter again does not change how it was added (FreeBSD, NetBSD).
//! - Every change replaces the other values (macOS).
//! - Deleting a missing filter fails.
//! - Closing a descriptor removes its filters.
//! - A forked child does not inherit kqueues.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use ::libc::*;

#[allow(non_camel_case_types, reason = "C's name")]
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct kevent {
    pub(crate) ident: uintptr_t,
    pub(crate) filter: i16,
    pub(crate) flags: u16,
    pub(crate) fflags: u32,
    pub(crate) data: intptr_t,
    pub(crate) udata: *mut c_void,
}

pub(crate) const EVFILT_READ: i16 = -1;
pub(crate) const EVFILT_WRITE: i16 = -2;
pub(crate) const EVFILT_TIMER: i16 = -7;
pub(crate) const EV_ADD: u16 = 0x1;
pub(crate) const EV_DELETE: u16 = 0x2;
pub(crate) const EV_ENABLE: u16 = 0x4;
pub(crate) const EV_DISABLE: u16 = 0x8;
pub(crate) const EV_ONESHOT: u16 = 0x10;
pub(crate) const EV_DISPATCH: u16 = 0x80;
pub(crate) const EV_EOF: u16 = 0x8000;
pub(crate) const NOTE_LOWAT: u32 = 0x1;
pub(crate) const NOTE_USECONDS: u32 = 0x2;
pub(crate) const NOTE_CRITICAL: u32 = 0x20;

pub(crate) const SO_NOSIGPIPE: c_int = 0x1022;
pub(crate) const SO_NWRITE: c_int = 0x1024;
pub(crate) const SOL_LOCAL: c_int = 0;
pub(crate) const LOCAL_PEERPID: c_int = 0x2;
pub(crate) const TCP_KEEPALIVE: c_int = 0x10;

/// All kqueues of a process. A forked child gets a new, empty table, so that it never meets a lock
/// that the parent held.
struct Table {
    process: u32,
    queues: Mutex<HashMap<c_int, Queue>>,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

#[derive(Default)]
struct Queue {
    members: HashMap<c_int, Member>,
    /// Timers by number. An expired timer shows as a descriptor of its own in the epoll set.
    timers: HashMap<usize, (OwnedFd, kevent)>,
}

// SAFETY: the pointers are numbers of the caller, which are only returned to it.
unsafe impl Send for Queue {}

#[derive(Default)]
struct Member {
    filters: [Option<Added>; 2],
    /// True if the descriptor is in the epoll set.
    is_in: bool,
}

#[derive(Clone, Copy)]
struct Added {
    change: kevent,
    enabled: bool,
}

/// Bit in the epoll set's numbers that marks a timer.
const TIMER: u64 = 1 << 40;

fn queues() -> MutexGuard<'static, HashMap<c_int, Queue>> {
    let process = std::process::id();
    loop {
        let table = TABLE.load(SeqCst);
        // SAFETY: null, or a table that is never freed.
        if let Some(table) = unsafe { table.as_ref() }
            && table.process == process
        {
            return table.queues.lock().unwrap_or_else(PoisonError::into_inner);
        }
        let new = Box::into_raw(Box::new(Table { process, queues: Mutex::default() }));
        if TABLE.compare_exchange(table, new, SeqCst, SeqCst).is_err() {
            // SAFETY: no other thread has seen the new table.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

fn fail(number: c_int) -> c_int {
    crate::errno::set(number);
    -1
}

/// C's function of this name.
pub(crate) unsafe fn kqueue() -> c_int {
    // SAFETY: an integer in, a descriptor out.
    let fd = unsafe { epoll_create1(EPOLL_CLOEXEC) };
    let mut queues = queues();
    // The new descriptor may reuse the number of an older kqueue, and other kqueues may have been
    // closed.
    // SAFETY: fcntl accepts any number.
    queues.retain(|&other, _| other != fd && unsafe { fcntl(other, F_GETFD) } != -1);
    queues.insert(fd, Queue::default());
    fd
}

/// C's function of this name.
pub(crate) unsafe fn kevent(
    queue: c_int,
    changes: *const kevent,
    change_count: c_int,
    events: *mut kevent,
    event_count: c_int,
    timeout: *const timespec,
) -> c_int {
    for index in 0..change_count as usize {
        // SAFETY: the caller passes as many changes.
        let change = unsafe { *changes.add(index) };
        let number = match queues().get_mut(&queue) {
            None => EBADF,
            Some(known) => known.apply(queue, change),
        };
        if number != 0 {
            return fail(number);
        }
    }
    if event_count == 0 {
        return 0;
    }
    // SAFETY: null, or a time span (caller).
    let span = unsafe { timeout.as_ref() };
    let span = span.map(|span| Duration::new(span.tv_sec.min(1 << 30) as u64, span.tv_nsec as u32));
    let deadline = span.map(|span| Instant::now() + span);
    loop {
        let mut ready = pollfd { fd: queue, events: POLLIN, revents: 0 };
        let left =
            deadline.map(|deadline| crate::sys::timespec(deadline.saturating_duration_since(Instant::now())));
        let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: one struct, and a time span or null; a null mask leaves the signal mask alone.
        let count = unsafe { ppoll(&mut ready, 1, left, std::ptr::null()) };
        if count <= 0 {
            return count;
        }
        let happened = match queues().get_mut(&queue) {
            None => return fail(EBADF),
            Some(known) => known.collect(queue, event_count as usize),
        };
        for (index, event) in happened.iter().enumerate() {
            // SAFETY: at most as many events as the caller has room for.
            unsafe { *events.add(index) = *event };
        }
        if !happened.is_empty() {
            return happened.len() as c_int;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return 0;
        }
    }
}

impl Queue {
    /// Makes a change. Returns an error number, or 0.
    fn apply(&mut self, queue: c_int, change: kevent) -> c_int {
        if change.filter == EVFILT_TIMER {
            return self.apply_to_timer(queue, change);
        }
        let fd = change.ident as c_int;
        let member = self.members.entry(fd).or_default();
        if member.is_in && control(queue, EPOLL_CTL_MOD, fd, member.wants()) == ENOENT {
            // The number belonged to another descriptor before.
            *member = Member::default();
        }
        let place = &mut member.filters[usize::from(change.filter == EVFILT_WRITE)];
        let has = |flag| change.flags & flag != 0;
        match place {
            None if !has(EV_ADD) => return ENOENT,
            Some(_) if has(EV_DELETE) => *place = None,
            None => *place = Some(Added { change, enabled: !has(EV_DISABLE) }),
            Some(added) => {
                let flags = added.change.flags;
                added.change = change;
                added.change.flags = flags;
                added.enabled = has(EV_ENABLE) || added.enabled && !has(EV_DISABLE);
            }
        }
        member.sync(queue, fd)
    }

    fn apply_to_timer(&mut self, queue: c_int, change: kevent) -> c_int {
        let gone = self.timers.remove(&change.ident);
        if change.flags & EV_DELETE != 0 {
            return if gone.is_some() { 0 } else { ENOENT };
        }
        let unit = if change.fflags & NOTE_USECONDS != 0 { 1_000 } else { 1_000_000 };
        let span = Duration::from_nanos((change.data as u64).saturating_mul(unit));
        // SAFETY: integers in, a descriptor of our own out. The time spans are a struct that
        // outlives the call, and the old value is not requested.
        let fd = unsafe {
            let fd = OwnedFd::from_raw_fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
            let never = timespec { tv_sec: 0, tv_nsec: 0 };
            let spans = itimerspec { it_interval: never, it_value: crate::sys::timespec(span) };
            timerfd_settime(fd.as_raw_fd(), 0, &spans, std::ptr::null_mut());
            fd
        };
        let outcome = control_as(queue, EPOLL_CTL_ADD, fd.as_raw_fd(), EPOLLIN, TIMER | change.ident as u64);
        self.timers.insert(change.ident, (fd, change));
        outcome
    }

    /// Returns at most `most` events that are ready now.
    fn collect(&mut self, queue: c_int, most: usize) -> Vec<kevent> {
        let mut ready = [epoll_event { events: 0, u64: 0 }; 32];
        // Both filters of one descriptor may be ready.
        let room = (most / 2).clamp(1, ready.len());
        // SAFETY: at most as many events as the exclusive array holds.
        let count = unsafe { epoll_wait(queue, ready.as_mut_ptr(), room as c_int, 0) };
        let mut happened = Vec::new();
        for &epoll_event { events, u64: number } in ready.iter().take(count.max(0) as usize) {
            if number & TIMER != 0 {
                happened.extend(self.timers.remove(&((number ^ TIMER) as usize)).map(|(_, change)| change));
                continue;
            }
            let fd = number as c_int;
            let Some(member) = self.members.get_mut(&fd) else { continue };
            for place in &mut member.filters {
                let Some(added) = place else { continue };
                let Some(event) = added.event(events as c_int).filter(|_| happened.len() < most) else {
                    continue;
                };
                happened.push(event);
                added.enabled = added.change.flags & EV_DISPATCH == 0;
                if added.change.flags & EV_ONESHOT != 0 {
                    *place = None;
                }
            }
            member.sync(queue, fd);
        }
        happened
    }
}

impl Member {
    /// Returns the epoll events of the enabled filters.
    fn wants(&self) -> c_int {
        self.filters.iter().flatten().filter(|added| added.enabled).fold(0, |all, added| all | added.wants())
    }

    /// Updates the epoll set to match the enabled filters. Returns an error number, or 0.
    fn sync(&mut self, queue: c_int, fd: c_int) -> c_int {
        let wants = self.wants();
        let operation = match (self.is_in, wants) {
            (false, 0) => return 0,
            (true, 0) => EPOLL_CTL_DEL,
            (false, _) => EPOLL_CTL_ADD,
            (true, _) => EPOLL_CTL_MOD,
        };
        let outcome = control(queue, operation, fd, wants);
        self.is_in = wants != 0 && outcome == 0;
        if operation == EPOLL_CTL_DEL { 0 } else { outcome }
    }
}

impl Added {
    fn waits_for_the_end(&self) -> bool {
        self.change.fflags & NOTE_LOWAT != 0
    }

    fn wants(&self) -> c_int {
        match (self.change.filter, self.waits_for_the_end()) {
            (EVFILT_WRITE, _) => EPOLLOUT,
            (_, true) => EPOLLRDHUP,
            (_, false) => EPOLLIN | EPOLLRDHUP,
        }
    }

    /// Returns the event of this filter, if `happened` triggers it.
    fn event(&self, happened: c_int) -> Option<kevent> {
        let ends = if self.change.filter == EVFILT_READ { EPOLLRDHUP | EPOLLHUP } else { EPOLLHUP };
        if !self.enabled || happened & (self.wants() | ends | EPOLLERR) == 0 {
            return None;
        }
        let flags = if happened & ends != 0 { EV_EOF } else { 0 };
        Some(kevent { flags, fflags: 0, data: 1, ..self.change })
    }
}

fn control(queue: c_int, operation: c_int, fd: c_int, events: c_int) -> c_int {
    control_as(queue, operation, fd, events, fd as u64)
}

/// Calls `epoll_ctl`. Returns an error number, or 0.
fn control_as(queue: c_int, operation: c_int, fd: c_int, events: c_int, number: u64) -> c_int {
    let mut event = epoll_event { events: events as u32, u64: number };
    // SAFETY: the kernel checks the descriptor numbers, and the event outlives the call.
    if unsafe { epoll_ctl(queue, operation, fd, &mut event) } == 0 { 0 } else { crate::errno::last() }
}

/// C's function of this name.
pub(crate) unsafe fn __error() -> *mut c_int {
    // SAFETY: no arguments and no preconditions.
    unsafe { __errno_location() }
}

/// C's function of this name, which names only the calling thread.
pub(crate) unsafe fn pthread_setname_np(name: *const c_char) -> c_int {
    // SAFETY: a terminated string (caller), of which the kernel reads 16 bytes.
    unsafe { prctl(PR_SET_NAME, name) }
}

/// C's function of this name.
pub(crate) unsafe fn getpeereid(fd: c_int, user: *mut uid_t, group: *mut gid_t) -> c_int {
    let mut who = ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<ucred>() as socklen_t;
    // SAFETY: value and length are exclusive, and the results go to the caller's variables.
    unsafe {
        let outcome = ::libc::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, (&raw mut who).cast(), &mut length);
        (*user, *group) = (who.uid, who.gid);
        outcome
    }
}

/// C's function of this name, with options of macOS.
pub(crate) unsafe fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's arguments, or values of our own. Options of macOS have an int as their
    // value.
    unsafe {
        match (level, name) {
            (SOL_LOCAL, LOCAL_PEERPID) => {
                let mut who = ucred { pid: 0, uid: 0, gid: 0 };
                let mut room = size_of::<ucred>() as socklen_t;
                let outcome =
                    ::libc::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, (&raw mut who).cast(), &mut room);
                *value.cast::<c_int>() = who.pid;
                outcome
            }
            (SOL_SOCKET, SO_NWRITE) => ioctl(fd, TIOCOUTQ, value),
            _ => ::libc::getsockopt(fd, level, translated(level, name), value, length),
        }
    }
}

/// C's function of this name, with options of macOS.
pub(crate) unsafe fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller's arguments, or values of our own. Options of macOS have an int as their
    // value.
    unsafe {
        match (level, name) {
            // On Linux a flag of each call has this effect.
            (SOL_SOCKET, SO_NOSIGPIPE) => 0,
            (IPPROTO_TCP, 0x20) => 0,
            (IPPROTO_TCP, 0x80) => {
                let millis = value.cast::<c_int>().read_unaligned().saturating_mul(1000);
                ::libc::setsockopt(fd, level, TCP_USER_TIMEOUT, (&raw const millis).cast(), length)
            }
            _ => ::libc::setsockopt(fd, level, translated(level, name), value, length),
        }
    }
}

/// Makes a socket hear only its own multicast groups, which those kernels do by default.
pub(crate) fn hear_joined_only(fd: BorrowedFd<'_>, v4: bool) {
    let (level, name) = match v4 {
        true => (IPPROTO_IP, IP_MULTICAST_ALL),
        false => (IPPROTO_IPV6, IPV6_MULTICAST_ALL),
    };
    let (off, length) = (0_i32, size_of::<c_int>() as socklen_t);
    // SAFETY: the descriptor is open while borrowed, and the call reads an int of our own. An older
    // Linux refuses the option and changes no state.
    unsafe { ::libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const off).cast(), length) };
}

/// Available since Linux 4.20.
const IPV6_MULTICAST_ALL: c_int = 29;

/// Returns the Linux option that corresponds to an option of macOS.
fn translated(level: c_int, name: c_int) -> c_int {
    match (level, name) {
        (IPPROTO_TCP, TCP_KEEPALIVE) => TCP_KEEPIDLE,
        (IPPROTO_TCP, 0x201) => TCP_NOTSENT_LOWAT,
        _ => name,
    }
}
