//! Memory that two processes map. The process that writes into it creates it, and hands it over as
//! a sealed descriptor.
//!
//! The memory may come from a malicious peer, so we do not trust it. The descriptor must be sealed
//! against shrinking (touching memory beyond its end would kill the process) and growing. It must
//! be ordinary memory of the known size. The reader checks all values in it.
//!
//! We also avoid every operation on it that might wait for the peer, which can hold the lock of the
//! memory's file for as long as it likes. We do not allocate it, resize it, seek in it or query its
//! state. The creator of a region allocates its pages before it hands the region over. The peer can
//! release these pages at any time, even after a check. Touching them then allocates them again.

use super::atomic::Ordering::Relaxed;
use super::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use super::super::rights::PeerFd;
use super::loans::LoanArea;
use crate::memfd;
use crate::sys::{check, retry};

/// Size of a ring in bytes, a power of two. Small in a simulation, so that the ring is often full.
pub(super) const CAPACITY: usize = crate::net::SHARED_CAPACITY;
/// Number of bytes before the ring: one page.
pub(super) const HEADER: usize = 4096;
/// Size of a region in bytes.
const SIZE: usize = HEADER + CAPACITY;
/// Most bytes that a process maps. Beyond this, offers of peers are declined and their data uses
/// the kernel's buffers.
const BUDGET: usize = 64 * 1024 * 1024;
/// Identifies the layout, which both ends must share.
const MAGIC: u64 = u64::from_le_bytes(*b"tautlin1");

/// Number of bytes that this process has mapped.
// Relaxed: number: a budget.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// A value with a cache line of its own, and the neighbouring line that the processor fetches
/// along.
#[repr(C, align(128))]
pub(super) struct Line<T>(pub(super) T);

/// The header before the ring. Only one end writes each line, except for the two flags, which one
/// end raises and the other clears.
#[repr(C)]
pub(super) struct Header {
    // Relaxed: alone: written before the descriptor is sent.
    magic: AtomicU64,
    /// Reader: it has mapped the region and will look here.
    pub(super) accepted: AtomicU32,
    /// Writer: number of bytes of the socket that precede the data here. Valid once `switched` is
    /// not 0.
    // Relaxed: behind `switched`.
    pub(super) switch_at: Line<AtomicU64>,
    pub(super) switched: AtomicU32,
    /// Writer: end of the available data, in bytes from the beginning of the stream.
    // Relaxed: number, when the reader computes the free space.
    pub(super) tail: Line<AtomicU64>,
    /// Reader: beginning of the available data.
    pub(super) head: Line<AtomicU64>,
    /// Set if the reader requests a bell with the next bytes.
    // Relaxed: fence, in `bell.rs`. A reader withdraws its own request by a plain store, so an
    // unneeded bell may ring.
    pub(super) asleep: Line<AtomicU32>,
    /// Set if the writer requests a bell when there is space.
    pub(super) blocked: Line<AtomicU32>,
    /// Large bodies outside of the ring.
    loans: LoanArea,
}

const _: () = assert!(size_of::<Header>() <= HEADER);

/// A mapped region. Each end has one.
pub(super) struct Region {
    base: NonNull<u8>,
    _share: Share,
}

// SAFETY: the mapping belongs to this value, on any thread.
unsafe impl Send for Region {}
// SAFETY: a shared reference gives access only to the header, which consists of atomics.
unsafe impl Sync for Region {}

impl Region {
    /// Creates a region. Returns it with the descriptor to hand over.
    pub(super) fn create() -> io::Result<(Region, OwnedFd)> {
        let fd = memfd::create(SIZE)?;
        let share = Share::take()?;
        // Touching a missing page that cannot be allocated would kill the process. SAFETY: the
        // descriptor is open; integers only.
        retry(|| check(unsafe { libc::fallocate(fd.as_raw_fd(), 0, 0, SIZE as libc::off_t) }))?;
        memfd::seal(&fd, memfd::FIXED_LENGTH)?;
        let region = Region::map(fd.as_fd(), share)?;
        region.header().magic.store(MAGIC, Relaxed);
        // The reader has not looked yet, so it must get a bell with the first bytes.
        region.header().asleep.0.store(1, Relaxed);
        Ok((region, fd))
    }

    /// Maps a region that a peer has handed over. Fails with EINVAL if it is not such a region, and
    /// with ENOMEM if this process has reached its budget.
    pub(super) fn accept(memory: &PeerFd) -> io::Result<Region> {
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        let raw = memory.as_fd().as_raw_fd();
        // The first check takes no lock, and tells memory from all other files, on which the calls
        // below may wait. SAFETY: the descriptor is open; EINVAL for one that cannot be sealed.
        let seals = check(unsafe { libc::fcntl(raw, libc::F_GET_SEALS) })?;
        let is_fixed = seals & memfd::FIXED_LENGTH == memfd::FIXED_LENGTH;
        if !(is_fixed && memfd::is_plain(raw)? && memory.has_length(SIZE as u64)) {
            return Err(invalid());
        }
        let region = Region::map(memory.as_fd(), Share::take()?)?;
        if region.header().magic.load(Relaxed) != MAGIC {
            return Err(invalid());
        }
        Ok(region)
    }

