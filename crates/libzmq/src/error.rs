//! `zmq_errno` and `zmq_strerror`: errors of ZeroMQ's own beside those of the system.
//!
//! Called by C programs; the rest of this crate turns the engine's results into C's here. The error
//! number of a failed call is C's own `errno`, so that programs may look at either.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use tautline_core::Error;
use tautline_io::errno;

/// ZeroMQ's own words, for its own numbers and where the system speaks of something else.
const TEXTS: [(Error, &CStr); 5] = [
    (Error::State, c"Operation cannot be accomplished in current state"),
    (Error::IncompatibleProtocol, c"The protocol is not compatible with the socket type"),
    (Error::Terminated, c"Context was terminated"),
    (Error::NoThread, c"No thread available"),
    // A ROUTER's unknown peer; the system would speak of a route.
    (Error::HostUnreachable, c"Host unreachable"),
];

/// Sets the calling thread's errno to that of `error`; gives -1, which most functions then answer.
#[cold]
pub(crate) fn fail(error: Error) -> c_int {
    errno::set(error.errno());
    -1
}

/// 0, or -1 with errno.
#[inline]
pub(crate) fn status(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => fail(error),
    }
}

/// A size as far as a C int can tell it, or -1 with errno.
#[inline]
pub(crate) fn size(result: Result<usize, Error>) -> c_int {
    match result {
        Ok(size) => c_int::try_from(size).unwrap_or(c_int::MAX),
        Err(error) => fail(error),
    }
}

/// The calling thread's error number: that of the last ZeroMQ call that failed, unless another C
/// call set it since.
#[unsafe(no_mangle)]
pub extern "C" fn zmq_errno() -> c_int {
    errno::last()
}

/// The text for an error number, ZeroMQ's own included. Never null. It stays valid; only the text
/// for a number that is not known is overwritten by the thread's next such call.
#[unsafe(no_mangle)]
pub extern "C" fn zmq_strerror(number: c_int) -> *const c_char {
    text(number).map_or_else(|| unknown(number), CStr::as_ptr)
}

fn text(number: c_int) -> Option<&'static CStr> {
    let own = TEXTS.iter().find(|(error, _)| error.errno() == number);
    own.map_or_else(|| errno::message(number), |&(_, words)| Some(words))
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
        // SAFETY: zmq_strerror gives a terminated text that this thread does not overwrite
        // meanwhile.
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
