//! [`TimerFd`] as a waitable timer of Windows. A thread of the system's pool waits for the timer,
//! and then makes a descriptor readable.

use std::ffi::c_void;
use std::fmt;
use std::io;
use std::ptr::null;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{CloseHandle, HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CancelWaitableTimer, CreateWaitableTimerExW, INFINITE,
    RegisterWaitForSingleObject, SetWaitableTimer, TIMER_ALL_ACCESS, UnregisterWaitEx,
    WT_EXECUTEINWAITTHREAD,
};

use crate::fd::{AsFd, BorrowedFd};
use crate::wake::WakeFd;

/// A one-shot timer with a descriptor. All methods may be called from any thread.
#[derive(Debug)]
pub struct TimerFd {
    shared: Box<Shared>,
    wait: Handle,
}

#[derive(Debug)]
struct Shared {
    wake: WakeFd,
    timer: Handle,
    /// Time of expiry, if the timer is armed.
    due: Mutex<Option<Instant>>,
}

/// A handle of the system, which any thread may use.
struct Handle(HANDLE);

// SAFETY: the calls that use timers and waits may be made on any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

impl TimerFd {
    /// Creates a timer that is not armed.
    pub fn new() -> io::Result<Self> {
        let shared =
            Box::new(Shared { wake: WakeFd::new()?, timer: Handle(timer()?), due: Mutex::new(None) });
        let mut wait: HANDLE = std::ptr::null_mut();
        let (timer, context) = (shared.timer.0, std::ptr::from_ref::<Shared>(&shared).cast());
        let (call, flags) = (Some(expired as unsafe extern "system" fn(_, _)), WT_EXECUTEINWAITTHREAD);
        // SAFETY: the timer is open. The shared state lives until `drop` has ended the wait.
        let done = unsafe { RegisterWaitForSingleObject(&mut wait, timer, call, context, INFINITE, flags) };
        let timer = TimerFd { shared, wait: Handle(wait) };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(timer) }
    }

    /// Makes the descriptor readable once, `after` from now. Replaces an earlier setting, and
    /// forgets an expiry that was not drained.
    pub fn arm(&self, after: Duration) {
        let after = after.min(FAR);
        let mut due = self.shared.due();
        *due = Some(Instant::now() + after);
        self.shared.wake.drain();
        self.shared.set(after);
    }

    /// Stops the timer, and forgets an expiry that was not drained.
    pub fn disarm(&self) {
        let mut due = self.shared.due();
        *due = None;
        self.shared.wake.drain();
        // SAFETY: the timer is open.
        unsafe { CancelWaitableTimer(self.shared.timer.0) };
    }

    /// Makes the descriptor unreadable again. Returns true if the timer had expired.
    pub fn drain(&self) -> bool {
        self.shared.wake.drain()
    }

    /// Returns the descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Drop for TimerFd {
    fn drop(&mut self) {
        if !self.wait.0.is_null() {
            // SAFETY: the handle is open, and ours. The call returns after the last callback has
            // ended.
            unsafe { UnregisterWaitEx(self.wait.0, INVALID_HANDLE_VALUE) };
        }
        // SAFETY: the handle is open, and ours. No thread waits for it now.
        unsafe { CloseHandle(self.shared.timer.0) };
    }
}

impl Shared {
    fn due(&self) -> MutexGuard<'_, Option<Instant>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the system's timer to expire `after` from now. The caller holds the lock.
    fn set(&self, after: Duration) {
        // In units of 100 ns, rounded up. A negative value counts from now.
        let units = i64::try_from(after.as_nanos().div_ceil(100)).unwrap_or(i64::MAX).max(1);
        // SAFETY: the timer is open. The call reads the time before it returns, and there is no
        // completion function.
        unsafe { SetWaitableTimer(self.timer.0, &-units, 0, None, null(), 0) };
    }
}

/// Called when the timer has expired. The expiry may be a little early, or coincide with a new
/// setting.
unsafe extern "system" fn expired(context: *mut c_void, _timed_out: bool) {
    // SAFETY: the pointer that was given to the wait, which has not been ended yet.
    let shared = unsafe { &*context.cast::<Shared>() };
    let mut due = shared.due();
    let Some(at) = *due else { return };
    match at.saturating_duration_since(Instant::now()) {
        Duration::ZERO => {
            *due = None;
            shared.wake.wake();
        }
        left => shared.set(left),
    }
}

/// Creates a timer of the system: a high-resolution timer if available (Windows 10 1803), otherwise
/// one with the resolution of the system's clock ticks.
fn timer() -> io::Result<HANDLE> {
    for flags in [CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, 0] {
        // SAFETY: no name, and default attributes; flags and rights are integers.
        let timer = unsafe { CreateWaitableTimerExW(null(), null(), flags, TIMER_ALL_ACCESS) };
        if !timer.is_null() {
            return Ok(timer);
        }
    }
    Err(io::Error::last_os_error())
}

/// Longest span that we ask for, about 30 years.
const FAR: Duration = Duration::from_secs(1_000_000_000);
