//! `zmq_errno` and `zmq_strerror`: the errors of ZeroMQ and of the system.
//!
//! C programs call these functions, and the rest of this crate uses this file to turn the engine's
//! results into C's. The error number of a failed call is C's own `errno`, so programs may read
//! either.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use tautline_core::Error;
use tautline_io::errno;

/// ZeroMQ's own texts, for its own numbers and for numbers whose system text does not fit.
const TEXTS: [(Error, &CStr); 5] = [
    (Error::State, c"Operation cannot be accomplished in current state"),
    (Error::IncompatibleProtocol, c"The protocol is not compatible with the socket type"),
    (Error::Terminated, c"Context was terminated"),
    (Error::NoThread, c"No thread available"),
    // The peer of a ROUTER is unknown; the system's text would be about a route.
    (Error::HostUnreachable, c"Host unreachable"),
];

/// Sets the calling thread's errno to that of `error`. Returns -1, the result of most failed
/// functions.
#[cold]
pub(crate) fn fail(error: Error) -> c_int {
    errno::set(error.errno());
    -1
}

/// Returns 0, or -1 with errno.
#[inline]
pub(crate) fn status(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => fail(error),
    }
}

/// Returns a size, limited to the range of a C int, or -1 with errno.
#[inline]
pub(crate) fn size(result: Result<usize, Error>) -> c_int {
    match result {
        Ok(size) => c_int::try_from(size).unwrap_or(c_int::MAX),
        Err(error) => fail(error),
    }
}

/// Returns the calling thread's error number: that of the last failed ZeroMQ call, unless another C
/// call has changed it since.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub extern "C" fn zmq_errno() -> c_int {
    errno::last()
}

/// Returns the text for an error number, including ZeroMQ's own. Never null. The text stays valid,
/// except that the thread's next such call overwrites the text for an unknown number.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub extern "C" fn zmq_strerror(number: c_int) -> *const c_char {
    text(number).map_or_else(|| unknown(number), CStr::as_ptr)
}

fn text(number: c_int) -> Option<&'static CStr> {
    let own = TEXTS.iter().find(|(error, _)| error.errno() == number);
    own.map_or_else(|| errno::message(number), |&(_, words)| Some(words))
}

/// Formats an unknown number as the C library does, in a buffer of the calling thread.
fn unknown(number: c_int) -> *const c_char {
    thread_local!(static TEXT: RefCell<CString> = RefCell::default());
    TEXT.try_with(|slot| {
        let mut slot = slot.borrow_mut();
        *slot = CString::new(format!("Unknown error {number}")).unwrap_or_default();
        slot.as_ptr()
    })
    // The thread is ending and its buffer has been freed.
    .unwrap_or(c"Unknown error".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(number: c_int) -> String {
        // SAFETY: zmq_strerror returns a terminated text. This thread does not overwrite it before
        // it is copied.
        unsafe { CStr::from_ptr(zmq_strerror(number)) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn own_errors_have_texts() {
        assert_eq!(words(156_384_763), "Operation cannot be accomplished in current state");
        assert_eq!(words(156_384_764), "The protocol is not compatible with the socket type");
        assert_eq!(words(156_384_765), "Context was terminated");
        assert_eq!(words(156_384_766), "No thread available");
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
        assert_eq!(words(156_384_712), "Unknown error 156384712");
        assert_eq!(words(-1), "Unknown error -1");
    }

    #[test]
    fn errno_is_the_threads_own() {
        errno::set(errno::ENOENT);
        std::thread::spawn(|| fail(Error::State)).join().unwrap();
        assert_eq!(zmq_errno(), errno::ENOENT);
    }

    #[test]
    fn results_become_c_values() {
        assert_eq!(status(Ok(())), 0);
        assert_eq!(status(Err(Error::Terminated)), -1);
        assert_eq!(zmq_errno(), 156_384_765);
        assert_eq!(size(Ok(7)), 7);
        assert_eq!(size(Ok(usize::MAX)), c_int::MAX);
        assert_eq!(size(Err(Error::Again)), -1);
        assert_eq!(zmq_errno(), errno::EAGAIN);
    }
}
