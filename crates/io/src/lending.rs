//! The switch of loans, for the whole process: whether large bodies over `ipc` are lent to other
//! processes in place of a copy, and from which size on. Also the numbers for statistics.
//!
//! A process that reads a slab sees all bodies in it, also those for other peers. So loans end for
//! good when a socket of the process encrypts, or when other users may share its memory.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Smallest limit for the size of a lent body.
pub const LOWEST_LIMIT: usize = if cfg!(simulated) { 1024 } else { 64 * 1024 };
/// Smallest body that is lent. Up to 128 KiB, the reader has blocks for bodies in a pool
/// (`tautline_mem::blocks`), and a copy through the ring is faster. Small in a simulation, whose
/// messages are.
pub const DEFAULT_LIMIT: usize = if cfg!(simulated) { 2048 } else { 132 * 1024 };

/// True if this system can lend bodies.
pub const IS_POSSIBLE: bool = cfg!(linux_kernel);

/// Value of `LEAST` once loans are off.
const OFF: usize = usize::MAX;

/// Smallest body that is lent.
// Relaxed: number: the program's own order brings a secret to another thread, and with it the
// switch.
static LEAST: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT);
/// True once a socket encrypts.
// Relaxed: number, for statistics.
static ENCRYPTS: AtomicBool = AtomicBool::new(false);

/// Numbers of the process, see [`counts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Bodies that peers have received without a copy.
    Lent,
    /// Loans that peers have returned.
    Returned,
    /// Bytes of the other loans.
    HeldBytes,
    /// Loans that this process has received without a copy.
    Adopted,
    /// Loans that this process has copied.
    Copied,
    /// Loans that the program may write to.
    Exposed,
    /// Pages of earlier bodies that the program has written to.
    CopiedPages,
    /// Bodies from [`LOWEST_LIMIT`] on that are shorter than [`least`]. This and the following
    /// numbers count bodies that went as bytes although the peer takes loans.
    Short,
    /// Bodies outside of slabs.
    NoSlab,
    /// Bodies that found the memory for slabs used up.
    OverBudget,
    /// Bodies for a peer that holds too many bytes.
    PeerLimit,
    /// Bodies for a peer that holds too many loans.
    NoPlace,
    /// Bodies in a slab that the peer has not mapped yet.
    NotMapped,
    /// Bodies during the pause after a peer could not map a slab.
    Refused,
    /// Bodies since a socket of the process encrypts.
    Encrypted,
    /// Bodies since a setting has turned loans off.
    Forbidden,
}

/// Number of variants of [`Count`].
pub const COUNTS: usize = Count::Forbidden as usize + 1;

// Relaxed: number, for statistics.
static NUMBERS: [AtomicU64; COUNTS] = [const { AtomicU64::new(0) }; COUNTS];

/// Adds to a number.
#[cfg(linux_kernel)]
pub(crate) fn add(count: Count, n: u64) {
    NUMBERS[count as usize].fetch_add(n, Relaxed);
}

/// Subtracts from a number.
#[cfg(linux_kernel)]
pub(crate) fn subtract(count: Count, n: u64) {
    NUMBERS[count as usize].fetch_sub(n, Relaxed);
}

/// Returns all numbers, in the order of [`Count`].
pub fn counts() -> [u64; COUNTS] {
    std::array::from_fn(|place| NUMBERS[place].load(Relaxed))
}

/// Returns the number of bodies that peers have received without a copy.
pub fn lent() -> u64 {
    NUMBERS[Count::Lent as usize].load(Relaxed)
}

/// Counts a body of at least [`LOWEST_LIMIT`] bytes that is not lent.
#[cold]
#[cfg(linux_kernel)]
pub(crate) fn count_unsuitable(length: usize) {
    let why = match least() {
        OFF if ENCRYPTS.load(Relaxed) => Count::Encrypted,
        OFF => Count::Forbidden,
        least if length < least => Count::Short,
        _ => Count::NoSlab,
    };
    add(why, 1);
}

/// Returns the size of the smallest body that is lent, above all sizes once loans are off.
#[inline]
pub fn least() -> usize {
    LEAST.load(Relaxed)
}

/// True if a body of `len` bytes may be lent to a peer.
#[inline]
pub fn may_lend(len: usize) -> bool {
    IS_POSSIBLE && len >= least()
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

/// True once loans are off because a socket encrypts.
pub fn is_beside_encryption() -> bool {
    ENCRYPTS.load(Relaxed)
}

/// As [`forbid`], because a socket of the process encrypts.
pub fn forbid_beside_encryption() {
    if !ENCRYPTS.load(Relaxed) {
        ENCRYPTS.store(true, Relaxed);
        forbid();
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
