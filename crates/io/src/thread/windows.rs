//! Threads on Windows.

use std::ffi::CStr;
use std::io;

use windows_sys::Win32::System::Threading::{GetCurrentThread, SetThreadAffinityMask, SetThreadDescription};

use crate::libc;

/// Longest name in bytes.
pub(super) const NAME_LENGTH: usize = 63;

pub(super) fn set_name(name: &CStr) {
    let wide: Vec<u16> = name.to_string_lossy().encode_utf16().chain([0]).collect();
    // SAFETY: the thread is the calling one; the name is terminated.
    unsafe { SetThreadDescription(GetCurrentThread(), wide.as_ptr()) };
}

pub(super) fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    let mut mask = 0_usize;
    for &cpu in cpus {
        let bit = u32::try_from(cpu).ok().and_then(|cpu| 1_usize.checked_shl(cpu));
        // Of another group than the first one there is no word in the mask.
        mask |= bit.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    }
    // SAFETY: the thread is the calling one; a mask of cores that there are not is an error.
    match unsafe { SetThreadAffinityMask(GetCurrentThread(), mask) } {
        0 => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        _ => Ok(()),
    }
}

/// Windows has no policies; priorities are those of the whole process's class.
pub(super) fn set_scheduling(_policy: i32, _priority: i32) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOTSUP))
}

/// There are no signals.
pub(super) fn block_all_signals() {}

pub(super) fn set_timer_slack_ns(_nanos: u64) {}

pub(super) fn runnable() -> Option<usize> {
    None
}