    fn map(fd: BorrowedFd<'_>, share: Share) -> io::Result<Region> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at any free address.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), SIZE, access, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        match NonNull::new(base.cast::<u8>()).filter(|_| base != libc::MAP_FAILED) {
            Some(base) => Ok(Region { base, _share: share }),
            None => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the mapping lasts as long as `self`, begins on a page, and is a page longer than
        // the ring. Any bits are a valid value of atomics.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// The part of the header for loans.
    pub(super) fn loans(&self) -> &LoanArea {
        &self.header().loans
    }

    /// Copies `length` bytes to the ring, at position `at` of the stream.
    ///
    /// # Safety
    /// `from` must be valid for reads of `length` bytes, which is at most the capacity.
    pub(super) unsafe fn put(&self, at: u64, from: *const u8, length: usize) {
        let (first, rest) = Self::parts(at, length);
        let ring = self.ring();
        // SAFETY: both pieces lie in the ring, which does not overlap the caller's memory. This
        // process holds no reference to the ring.
        unsafe {
            copy_opaquely(from, ring.add(Self::offset(at)), first);
            copy_opaquely(from.add(first), ring, rest);
        }
    }

    /// Copies `length` bytes from the ring, from position `at` of the stream.
    ///
    /// # Safety
    /// `to` must be valid for writes of `length` bytes, which is at most the capacity.
    pub(super) unsafe fn get(&self, at: u64, to: *mut u8, length: usize) {
        let (first, rest) = Self::parts(at, length);
        let ring = self.ring();
        // SAFETY: both pieces lie in the ring, which does not overlap the caller's memory. If the
        // peer writes to the ring at the same time, the copy holds arbitrary bytes, and we inspect
        // only the copy.
        unsafe {
            copy_opaquely(ring.add(Self::offset(at)), to, first);
            copy_opaquely(ring, to.add(first), rest);
        }
    }

    fn offset(at: u64) -> usize {
        at as usize & (CAPACITY - 1)
    }

    /// Returns the lengths of the pieces before and after the wrap at the end of the ring.
    fn parts(at: u64, length: usize) -> (usize, usize) {
        let first = length.min(CAPACITY - Self::offset(at));
        (first, length - first)
    }

    fn ring(&self) -> *mut u8 {
        // SAFETY: the mapping is longer than its header.
        unsafe { self.base.as_ptr().add(HEADER) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and no reference to it is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), SIZE) };
    }
}

/// Copies between memory of this process and memory that another process may write to at the same
/// time.
///
/// The C library's machine code does the copy, called through a pointer that is read as volatile.
/// The compiler cannot know that the call is a copy. It can therefore neither copy twice nor read
/// the shared bytes again instead of the copy. A loop of volatile word accesses would be equally
/// sound, but takes three times as long.
///
/// # Safety
/// `from` and `to` are valid for `n` bytes and do not overlap.
pub(super) unsafe fn copy_opaquely(from: *const u8, to: *mut u8, n: usize) {
    static COPY: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void = libc::memcpy;
    // SAFETY: an initialised static.
    let copy = unsafe { (&raw const COPY).read_volatile() };
    // SAFETY: the caller guarantees it.
    unsafe { copy(to.cast(), from.cast(), n) };
}

/// Share of one region in the process's budget.
struct Share;

impl Share {
    fn take() -> io::Result<Self> {
        let share = Share;
        match MAPPED.fetch_add(SIZE, Relaxed) + SIZE > BUDGET {
            true => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
            false => Ok(share),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        MAPPED.fetch_sub(SIZE, Relaxed);
    }
}

/// True if this process may map another region.
pub(super) fn within_budget() -> bool {
    MAPPED.load(Relaxed) + SIZE <= BUDGET
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn copies_exactly_n_bytes_at_every_position() {
        let from: Vec<u8> = (0..=255).collect();
        for (n, skip) in (0..200).flat_map(|n| (0..8).map(move |skip| (n, skip))) {
            let mut to = [0xAA; 256];
            // SAFETY: both have space for `n` bytes from these positions on.
            unsafe { copy_opaquely(from.as_ptr().add(skip), to.as_mut_ptr().add(16 + skip / 2), n) };
            let (before, copied) = to.split_at(16 + skip / 2);
            assert_eq!(copied[..n], from[skip..skip + n]);
            assert!(before.iter().chain(&copied[n..]).all(|&byte| byte == 0xAA), "{n} bytes at {skip}");
        }
    }
}
