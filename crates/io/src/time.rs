//! Kernel clocks in nanoseconds. For the data path's own intervals use the cheaper
//! [`crate::clock`].

#[cfg_attr(windows, path = "time/windows.rs")]
#[cfg_attr(unix, path = "time/posix.rs")]
mod os;

/// Returns the nanoseconds of the monotonic clock.
#[inline]
pub fn monotonic_nanos() -> u64 {
    os::monotonic_nanos()
}

/// Returns the processor time that all threads of this process have used, in nanoseconds.
pub fn process_cpu_nanos() -> u64 {
    os::process_cpu_nanos()
}

/// Returns the processor time that the calling thread has used, in nanoseconds.
pub fn thread_cpu_nanos() -> u64 {
    os::thread_cpu_nanos()
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

    #[test]
    fn processor_time_of_a_thread_excludes_other_threads() {
        let used = || {
            // The clock of the process is read first and last, so its interval contains the other.
            let (all, own) = (process_cpu_nanos(), thread_cpu_nanos());
            let mut sum = 0_u64;
            // Until the clock of the thread has advanced by ten milliseconds.
            while thread_cpu_nanos() < own + 10_000_000 {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
            (thread_cpu_nanos() - own, process_cpu_nanos() - all)
        };
        let before = thread_cpu_nanos();
        let (thread, process) = std::thread::spawn(used).join().unwrap();
        assert!(thread >= 10_000_000 && process >= 10_000_000, "{thread} {process}");
        // This thread only waited.
        assert!(thread_cpu_nanos() - before < thread);
    }
}
