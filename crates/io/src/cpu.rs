//! Hints to the processor.

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

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn any_address_will_do() {
        prefetch(&7_u8);
        prefetch(std::ptr::null::<u64>());
        prefetch(std::ptr::without_provenance::<u8>(usize::MAX));
    }
}
