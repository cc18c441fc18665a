//! POSIX's clocks.

#[inline]
pub(super) fn monotonic_nanos() -> u64 {
    nanos_of(libc::CLOCK_MONOTONIC)
}

pub(super) fn process_cpu_nanos() -> u64 {
    nanos_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

pub(super) fn thread_cpu_nanos() -> u64 {
    nanos_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn nanos_of(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec into the exclusive variable. The clocks exist on
    // every system we build for, so the call cannot fail. If it failed, the result would be 0.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
