//! `zmq_errno` and `zmq_strerror`: errors of ZeroMQ's own beside those of the system.
//!
//! Called by C programs, and the numbers by the rest of this crate. The error number of a failed call is C's
//! own `errno`, so that programs may look at either.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use tautline_io::errno;

/// First of ZeroMQ's own numbers, far from any system's (`zmq.h`).
const ZMQ_HAUSNUMERO: c_int = 156_384_712;
/// The operation does not fit the state of the socket.
pub(crate) const EFSM: c_int = ZMQ_HAUSNUMERO + 51;
/// The transport does not fit the socket type.
pub(crate) const ENOCOMPATPROTO: c_int = ZMQ_HAUSNUMERO + 52;
/// The context was terminated.
pub(crate) const ETERM: c_int = ZMQ_HAUSNUMERO + 53;
/// There is no I/O thread to do it.
pub(crate) const EMTHREAD: c_int = ZMQ_HAUSNUMERO + 54;

/// The calling thread's error number: that of the last ZeroMQ call that failed, unless another C call set it
/// since.
#[unsafe(no_mangle)]
pub extern "C" fn zmq_errno() -> c_int {
    errno::last()
}

/// The text for an error number, ZeroMQ's own included. Never null. It stays valid; only the text for a number
/// that nobody knows is overwritten by the thread's next such call.
#[unsafe(no_mangle)]
pub extern "C" fn zmq_strerror(number: c_int) -> *const c_char {
    text(number).map_or_else(|| unknown(number), CStr::as_ptr)
}

fn text(number: c_int) -> Option<&'static CStr> {
    match number {
        EFSM => Some(c"Operation cannot be accomplished in current state"),
        ENOCOMPATPROTO => Some(c"The protocol is not compatible with the socket type"),
        ETERM => Some(c"Context was terminated"),
        EMTHREAD => Some(c"No thread available"),
        // ZeroMQ's word for a ROUTER's unknown peer; the system would speak of a route.
        errno::EHOSTUNREACH => Some(c"Host unreachable"),
        _ => errno::message(number),
    }
}

/// As the C library words it, in a buffer of the calling thread.
fn unknown(number: c_int) -> *const c_char {
    thread_local!(static TEXT: RefCell<CString> = RefCell::default());
    TEXT.try_with(|slot| {
        let mut slot = slot.borrow_mut();
        *slot = CString::new(format!("Unknown error {number}")).unwrap_or_default();
        slot.as_ptr()
    })
    // The thread is ending and its buffer is gone.
    .unwrap_or(c"Unknown error".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(number: c_int) -> String {
        // SAFETY: zmq_strerror gives a terminated text that this thread does not overwrite meanwhile.
        unsafe { CStr::from_ptr(zmq_strerror(number)) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn own_errors_have_texts() {
        assert_eq!(words(EFSM), "Operation cannot be accomplished in current state");
        assert_eq!(words(ENOCOMPATPROTO), "The protocol is not compatible with the socket type");
        assert_eq!(words(ETERM), "Context was terminated");
        assert_eq!(words(EMTHREAD), "No thread available");
        assert_eq!(words(errno::EHOSTUNREACH), "Host unreachable");
    }

    #[test]
    fn the_systems_errors_have_the_systems_texts() {
        assert_eq!(words(errno::EINVAL), "Invalid argument");
        assert_eq!(words(errno::EAGAIN), "Resource temporarily unavailable");
    }

    #[test]
    fn unknown_numbers_are_named() {
        assert_eq!(words(99_999), "Unknown error 99999");
        assert_eq!(words(ZMQ_HAUSNUMERO), "Unknown error 156384712");
        assert_eq!(words(-1), "Unknown error -1");
    }

    #[test]
    fn errno_is_the_threads_own() {
        errno::set(ETERM);
        std::thread::spawn(|| errno::set(EFSM)).join().unwrap();
        assert_eq!(zmq_errno(), ETERM);
    }
}
