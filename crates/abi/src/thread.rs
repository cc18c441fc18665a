//! `zmq_threadstart` and `zmq_threadclose`: threads for portable test programs. As in libzmq they
//! are named `ZMQapp`, receive no signals, and have the stack size that C programs expect.
//!
//! The caller passes a function that may run on another thread with the argument, or null, and
//! closes each handle once.

use std::ffi::c_void;

use tautline_io::thread::Started;
use tautline_io::{errno, thread};

use crate::guard::guard;

/// `zmq_thread_fn` of `zmq.h`.
type ThreadFn = unsafe extern "C" fn(*mut c_void);

/// Usual stack size of a program's first thread.
const STACK_SIZE: usize = 8 << 20;

/// Function to run on the new thread. The caller guarantees that another thread may use the
/// argument.
struct Call {
    function: ThreadFn,
    argument: *mut c_void,
}

// SAFETY: zmq_threadstart's caller hands the argument over to the new thread.
unsafe impl Send for Call {}

impl Call {
    fn run(self) {
        thread::block_all_signals();
        // SAFETY: the caller passed a function that takes this argument on another thread.
        unsafe { (self.function)(self.argument) }
    }
}

/// Runs `function(argument)` on a new thread. Returns its handle, to be released with
/// [`zmq_threadclose`]. Null with EAGAIN if the system cannot start a thread, with EFAULT without a
/// function.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_threadstart(function: Option<ThreadFn>, argument: *mut c_void) -> *mut c_void {
    let Some(function) = function else {
        errno::set(errno::EFAULT);
        return std::ptr::null_mut();
    };
    guard(std::ptr::null_mut(), || {
        if tautline_core::is_memory_short() {
            errno::set(errno::EAGAIN);
            return std::ptr::null_mut();
        }
        let call = Call { function, argument };
        match thread::start("ZMQapp", STACK_SIZE, move || call.run()) {
            Ok(thread) => Box::into_raw(Box::new(thread)).cast(),
            Err(error) => {
                errno::set(errno::of(&error).unwrap_or(errno::EAGAIN));
                std::ptr::null_mut()
            }
        }
    })
}

/// Waits for the thread's function to return and frees the handle.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_threadclose(handle: *mut c_void) {
    if handle.is_null() {
        return;
    }
    // SAFETY: not null, so a handle of zmq_threadstart that the caller passes up.
    let thread = unsafe { Box::from_raw(handle.cast::<Started>()) };
    guard((), || thread.join());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    unsafe extern "C" fn set_to_seven(place: *mut c_void) {
        #[cfg(target_os = "linux")]
        assert_eq!(std::fs::read_to_string("/proc/thread-self/comm").unwrap(), "ZMQapp\n");
        // SAFETY: the test passes its own variable and reads it after the thread has ended.
        unsafe { *place.cast::<i32>() = 7 }
    }

    #[test]
    fn close_waits_for_the_function() {
        let mut value = 0;
        // SAFETY: `value` outlives the thread.
        unsafe {
            let thread = zmq_threadstart(Some(set_to_seven), (&raw mut value).cast());
            assert!(!thread.is_null());
            zmq_threadclose(thread);
        }
        assert_eq!(value, 7);
    }

    #[test]
    fn nothing_to_run_is_refused() {
        // SAFETY: null is allowed.
        unsafe {
            assert!(zmq_threadstart(None, null_mut()).is_null());
            assert_eq!(errno::last(), errno::EFAULT);
            zmq_threadclose(null_mut());
        }
    }
}
