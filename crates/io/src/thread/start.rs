//! Threads of the library on Unix. The standard library's function ends the process if there is no
//! memory for a new thread's own state. This one returns an error.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::posix::check_number;

type Work = Box<dyn FnOnce() + Send>;

/// A started thread. Dropping the handle detaches the thread.
#[derive(Debug)]
pub struct Started(libc::pthread_t);

// SAFETY: the functions of the C library take the handle on any thread. macOS defines it as an
// address, which this code does not read through.
unsafe impl Send for Started {}
// SAFETY: as above.
unsafe impl Sync for Started {}

impl Started {
    /// Waits until the thread has ended.
    pub fn join(self) {
        let thread = self.0;
        std::mem::forget(self);
        // SAFETY: the handle owns a thread that was neither joined nor detached.
        unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
    }

    /// True on the thread itself.
    pub fn is_current(&self) -> bool {
        // SAFETY: the thread may have ended, but its handle is valid until it is joined or
        // detached.
        unsafe { libc::pthread_equal(self.0, libc::pthread_self()) != 0 }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // SAFETY: the handle owns a thread that was neither joined nor detached.
        unsafe { libc::pthread_detach(self.0) };
    }
}

extern "C" fn run(work: *mut c_void) -> *mut c_void {
    // SAFETY: made by `start`, which gave it to this thread only.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    // The panic hook has reported a panic.
    let _ = catch_unwind(AssertUnwindSafe(work));
    std::ptr::null_mut()
}

pub(super) fn start(stack: usize, work: Work) -> io::Result<Started> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the call initialises the attributes, or fails.
    check_number(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
    let work: *mut Work = Box::into_raw(Box::new(work));
    let mut thread = MaybeUninit::uninit();
    let create = |attributes: *const libc::pthread_attr_t, thread: *mut libc::pthread_t| {
        // SAFETY: the attributes are initialised, or null for the system's own. The new thread owns
        // `work` if the call succeeds.
        unsafe { libc::pthread_create(thread, attributes, run, work.cast()) }
    };
    // If the stack is too small for the thread-local data of the program, use the usual size.
    // SAFETY: initialised above.
    let mut result = match unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack) } {
        0 => create(attributes.as_ptr(), thread.as_mut_ptr()),
        _ => libc::EINVAL,
    };
    if result == libc::EINVAL {
        result = create(std::ptr::null(), thread.as_mut_ptr());
    }
    // SAFETY: initialised above, and not used any more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    if let Err(error) = check_number(result) {
        // SAFETY: no thread was started, so the box is still ours.
        drop(unsafe { Box::from_raw(work) });
        return Err(error);
    }
    // SAFETY: written by the successful call.
    Ok(Started(unsafe { thread.assume_init() }))
}
