//! Hints to the processor, and the pointer of the running thread.

/// Requests the cache line at this address, which may be any address. The program does not read it;
/// only the timing depends on it.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction never faults and has no side effects.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

/// Prefetches a cache line that will be written: other cores give up their copies of the line.
#[inline(always)]
pub fn prefetch_to_write<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction never faults, has no side effects, and is a no-op if the processor
    // does not have it.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction never faults and has no side effects.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

/// Returns the thread pointer: an address that no other running thread of the process has. After
/// this thread has exited, another thread may get the same pointer. Takes one instruction. On
/// targets without such an instruction, it is the address of a thread-local value.
#[inline(always)]
pub fn thread_pointer() -> usize {
    #[cfg(all(target_arch = "x86_64", any(target_os = "linux", target_os = "android"), not(miri)))]
    {
        let pointer: usize;
        // SAFETY: by the ABI of thread-local storage the word at this address exists, and holds its
        // own address.
        unsafe {
            std::arch::asm!("mov {0}, qword ptr fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly));
        }
        pointer
    }
    #[cfg(all(target_arch = "aarch64", any(target_os = "linux", target_os = "android"), not(miri)))]
    {
        let pointer: usize;
        // SAFETY: a register that every program may read.
        unsafe {
            std::arch::asm!("mrs {0}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
        }
        pointer
    }
    #[cfg(not(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        any(target_os = "linux", target_os = "android"),
        not(miri)
    )))]
    {
        thread_local! {
            static HERE: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
        }
        HERE.with(|here| std::ptr::from_ref(here).addr())
    }
}

#[cfg(test)]
mod tests {
    use super::{prefetch, prefetch_to_write, thread_pointer};

    #[test]
    fn threads_that_run_at_the_same_time_have_different_pointers() {
        let mine = thread_pointer();
        assert_eq!(thread_pointer(), mine);
        assert_ne!(std::thread::spawn(thread_pointer).join().unwrap(), mine);
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
