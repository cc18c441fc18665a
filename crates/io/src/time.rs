//! Kernel clocks in nanoseconds. For the data path's own intervals use the cheaper [`crate::clock`].

/// Nanoseconds of the monotonic clock.
#[inline]
pub fn monotonic_nanos() -> u64 {
    nanos_of(libc::CLOCK_MONOTONIC)
}

/// Processor time that all threads of this process have used, in nanoseconds.
pub fn process_cpu_nanos() -> u64 {
    nanos_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn nanos_of(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec into the exclusive variable. Both clocks exist on every system
    // we build for, so the call cannot fail; were it to, the answer is 0.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_do_not_run_backwards() {
        let (wall, cpu) = (monotonic_nanos(), process_cpu_nanos());
        assert!(wall > 0);
        let mut sum = 0_u64;
        while process_cpu_nanos() == cpu {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(process_cpu_nanos() > cpu);
        assert!(monotonic_nanos() >= wall);
    }
}
