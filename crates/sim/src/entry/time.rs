//! Clocks, sleeps, and system calls by number, including futex waits.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use libc::{size_t, ssize_t, timespec};

use super::waiting::epoll_until;
use super::{PID, call, real_syscall, room, span, to_c_result};
use crate::kernel::Body;
use crate::raw;
use crate::store_buffer;
use crate::world::{self, Wait, Woken};

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: c_int, into: *mut timespec) -> c_int {
    if world::current_thread().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_clock_gettime, [clock as usize, into as usize, 0, 0, 0, 0]) }
            as c_int;
    }
    let now = world::now();
    if clock == libc::CLOCK_REALTIME {
        world::with(|world| {
            let one_in = world.kernel.faults.wall;
            if world.kernel.draw_fault(one_in) {
                world.kernel.wall = world.kernel.rng.between(0, 200_000) as i64 - 100_000;
            }
        });
    }
    let start = start_of(clock);
    // SAFETY: the caller's room.
    unsafe {
        *into =
            timespec { tv_sec: start + (now / 1_000_000_000) as i64, tv_nsec: (now % 1_000_000_000) as i64 }
    };
    0
}

/// Time of the wall clock at the start of the simulation, in seconds since 1970.
pub(super) const WALL_START: i64 = 1_800_000_000;

/// Returns the value of a clock at the start of the simulation, in seconds. For the wall clock,
/// includes its present error.
fn start_of(clock: c_int) -> i64 {
    match clock {
        libc::CLOCK_REALTIME => WALL_START + world::with(|world| world.kernel.wall).unwrap_or(0),
        _ => 100,
    }
}

/// Converts a time of the clock to a time since the start of the simulation.
fn since_start(clock: c_int, nanos: u64) -> u64 {
    nanos.saturating_sub(start_of(clock) as u64 * 1_000_000_000)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    if world::current_thread().is_none() {
        let arguments = [clock as usize, flags as usize, time as usize, left as usize, 0, 0];
        // SAFETY: the caller's arguments.
        return unsafe { -raw::call(libc::SYS_clock_nanosleep, arguments) } as c_int;
    }
    // SAFETY: the caller's.
    let time = unsafe { span(time) }.unwrap_or(0);
    let deadline = match flags & libc::TIMER_ABSTIME {
        0 => world::current_time().saturating_add(time),
        _ => since_start(clock, time),
    };
    world::enter("sleep");
    while deadline > world::current_time() {
        world::wait(Wait::Time, Some(deadline));
    }
    to_c_result("sleep", -1, Ok(0_i64)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { clock_nanosleep(libc::CLOCK_MONOTONIC, 0, time, left) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_yield() -> c_int {
    world::yield_turn();
    0
}

// ---- by number

#[unsafe(no_mangle)]
unsafe extern "C" fn getpid() -> c_int {
    match world::current_thread() {
        Some(_) => PID + world::with(|world| world.kernel.process as c_int).unwrap_or(0),
        // SAFETY: no arguments.
        None => unsafe { real_syscall(libc::SYS_getpid, [0; 6]) as c_int },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(into: *mut c_void, length: size_t, flags: u32) -> ssize_t {
    if world::current_thread().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(libc::SYS_getrandom, [into as usize, length, flags as usize, 0, 0, 0]) }
            as ssize_t;
    }
    world::with(|world| {
        // SAFETY: the caller's buffer.
        for byte in unsafe { room(into, length) } {
            *byte = world.kernel.rng.next() as u8;
        }
    });
    length as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if world::current_thread().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real_syscall(number, [a, b, c, d, e, f]) };
    }
    let old = world::with(|world| world.kernel.faults.old).unwrap_or(false);
    match number {
        // SAFETY: the caller's arguments.
        libc::SYS_futex => unsafe { futex(a, b as c_int, c as u32, d as *const timespec) },
        // SAFETY: as above.
        libc::SYS_getrandom => unsafe { getrandom(a as *mut c_void, b, c as u32) as c_long },
        libc::SYS_membarrier => {
            store_buffer::flush_all();
            call("membarrier", -1, |_| if old { Err::<i64, _>(libc::ENOSYS) } else { Ok(0) })
        }
        libc::SYS_epoll_pwait2 if old => call("epoll_pwait2", -1, |_| Err::<i64, _>(libc::ENOSYS)),
        // SAFETY: as above.
        libc::SYS_epoll_pwait2 => unsafe {
            let deadline = span(d as *const timespec).map(|span| world::current_time().saturating_add(span));
            epoll_until(a as c_int, b as *mut libc::epoll_event, c as c_int, deadline)
        },
        libc::SYS_memfd_create => call("memfd_create", -1, |kernel| {
            let one_in = kernel.faults.no_memory;
            if kernel.draw_fault(one_in) {
                return Err(libc::ENOMEM);
            }
            // SAFETY: as above.
            let real = unsafe { raw::call(number, [a, b, c, d, e, f]) };
            if real < 0 { Err(-real as i32) } else { Ok(kernel.open_new(Body::Memory(real as c_int))) }
        }),
        // SAFETY: as above.
        _ => unsafe { real_syscall(number, [a, b, c, d, e, f]) },
    }
}

/// Begins a call that first makes the delayed stores of all threads visible.
fn enter_all(name: &'static str) {
    store_buffer::flush_all();
    world::enter(name);
    store_buffer::flush_all();
}

unsafe fn futex(address: usize, operation: c_int, value: u32, timeout: *const timespec) -> c_long {
    // SAFETY: the caller's time; only calls that wait have one.
    let time = || unsafe { span(timeout) };
    let deadline = match operation & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAKE => {
            enter_all("futex_wake");
            let woken = world::with(|world| world.wake_futex(address, value as usize)).unwrap_or(0);
            return to_c_result("futex_wake", -1, Ok(woken as i64));
        }
        libc::FUTEX_WAIT => time().map(|time| world::current_time().saturating_add(time)),
        libc::FUTEX_WAIT_BITSET => {
            let clock = if operation & libc::FUTEX_CLOCK_REALTIME != 0 {
                libc::CLOCK_REALTIME
            } else {
                libc::CLOCK_MONOTONIC
            };
            time().map(|time| since_start(clock, time))
        }
        _ => return to_c_result("futex", -1, Err::<i64, _>(libc::ENOSYS)),
    };
    enter_all("futex_wait");
    // SAFETY: the word for which the caller waits.
    let word = unsafe { (*(address as *const AtomicU32)).load(SeqCst) };
    if word != value {
        return to_c_result("futex_wait", -1, Err::<i64, _>(libc::EAGAIN));
    }
    let answer = match world::wait(Wait::Futex(address), deadline) {
        Woken::Timeout => Err(libc::ETIMEDOUT),
        _ => Ok(0_i64),
    };
    store_buffer::flush_all();
    to_c_result("futex_wait", -1, answer)
}
