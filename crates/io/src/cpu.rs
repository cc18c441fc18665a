//! Hints to the processor, and what it knows.

/// Asks for the cache line at this address, whatever the address is: nothing is read, and nothing but time depends on it.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction never faults, and changes nothing.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

/// As [`prefetch`], for a line that is going to be written to: other cores give it up.
#[inline(always)]
pub fn prefetch_to_write<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction never faults, changes nothing, and is a no-op where the processor does not have it.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction never faults, and changes nothing.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

/// A number that no other running thread of the process has, never 0, where one instruction tells it; elsewhere 0. It is where the system
/// keeps what is thread-local, and falls to another thread when this one is gone.
#[inline(always)]
pub fn thread_number() -> usize {
    #[cfg(all(target_arch = "x86_64", any(target_os = "linux", target_os = "android"), not(miri)))]
    {
        let number: usize;
        // SAFETY: by the ABI of thread-local storage the word at this address is there, and holds its own address.
        unsafe {
            std::arch::asm!("mov {0}, qword ptr fs:[0]", out(reg) number, options(nostack, preserves_flags, readonly));
        }
        number
    }
    #[cfg(all(target_arch = "aarch64", any(target_os = "linux", target_os = "android"), not(miri)))]
    {
        let number: usize;
        // SAFETY: a register that every program may read.
        unsafe {
            std::arch::asm!("mrs {0}, tpidr_el0", out(reg) number, options(nostack, preserves_flags, nomem));
        }
        number
    }
    #[cfg(not(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        any(target_os = "linux", target_os = "android"),
        not(miri)
    )))]
    0
}

#[cfg(test)]
mod tests {
    use super::{prefetch, prefetch_to_write, thread_number};

    #[test]
    fn threads_that_run_at_the_same_time_have_different_numbers() {
        let mine = thread_number();
        assert_eq!(thread_number(), mine);
        let other = std::thread::spawn(thread_number).join().unwrap();
        assert!(other != mine || mine == 0);
    }

    #[test]
    fn any_address_will_do() {
        prefetch(&7_u8);
        prefetch_to_write(&7_u8);
        prefetch_to_write(std::ptr::null::<u64>());
        prefetch(std::ptr::null::<u64>());
        prefetch(std::ptr::without_provenance::<u8>(usize::MAX));
    }
}
