//! Waits for descriptors with poll and epoll. Also counters and timers.

use std::ffi::c_int;

use libc::{nfds_t, pollfd, timespec};

use super::{call, real_syscall, span, to_c_result};
use crate::kernel::{Body, Fd, Kernel};
use crate::world::{self, Wait, Woken};

/// Waits until `ask` has an answer, or until `deadline`. Returns the outcome.
fn wait_until<T>(
    waits_for: impl Fn() -> Wait,
    deadline: Option<u64>,
    mut ask: impl FnMut(&mut Kernel) -> Option<T>,
) -> Result<Option<T>, i32> {
    // A call that may wait is a place to stop, even if it does not need to wait.
    if deadline.is_none_or(|deadline| deadline > world::current_time()) {
        world::end_if_killed();
    }
    loop {
        if let Some(answer) = world::with(|world| ask(&mut world.kernel)).flatten() {
            return Ok(Some(answer));
        }
        if deadline.is_some_and(|deadline| deadline <= world::current_time()) {
            return Ok(None);
        }
        if world::wait(waits_for(), deadline) == Woken::Interrupted {
            return Err(libc::EINTR);
        }
    }
}

fn deadline_in_millis(timeout: c_int) -> Option<u64> {
    u64::try_from(timeout).ok().map(|millis| world::current_time() + millis * 1_000_000)
}

fn poll_until(fds: &mut [pollfd], deadline: Option<u64>) -> c_int {
    world::enter("poll");
    let asked: Vec<(Fd, i16)> = fds.iter().map(|entry| (entry.fd, entry.events)).collect();
    let outcome = wait_until(
        || Wait::Poll(asked.clone()),
        deadline,
        |kernel| match kernel.poll(fds) {
            0 => None,
            ready => Some(ready),
        },
    );
    let text = if asked.is_empty() { "sleep" } else { "poll" };
    to_c_result(text, asked.first().map_or(-1, |(fd, _)| *fd), outcome.map(|ready| ready.unwrap_or(0) as i64))
        as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    if world::current_thread().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe {
            real_syscall(libc::SYS_poll, [fds as usize, count as usize, timeout as usize, 0, 0, 0])
        } as c_int;
    }
    // SAFETY: the caller's array.
    let fds =
        unsafe { if count == 0 { &mut [][..] } else { std::slice::from_raw_parts_mut(fds, count as usize) } };
    poll_until(fds, deadline_in_millis(timeout))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    if world::current_thread().is_none() {
        let arguments = [fds as usize, count as usize, timeout as usize, mask as usize, 8, 0];
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_ppoll, arguments) } as c_int;
    }
    // SAFETY: the caller's array and time.
    let (fds, timeout) = unsafe {
        (
            if count == 0 { &mut [][..] } else { std::slice::from_raw_parts_mut(fds, count as usize) },
            span(timeout),
        )
    };
    poll_until(fds, timeout.map(|timeout| world::current_time().saturating_add(timeout)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_create1(_: c_int) -> c_int {
    call("epoll_create", -1, |kernel| Ok(kernel.open_new(Body::Epoll(Default::default())))) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_ctl(
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    // SAFETY: null, or the caller's.
    let (events, data) = unsafe { event.as_ref() }.map_or((0, 0), |event| (event.events, event.u64));
    call("epoll_ctl", fd, |kernel| kernel.epoll_control(set, operation, fd, events, data)) as c_int
}

pub(super) unsafe fn epoll_until(
    set: c_int,
    into: *mut libc::epoll_event,
    most: c_int,
    deadline: Option<u64>,
) -> i64 {
    world::enter("epoll_wait");
    let outcome = wait_until(
        || Wait::Epoll(set),
        deadline,
        |kernel| match kernel.epoll_take(set, most as usize) {
            Ok(events) if events.is_empty() => None,
            other => Some(other),
        },
    );
    let answer = match outcome {
        Ok(None) => Ok(0),
        Err(error) | Ok(Some(Err(error))) => Err(error),
        Ok(Some(Ok(events))) => {
            for (at, (events, data)) in events.iter().enumerate() {
                // SAFETY: within the caller's room.
                unsafe { into.add(at).write(libc::epoll_event { events: *events, u64: *data }) };
            }
            Ok(events.len() as i64)
        }
    };
    to_c_result("epoll_wait", set, answer)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(
    set: c_int,
    into: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { epoll_until(set, into, most, deadline_in_millis(timeout)) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eventfd(start: u32, _: c_int) -> c_int {
    call("eventfd", -1, |kernel| Ok(kernel.open_new(Body::Counter(start.into())))) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn timerfd_create(_: c_int, _: c_int) -> c_int {
    call("timerfd_create", -1, |kernel| match kernel.faults.sandbox {
        true => Err(libc::EPERM),
        false => Ok(kernel.open_new(Body::Timer(Default::default()))),
    }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn timerfd_settime(
    fd: c_int,
    flags: c_int,
    new: *const libc::itimerspec,
    _: *mut libc::itimerspec,
) -> c_int {
    // SAFETY: the caller's.
    let (value, interval) =
        unsafe { (span(&raw const (*new).it_value), span(&raw const (*new).it_interval)) };
    let mut value = value.unwrap_or(0);
    if flags & libc::TFD_TIMER_ABSTIME != 0 && value > 0 {
        value = value.saturating_sub(world::current_time()).max(1);
    }
    call("timerfd_settime", fd, |kernel| kernel.set_timer(fd, value, interval.unwrap_or(0))) as c_int
}
