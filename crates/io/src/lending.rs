//! The switch of loans, for the whole process: whether large bodies over `ipc` are lent to other
//! processes in place of a copy, and from which size on.
//!
//! A process that reads a slab sees all bodies in it, also those for other peers. So loans end for
//! good when a socket of the process encrypts, or when other users may share its memory.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Smallest limit for the size of a lent body.
pub const LOWEST_LIMIT: usize = 64 * 1024;
/// Smallest body that is lent. Up to 128 KiB, the reader has blocks for bodies in a pool
/// (`tautline_mem::blocks`), and a copy through the ring is faster.
pub const DEFAULT_LIMIT: usize = 132 * 1024;

/// True if this build can lend bodies.
pub const IS_BUILT: bool = cfg!(all(linux_kernel, any(test, feature = "loans")));

/// Value of `LEAST` once loans are off.
const OFF: usize = usize::MAX;

/// Smallest body that is lent.
// Relaxed: number: the program's own order brings a secret to another thread, and with it the
// switch.
static LEAST: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT);

/// Number of loans so far.
// Relaxed: number, for statistics.
static LENT: AtomicU64 = AtomicU64::new(0);

/// Counts a body that a peer receives without a copy.
#[cfg(all(linux_kernel, any(test, feature = "loans")))]
pub(crate) fn count_loan() {
    LENT.fetch_add(1, Relaxed);
}

/// Returns the number of bodies that peers have received without a copy.
pub fn lent() -> u64 {
    LENT.load(Relaxed)
}

/// Returns the size of the smallest body that is lent, above all sizes once loans are off.
#[inline]
pub fn least() -> usize {
    LEAST.load(Relaxed)
}

/// True if a body of `len` bytes may be lent to a peer.
#[inline]
pub fn may_lend(len: usize) -> bool {
    IS_BUILT && len >= least()
}

/// True once loans are off.
#[inline]
pub fn is_forbidden() -> bool {
    least() == OFF
}

/// Turns loans off for good. Bodies that were lent before stay readable for their readers.
pub fn forbid() {
    if !is_forbidden() {
        LEAST.store(OFF, Relaxed);
    }
}

/// Applies the setting of the environment: `0` turns loans off, a larger number than 1 is the size
/// of the smallest lent body. Ignores other texts. Has no effect once loans are off.
pub fn configure(setting: Option<&OsStr>) {
    if let Some(limit) = limit(setting) {
        let _ = LEAST.fetch_update(Relaxed, Relaxed, |least| (least != OFF).then_some(limit));
    }
}

/// Returns the limit for a setting. `None` if the setting does not change the limit.
fn limit(setting: Option<&OsStr>) -> Option<usize> {
    match setting?.to_str()?.parse().ok()? {
        0 => Some(OFF),
        1 => None,
        bytes => Some(LOWEST_LIMIT.max(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_at_least_64_kib() {
        let limit = |text: &'static str| limit(Some(text.as_ref()));
        assert_eq!(limit("2"), Some(65_536));
        assert_eq!(limit("100000"), Some(100_000));
        assert_eq!(limit("0"), Some(OFF));
        for text in ["", "1", "yes", "-1", "99999999999999999999999"] {
            assert_eq!(limit(text), None, "{text}");
        }
    }
}
