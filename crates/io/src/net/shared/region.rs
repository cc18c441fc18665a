//! Memory that two processes map: made by the process that writes into it, and handed over as a
//! sealed descriptor.
//!
//! It comes from a peer that may mean harm, so nothing in it is believed: the descriptor must be
//! one that cannot shrink (to touch what is beyond its end would end the process) or grow, of
//! ordinary memory and of the known size; and what it says is checked by the reader.
//!
//! Nor is anything done with it that might wait for a peer, which can hold the lock of the memory's
//! file for as long as it likes: it is not allocated, resized, sought in or asked for its state.
//! The maker of a region allocates its pages, before it hands it over. The peer can take them back
//! at any time, whatever was seen before, and then they are allocated when they are touched again.

use super::atomic::Ordering::Relaxed;
use super::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use super::super::rights::Foreign;
use super::resize::resize;
use crate::sys::{check, retry};

/// Bytes of a ring, a power of two. In a simulation few, so that it is often full.
pub(super) const CAPACITY: usize = crate::net::SHARED_CAPACITY;
/// Bytes before the ring: a page.
pub(super) const HEADER: usize = 4096;
/// Bytes of a region.
const SIZE: usize = HEADER + CAPACITY;
/// Most bytes that a process has mapped: what peers offer beyond stays in the kernel's buffers.
const BUDGET: usize = 64 * 1024 * 1024;
/// The layout that both ends must mean.
const MAGIC: u64 = u64::from_le_bytes(*b"tautlin1");

/// What cannot be done with the memory.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
/// MFD_NOEXEC_SEAL: what is in it cannot be run, which a system may ask for (vm.memfd_noexec).
const NO_EXECUTION: libc::c_uint = 0x0008;

/// Mapped by this process, in bytes.
// Relaxed: number: a budget.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// A cache line of its own, with the one that the processor fetches beside it.
#[repr(C, align(128))]
pub(super) struct Line<T>(pub(super) T);

/// What stands before the ring. Each line is written by one end, but for the two flags, which one
/// end raises and the other one takes down.
#[repr(C)]
pub(super) struct Header {
    // Relaxed: alone: written before the descriptor is sent.
    magic: AtomicU64,
    /// Reader: has mapped it, and will look here.
    pub(super) accepted: AtomicU32,
    /// Writer: what comes behind this number of bytes of the socket is here. Valid once `switched`
    /// is not 0.
    // Relaxed: behind `switched`.
    pub(super) switch_at: Line<AtomicU64>,
    pub(super) switched: AtomicU32,
    /// Writer: end of what is there, in bytes from the beginning of the stream.
    // Relaxed: number, where the reader asks how much room there is.
    pub(super) tail: Line<AtomicU64>,
    /// Reader: beginning of what is there.
    pub(super) head: Line<AtomicU64>,
    /// The reader wants a bell with the next bytes.
    // Relaxed: fence, in `bell.rs`. A reader takes its own wish back by a plain store: a bell too
    // many may ring.
    pub(super) asleep: Line<AtomicU32>,
    /// The writer wants a bell when there is room.
    pub(super) blocked: Line<AtomicU32>,
}

/// A mapped region. Both ends have one.
pub(super) struct Region {
    base: NonNull<u8>,
    _share: Share,
}

// SAFETY: the mapping belongs to this value, whatever thread it is on.
unsafe impl Send for Region {}
// SAFETY: by a shared reference only the header can be touched, which is of atomics.
unsafe impl Sync for Region {}

impl Region {
    /// A fresh one, and the descriptor to hand over.
    pub(super) fn create() -> io::Result<(Region, OwnedFd)> {
        let fd = match memory(NO_EXECUTION) {
            // Before Linux 6.3.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => memory(0),
            outcome => outcome,
        }?;
        resize(fd.as_fd(), SIZE)?;
        let share = Share::take()?;
        // Pages that are not there when they are touched, and not to be had, would end the process.
        // SAFETY: the descriptor is open; integers only.
        retry(|| check(unsafe { libc::fallocate(fd.as_raw_fd(), 0, 0, SIZE as libc::off_t) }))?;
        // SAFETY: the descriptor is open; integers only.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, SEALS | libc::F_SEAL_SEAL) })?;
        let region = Region::map(fd.as_fd(), share)?;
        region.header().magic.store(MAGIC, Relaxed);
        // The reader has not looked yet, so it wants to be told of the first bytes.
        region.header().asleep.0.store(1, Relaxed);
        Ok((region, fd))
    }

