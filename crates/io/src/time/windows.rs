//! The clocks of Windows.

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, GetProcessTimes, GetThreadTimes,
};

pub(super) fn monotonic_nanos() -> u64 {
    let (mut ticks, mut a_second) = (0_i64, 0_i64);
    // SAFETY: each call writes one integer into an exclusive variable. Since Windows XP they cannot
    // fail.
    unsafe { (QueryPerformanceCounter(&mut ticks), QueryPerformanceFrequency(&mut a_second)) };
    let nanos = u128::from(ticks.unsigned_abs()) * 1_000_000_000 / u128::from(a_second.unsigned_abs().max(1));
    nanos as u64
}

pub(super) fn process_cpu_nanos() -> u64 {
    let none = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let (mut made, mut ended, mut kernel, mut user) = (none, none, none, none);
    // SAFETY: the process is this one; each time goes into an exclusive variable.
    unsafe { GetProcessTimes(GetCurrentProcess(), &mut made, &mut ended, &mut kernel, &mut user) };
    nanos_of(kernel, user)
}

pub(super) fn thread_cpu_nanos() -> u64 {
    let none = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let (mut made, mut ended, mut kernel, mut user) = (none, none, none, none);
    // SAFETY: the thread is this one; each time goes into an exclusive variable.
    unsafe { GetThreadTimes(GetCurrentThread(), &mut made, &mut ended, &mut kernel, &mut user) };
    nanos_of(kernel, user)
}

/// Returns the sum of two times, which the system gives in units of 100 ns.
fn nanos_of(kernel: FILETIME, user: FILETIME) -> u64 {
    let units = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    (units(kernel) + units(user)).wrapping_mul(100)
}
