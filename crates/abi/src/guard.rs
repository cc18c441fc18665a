//! Stops panics at the ABI. Unwinding into C is undefined behaviour, so every exported function
//! whose body could panic even in theory runs inside [`guard`]. Hot functions that cannot panic are
//! not guarded.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tautline_io::errno;

/// Runs `body`. Turns a panic in it into `failure` with EFAULT, after the panic hook has reported
/// it.
///
/// Callers hold no lock for which a panic matters, because all locks here ignore poisoning. Hence
/// the assertion of unwind safety.
pub(crate) fn guard<T>(failure: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        errno::set(errno::EFAULT);
        failure
    })
}

/// Like [`guard`], for a `body` that makes an object. Fails with ENOMEM while memory is short.
pub(crate) fn guard_new<T>(failure: T, body: impl FnOnce() -> T) -> T {
    if tautline_core::is_memory_short() {
        errno::set(errno::ENOMEM);
        return failure;
    }
    guard(failure, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_passes_and_errno_stays() {
        errno::set(errno::ENOENT);
        assert_eq!(guard(-1, || 7), 7);
        assert_eq!(errno::last(), errno::ENOENT);
    }

    #[test]
    fn a_panic_becomes_efault() {
        assert_eq!(guard(-1, || panic!("expected by this test")), -1);
        assert_eq!(errno::last(), errno::EFAULT);
    }
}
