//! Starts threads and waits for their end.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use libc::{pthread_attr_t, pthread_t, sigset_t};

use super::{real_syscall, to_c_result};
use crate::world::{self, Tid, Wait};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void) -> c_int;

/// Returns the C library's function of this name.
fn real_create() -> Create {
    static REAL: OnceLock<Create> = OnceLock::new();
    *REAL.get_or_init(|| {
        // SAFETY: the name is terminated, and the function of this name has this type.
        unsafe { std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr())) }
    })
}

struct New {
    tid: Tid,
    turn: &'static AtomicU32,
    start: Start,
    argument: *mut c_void,
}

/// Most rounds in which the C library destroys thread-specific values.
const ROUNDS: usize = 4;

/// Ends the simulated thread in the last round. By then Rust's thread-local values are destroyed,
/// and so is the standard library's own state of the thread, which needs a second round.
extern "C" fn end(round: *mut c_void) {
    if round.addr() >= ROUNDS {
        world::end_this_thread();
    }
    enter_round(round.addr() + 1);
}

fn enter_round(round: usize) {
    // SAFETY: no code reads through the value.
    unsafe { libc::pthread_setspecific(end_key(), std::ptr::without_provenance(round)) };
}

/// Returns the key whose destructor is `end`. It runs at the end of each thread that has a value
/// for the key.
fn end_key() -> libc::pthread_key_t {
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: room for the key, and a function of the required type.
        assert_eq!(unsafe { libc::pthread_key_create(&mut key, Some(end)) }, 0, "there is no key left");
        key
    })
}

extern "C" fn run(new: *mut c_void) -> *mut c_void {
    // SAFETY: made by `pthread_create` below for this thread.
    let new = unsafe { Box::from_raw(new.cast::<New>()) };
    world::start_thread(new.tid, new.turn);
    enter_round(1);
    let New { start, argument, .. } = *new;
    start(argument)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    if world::current_thread().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real_create()(thread, attributes, start, argument) };
    }
    world::enter("pthread_create");
    let Some((tid, turn)) = world::with(|world| {
        let tid = world.add_thread("thread");
        (tid, world.turn_of(tid))
    }) else {
        return libc::EAGAIN;
    };
    let new = Box::into_raw(Box::new(New { tid, turn, start, argument }));
    // SAFETY: the caller's arguments, except for our function and its argument.
    let failure = unsafe { real_create()(thread, attributes, run, new.cast()) };
    assert_eq!(failure, 0, "the real system starts no thread");
    // SAFETY: written by the call above.
    let handle = unsafe { *thread } as usize;
    world::with(|world| world.set_handle(tid, handle));
    to_c_result("pthread_create", -1, Ok(i64::from(tid)));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_join(thread: pthread_t, _: *mut *mut c_void) -> c_int {
    world::enter("pthread_join");
    let Some(tid) = world::with(|world| world.thread_of_handle(thread as usize)).flatten() else {
        return libc::ESRCH;
    };
    while !world::with(|world| world.has_ended(tid)).unwrap_or(true) {
        world::wait(Wait::Thread(tid), None);
    }
    to_c_result("pthread_join", -1, Ok(0_i64)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_detach(_: pthread_t) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setname_np(_: pthread_t, name: *const c_char) -> c_int {
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    world::with(|world| world.rename(&name));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn prctl(what: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if what == libc::PR_SET_NAME && world::current_thread().is_some() {
        // SAFETY: the caller's text.
        return unsafe { pthread_setname_np(0, a as *const c_char) };
    }
    // SAFETY: the caller's arguments.
    unsafe {
        real_syscall(libc::SYS_prctl, [what as usize, a as usize, b as usize, c as usize, d as usize, 0])
            as c_int
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: null, or the caller's; a set has no invalid value.
    let blocks_all =
        !new.is_null() && unsafe { libc::sigismember(new, libc::SIGINT) == 1 } && how != libc::SIG_UNBLOCK;
    if blocks_all {
        world::with(|world| world.set_blocks_signals(true));
    }
    // SAFETY: the caller's arguments; the kernel's sets have 8 bytes.
    let result = unsafe {
        real_syscall(libc::SYS_rt_sigprocmask, [how as usize, new as usize, old as usize, 8, 0, 0])
    };
    if result < 0 { libc::EINVAL } else { 0 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_getaffinity(pid: c_int, size: usize, into: *mut libc::cpu_set_t) -> c_int {
    let Some(cores) = world::with(|world| world.cores) else {
        // SAFETY: the caller's arguments.
        let n = unsafe {
            real_syscall(libc::SYS_sched_getaffinity, [pid as usize, size, into as usize, 0, 0, 0])
        };
        return if n < 0 { -1 } else { 0 };
    };
    // SAFETY: the caller's room.
    unsafe {
        into.cast::<u8>().write_bytes(0, size);
        *into.cast::<u8>() = (1_u8 << cores) - 1;
    }
    0
}

/// Simulated threads have no priority except the order of their turns.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setschedparam(_: pthread_t, _: c_int, _: *const libc::sched_param) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_getschedparam(
    _: pthread_t,
    policy: *mut c_int,
    parameter: *mut libc::sched_param,
) -> c_int {
    // SAFETY: the caller's room; all zeroes is valid.
    unsafe { (*policy, *parameter) = (libc::SCHED_OTHER, std::mem::zeroed()) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_setaffinity(_: c_int, _: usize, _: *const libc::cpu_set_t) -> c_int {
    0
}