    /// One that a peer has handed over: EINVAL for what is not such a region, ENOMEM if this
    /// process has enough of them.
    pub(super) fn accept(memory: &Foreign) -> io::Result<Region> {
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        let raw = memory.as_fd().as_raw_fd();
        // First, as it takes no lock and tells memory from all other files, on which the calls
        // below may wait.
        // SAFETY: the descriptor is open; EINVAL for one that cannot be sealed.
        let seals = check(unsafe { libc::fcntl(raw, libc::F_GET_SEALS) })?;
        // SAFETY: a struct of integers, which the kernel fills in.
        let system = unsafe {
            let mut system: libc::statfs = std::mem::zeroed();
            check(libc::fstatfs(raw, &mut system))?;
            system
        };
        // Huge pages are of another system: their files are locked to be mapped. The numbers of
        // systems have 32 bits, in types that differ between C libraries.
        let ordinary = system.f_type as u32 == libc::TMPFS_MAGIC as u32;
        if !(seals & SEALS == SEALS && ordinary && memory.has_length(SIZE as u64)) {
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
        // SAFETY: a new mapping, wherever there is room.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), SIZE, access, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        match NonNull::new(base.cast::<u8>()).filter(|_| base != libc::MAP_FAILED) {
            Some(base) => Ok(Region { base, _share: share }),
            None => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the mapping lasts as long as `self`, begins on a page, and is a page longer than
        // the ring; any bits are a value of atomics.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Copies `length` bytes to the ring, from position `at` of the stream.
    ///
    /// # Safety
    /// `from` must be valid for reads of `length` bytes, which is at most the capacity.
    pub(super) unsafe fn put(&self, at: u64, from: *const u8, length: usize) {
        let (first, rest) = Self::parts(at, length);
        let ring = self.ring();
        // SAFETY: both pieces lie in the ring, which is no part of the caller's memory; nothing in
        // this process refers to it.
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
        // SAFETY: both pieces lie in the ring, which is no part of the caller's memory. The peer
        // may write to it meanwhile: then what is copied is what it makes of that, and it is looked
        // at only in the copy.
        unsafe {
            copy_opaquely(ring.add(Self::offset(at)), to, first);
            copy_opaquely(ring, to.add(first), rest);
        }
    }

    fn offset(at: u64) -> usize {
        at as usize & (CAPACITY - 1)
    }

    /// The pieces before and behind the end of the ring.
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
        // SAFETY: the mapping is this value's, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), SIZE) };
    }
}

/// Fresh memory that can be sealed, of no size.
pub(super) fn memory(flags: libc::c_uint) -> io::Result<OwnedFd> {
    let flags = flags | libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // By number: glibc before 2.27 has no function for it, and a library that names one does not
    // load there.
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::syscall(libc::SYS_memfd_create, c"tautline-ipc".as_ptr(), flags) };
    let fd = check(fd as libc::c_int)?;
    // SAFETY: the descriptor is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Copies between memory of this process and memory that another process may write to at the same
/// time.
///
/// The C library's machine code does it, called through a pointer that is read as volatile. So the
/// compiler cannot know that it is a copy: it can neither do it twice nor read the shared bytes
/// again in place of the copied ones. Words that are copied as volatile would be as good an
/// argument, and take three times as long.
///
/// # Safety
/// `from` and `to` are valid for `n` bytes and do not overlap.
unsafe fn copy_opaquely(from: *const u8, to: *mut u8, n: usize) {
    static COPY: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void = libc::memcpy;
    // SAFETY: an initialised static.
    let copy = unsafe { (&raw const COPY).read_volatile() };
    // SAFETY: the caller's promise.
    unsafe { copy(to.cast(), from.cast(), n) };
}

/// A region's part of what the process may map.
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

/// Whether this process may map one more.
pub(super) fn within_budget() -> bool {
    MAPPED.load(Relaxed) + SIZE <= BUDGET
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_every_length_and_place_are_copied_and_nothing_beside_them() {
        let from: Vec<u8> = (0..=255).collect();
        for (n, skip) in (0..200).flat_map(|n| (0..8).map(move |skip| (n, skip))) {
            let mut to = [0xAA; 256];
            // SAFETY: both have room for `n` bytes from where they begin here.
            unsafe { copy_opaquely(from.as_ptr().add(skip), to.as_mut_ptr().add(16 + skip / 2), n) };
            let (before, copied) = to.split_at(16 + skip / 2);
            assert_eq!(copied[..n], from[skip..skip + n]);
            assert!(before.iter().chain(&copied[n..]).all(|&byte| byte == 0xAA), "{n} bytes at {skip}");
        }
    }
}
