//! Threads on Windows.

use std::ffi::CStr;
use std::io;

use windows_sys::Win32::System::Threading::{GetCurrentThread, SetThreadAffinityMask, SetThreadDescription};

use crate::libc;

/// Length of the longest name in bytes.
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
        // The mask covers only the first group of cores.
        mask |= bit.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    }
    // SAFETY: the thread is the calling one; a mask of missing cores is an error.
    match unsafe { SetThreadAffinityMask(GetCurrentThread(), mask) } {
        0 => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        _ => Ok(()),
    }
}

/// Always fails. Windows has no policies, and its priorities depend on the class of the whole
/// process.
pub(super) fn set_scheduling(_policy: i32, _priority: i32) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOTSUP))
}

/// Has no effect: Windows has no signals.
pub(super) fn block_all_signals() {}

pub(super) fn set_timer_slack_ns(_nanos: u64) {}

pub(super) fn runnable() -> Option<usize> {
    None
}

pub(super) mod start {
    use std::io;

    /// A started thread. Dropping the handle detaches the thread.
    #[derive(Debug)]
    pub struct Started(std::thread::JoinHandle<()>);

    impl Started {
        /// Waits until the thread has ended.
        pub fn join(self) {
            // The panic hook has reported a panic.
            let _ = self.0.join();
        }

        /// True on the thread itself.
        pub fn is_current(&self) -> bool {
            self.0.thread().id() == std::thread::current().id()
        }
    }

    pub(in super::super) fn start(stack: usize, work: Box<dyn FnOnce() + Send>) -> io::Result<Started> {
        std::thread::Builder::new().stack_size(stack).spawn(work).map(Started)
    }
}
