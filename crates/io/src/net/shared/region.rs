//! Memory that two processes map: made by whoever writes into it, and handed over as a sealed descriptor.
//!
//! It comes from a peer who may mean harm, so nothing in it is believed: the descriptor must be one that cannot shrink (to touch what is
//! beyond its end would end the process), of ordinary memory and of a known size; and what it says is checked by whoever reads it.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use super::resize::resize;
use crate::sys::{check, retry};

/// Bytes of a ring.
const CAPACITY: usize = 2 * 1024 * 1024;
/// What a peer's ring may have.
const LEAST: usize = 4096;
const MOST: usize = 4 * 1024 * 1024;
/// Bytes before the ring: a page.
const HEADER: usize = 4096;
/// Most bytes that a process has mapped: what peers offer beyond stays in the kernel's buffers.
const BUDGET: usize = 64 * 1024 * 1024;
/// The layout that both ends must mean.
const MAGIC: u64 = u64::from_le_bytes(*b"tautlin1");

/// Mapped by this process, in bytes.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// A cache line of its own, with the one that the processor fetches beside it.
#[repr(C, align(128))]
pub(super) struct Line<T>(pub(super) T);

/// What stands before the ring. Each line is written by one end, but for the two flags, which one end raises and the other one takes down.
#[repr(C)]
pub(super) struct Header {
    magic: AtomicU64,
    /// Reader: has mapped it, and will look here.
    pub(super) accepted: AtomicU32,
    /// Writer: what comes behind so many bytes of the socket is here. Valid once `switched` is not 0.
    pub(super) switch_at: Line<AtomicU64>,
    pub(super) switched: AtomicU32,
    /// Writer: end of what is there, in bytes from the beginning of the stream.
    pub(super) tail: Line<AtomicU64>,
    /// Reader: beginning of what is there.
    pub(super) head: Line<AtomicU64>,
    /// The reader wants a bell with the next bytes.
    pub(super) asleep: Line<AtomicU32>,
    /// The writer wants a bell when there is room.
    pub(super) blocked: Line<AtomicU32>,
}

/// A mapped region. Both ends have one.
pub(super) struct Region {
    base: NonNull<u8>,
    capacity: usize,
    share: Share,
}

// SAFETY: the mapping belongs to this value, whatever thread it is on.
unsafe impl Send for Region {}
// SAFETY: by a shared reference only the header can be touched, which is of atomics.
unsafe impl Sync for Region {}

impl Region {
    /// A fresh one, and the descriptor to hand over.
    pub(super) fn create() -> io::Result<(Region, OwnedFd)> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string; the descriptor returned is ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::memfd_create(c"tautline-ipc".as_ptr(), flags))?) };
        resize(fd.as_fd(), HEADER + CAPACITY)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: the descriptor is open; integers only.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        let region = Region::map(&fd, CAPACITY)?;
        region.header().magic.store(MAGIC, Relaxed);
        // The reader has not looked yet, so it wants to be told of the first bytes.
        region.header().asleep.0.store(1, Relaxed);
        Ok((region, fd))
    }

    /// One that a peer has handed over: EINVAL for what is not such a region, ENOMEM if this process has enough of them.
    pub(super) fn accept(fd: &OwnedFd) -> io::Result<Region> {
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        let raw = fd.as_raw_fd();
        // SAFETY: the descriptor is open; EINVAL for one that cannot be sealed.
        let seals = check(unsafe { libc::fcntl(raw, libc::F_GET_SEALS) })?;
        // SAFETY: two structs of integers, which the kernel fills in.
        let (system, status) = unsafe {
            let mut system: libc::statfs = std::mem::zeroed();
            let mut status: libc::stat = std::mem::zeroed();
            check(libc::fstatfs(raw, &mut system))?;
            check(libc::fstat(raw, &mut status))?;
            (system, status)
        };
        let capacity = usize::try_from(status.st_size).ok().and_then(|size| size.checked_sub(HEADER));
        let Some(capacity) = capacity.filter(|n| (LEAST..=MOST).contains(n) && n.is_power_of_two()) else {
            return Err(invalid());
        };
        if seals & libc::F_SEAL_SHRINK == 0 || system.f_type != libc::TMPFS_MAGIC {
            return Err(invalid());
        }
        let region = Region::map(fd, capacity)?;
        if region.header().magic.load(Relaxed) != MAGIC {
            return Err(invalid());
        }
        Ok(region)
    }

    fn map(fd: &OwnedFd, capacity: usize) -> io::Result<Region> {
        let share = Share::take(HEADER + capacity)?;
        // Pages that are not there when they are touched, and not to be had, would end the process.
        // SAFETY: the descriptor is open; integers only.
        retry(|| check(unsafe { libc::fallocate(fd.as_raw_fd(), 0, 0, share.0 as libc::off_t) }))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever there is room.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), share.0, access, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        match NonNull::new(base.cast::<u8>()).filter(|_| base != libc::MAP_FAILED) {
            Some(base) => Ok(Region { base, capacity, share }),
            None => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the mapping lasts as long as `self`, begins on a page, and is a page longer than the ring; any bits are a value of atomics.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Bytes of the ring, a power of two.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Copies `length` bytes to the ring, from position `at` of the stream.
    ///
    /// # Safety
    /// `from` must be valid for reads of `length` bytes, which is at most the capacity.
    pub(super) unsafe fn put(&self, at: u64, from: *const u8, length: usize) {
        let (first, rest) = self.parts(at, length);
        let ring = self.ring();
        // SAFETY: both pieces lie in the ring, which is no part of the caller's memory; nothing in this process refers to it.
        unsafe {
            copy_opaquely(from, ring.add(self.offset(at)), first);
            copy_opaquely(from.add(first), ring, rest);
        }
    }

    /// Copies `length` bytes from the ring, from position `at` of the stream.
    ///
    /// # Safety
    /// `to` must be valid for writes of `length` bytes, which is at most the capacity.
    pub(super) unsafe fn get(&self, at: u64, to: *mut u8, length: usize) {
        let (first, rest) = self.parts(at, length);
        let ring = self.ring();
        // SAFETY: both pieces lie in the ring, which is no part of the caller's memory. The peer may write to it meanwhile: then what is
        // copied is what it makes of that, and it is looked at only in the copy.
        unsafe {
            copy_opaquely(ring.add(self.offset(at)), to, first);
            copy_opaquely(ring, to.add(first), rest);
        }
    }

    fn offset(&self, at: u64) -> usize {
        at as usize & (self.capacity - 1)
    }

    /// The pieces before and behind the end of the ring.
    fn parts(&self, at: u64, length: usize) -> (usize, usize) {
        let first = length.min(self.capacity - self.offset(at));
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
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.share.0) };
    }
}

/// Copies between memory of this process and memory that another process may write to at the same time.
///
/// The C library's machine code does it, called through a pointer that is read as volatile. So the compiler cannot know that it is a copy:
/// it can neither do it twice nor read the shared bytes again in place of the copied ones. Words that are copied as volatile would be as good
/// an argument, and take three times as long.
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

/// So many bytes of what the process may map.
struct Share(usize);

impl Share {
    fn take(size: usize) -> io::Result<Self> {
        let share = Share(size);
        match MAPPED.fetch_add(size, Relaxed) + size > BUDGET {
            true => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
            false => Ok(share),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        MAPPED.fetch_sub(self.0, Relaxed);
    }
}

/// Whether this process may map one more.
pub(super) fn within_budget() -> bool {
    MAPPED.load(Relaxed) + HEADER + CAPACITY <= BUDGET
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
