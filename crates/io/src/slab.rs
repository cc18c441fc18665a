//! Memory for large message bodies that other processes can map for reading: *slabs*.
//!
//! A slab is a file in memory. This process maps it for writing and then seals it
//! (`F_SEAL_FUTURE_WRITE`): a process that receives the descriptor can only read, and cannot
//! change the length. The seal also forbids to give back single pages, so memory goes back to the
//! system by whole slabs.
//!
//! All slabs lie in one reserved range of addresses, so an address shows whether it belongs to a
//! slab. A *block* is a run of units of one slab. Its body begins at a fixed position in the first
//! page, behind a header of `lead` bytes.
//!
//! A [`Lease`] keeps a block although its user has freed it: another process may still read the
//! body.
//!
//! A forked child has the parent's blocks, with its own copy of each page that it writes to. It
//! does not allocate or free blocks. The parent uses the memory of such a block again only after
//! the child (`children.rs`). If the parent writes to a block that it had at the fork, the child
//! sees the new bytes.

mod budget;
mod units;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::children::Use;
use crate::lending::Count;
use crate::sys::{check, retry};
use crate::{fork, lending, libc, memfd};
use tautline_mem::blocks::{self, LargeSource};
use units::{UNIT, Units};

pub(crate) const PAGE: usize = 4096;
/// Position of the body in its block. Programs copy it to and from large memory of the C library's
/// allocator, which begins 16 bytes after the start of a page. Some processors copy a tenth as fast
/// if the target begins 1 to 63 bytes further in its page than the source.
pub(crate) const BODY_AT: usize = PAGE / 2;
/// Bytes of a slab for several blocks, and of a slot in the range.
const SLOT: usize = 16 * 1024 * 1024;
/// Number of slots. Each is address space, and memory only once it is used.
const SLOTS: usize = 128;
/// Limit for the memory of all slabs, if the machine has enough.
const MOST: usize = 1024 * 1024 * 1024;
/// A slab without blocks is given back after this time.
const IDLE: Duration = Duration::from_secs(5);

const SEALS: libc::c_int = memfd::FIXED_LENGTH | libc::F_SEAL_FUTURE_WRITE;

/// The file of a slab.
#[derive(Debug)]
pub struct SlabFile {
    /// Number of the slab, which the process uses only once.
    pub id: u64,
    /// Bytes of the file.
    pub length: usize,
    fd: OwnedFd,
}

impl AsFd for SlabFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Keeps the memory of a body until it is dropped.
#[derive(Debug)]
pub struct Lease {
    /// The slab of the body.
    pub file: Arc<SlabFile>,
    /// Position of the body in the file.
    pub offset: usize,
    generation: u32,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.generation == fork::generation() {
            let mut pool = lock();
            pool.end(self.file.id, self.offset - BODY_AT, |block| block.leases -= 1);
            pool.trim(Instant::now());
        }
    }
}

/// A run of units in use.
struct Block {
    units: Range<usize>,
    /// `None` once its user has freed it.
    live: Option<Use>,
    leases: u32,
}

struct Slab {
    file: Arc<SlabFile>,
    /// Slots of the range.
    slots: Range<usize>,
    units: Units,
    /// By their position in the file.
    blocks: BTreeMap<usize, Block>,
    /// Time since when it has no blocks.
    idle_since: Option<Instant>,
}

struct Pool {
    slabs: Vec<Slab>,
    slots: [bool; SLOTS],
    last_id: u64,
    /// Bytes that the slabs may use.
    budget: usize,
}

/// The first address of the range. 0 before there is one.
// Relaxed: number: an address in the range comes from the pool, whose lock orders the threads.
static RANGE: AtomicUsize = AtomicUsize::new(0);
/// The generation of the process that uses the pool.
// Relaxed: number: written before the first block.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Number of peers that take loans.
// Relaxed: number: a block more or less in a slab.
static BORROWERS: AtomicUsize = AtomicUsize::new(0);
static POOL: Mutex<Pool> =
    Mutex::new(Pool { slabs: Vec::new(), slots: [false; SLOTS], last_id: 0, budget: 0 });
/// A mapped file, for a forked child.
struct MappedFile {
    /// The descriptor plus 1. 0 if there is no file.
    // Relaxed: own: the child has one thread, and fork orders all before it.
    fd_plus_1: AtomicI32,
    // Relaxed: own: as above.
    length: AtomicUsize,
}

/// The mapped files, each in the place of its first slot.
static MAPPED: [MappedFile; SLOTS] =
    [const { MappedFile { fd_plus_1: AtomicI32::new(0), length: AtomicUsize::new(0) } }; SLOTS];

/// Makes blocks of the engine come from slabs while a peer takes loans, or if a program asks. A
/// block is returned here if it has `least` bytes, so this number is constant.
static SOURCE: LargeSource = LargeSource {
    least: lending::LOWEST_LIMIT,
    allocate: |size, asked| match BORROWERS.load(Relaxed) {
        0 if !asked => std::ptr::null_mut(),
        _ if size - blocks::ALIGN < lending::least() => std::ptr::null_mut(),
        _ => allocate(blocks::ALIGN, size - blocks::ALIGN).map_or(std::ptr::null_mut(), NonNull::as_ptr),
    },
    owns,
    free: free_engine_block,
};

/// # Safety
/// `block` comes from `SOURCE`, and is no longer used.
unsafe fn free_engine_block(block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { free(block, blocks::ALIGN) };
}

/// A peer that takes loans.
#[derive(Debug)]
pub(crate) struct BorrowerCount;

impl BorrowerCount {
    pub(crate) fn new() -> Self {
        BORROWERS.fetch_add(1, Relaxed);
        BorrowerCount
    }
}

impl Drop for BorrowerCount {
    fn drop(&mut self) {
        BORROWERS.fetch_sub(1, Relaxed);
    }
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if `address` lies in a slab. Costs one load.
#[inline]
pub fn owns(address: *const u8) -> bool {
    address.addr().wrapping_sub(RANGE.load(Relaxed)) < SLOTS * SLOT && RANGE.load(Relaxed) != 0
}

/// Prepares the range of addresses and the budget. Returns false if the system or `lending` refuses
/// it, or if this process is a forked child of one that uses slabs.
pub fn start() -> bool {
    if lending::is_forbidden() {
        return false;
    }
    if RANGE.load(Relaxed) != 0 {
        return GENERATION.load(Relaxed) == fork::generation();
    }
    let mut pool = lock();
    if RANGE.load(Relaxed) != 0 {
        return true;
    }
    let budget = budget::budget(MOST);
    if budget < SLOT {
        return false;
    }
    let Ok(range) = map(std::ptr::null_mut(), SLOTS * SLOT, None) else { return false };
    fork::start_counting();
    fork::call_in_child(keep_in_child);
    pool.budget = budget;
    GENERATION.store(fork::generation(), Relaxed);
    blocks::set_large_source(&SOURCE);
    RANGE.store(range.as_ptr().expose_provenance(), Relaxed);
    true
}

/// Returns the address of `lead` bytes that precede `len` bytes for a body. `None` if the budget or
/// the memory of the system is exhausted, or if loans are forbidden.
pub fn allocate(lead: usize, len: usize) -> Option<NonNull<u8>> {
    if !is_usable() || lead > BODY_AT {
        return None;
    }
    let bytes = len.checked_add(BODY_AT)?;
    let count = bytes.div_ceil(UNIT);
    let mut pool = lock();
    let found = pool.slabs.iter_mut().enumerate().find_map(|(at, slab)| Some((at, slab.units.take(count)?)));
    if let Some((at, run)) = found {
        return pool.place(at, run, lead);
    }
    let Some(at) = pool.add_slab(bytes) else {
        lending::add(Count::OverBudget, 1);
        return None;
    };
    let run = pool.slabs[at].units.take(count)?;
    let block = pool.place(at, run, lead);
    drop(pool);
    crate::net::start_caretaker();
    block
}

/// Frees a block. Its memory stays while it has leases.
///
/// # Safety
/// `block` comes from [`allocate`] with the same `lead`, and is no longer used.
pub unsafe fn free(block: *mut u8, lead: usize) {
    // A child's copy of the parent's block stays mapped until the child ends.
    if GENERATION.load(Relaxed) == fork::generation() {
        let mut pool = lock();
        if let Some((id, start)) = pool.find(block.addr() + lead - BODY_AT) {
            let inherited = pool.lend(id, start, 0, Use::is_inherited);
            let mut used = None;
            pool.end(id, start, |block| used = block.live.take());
            pool.trim(Instant::now());
            drop(pool);
            if let (Some(lease), Some(used)) = (inherited, used) {
                used.keep(lease);
            }
        }
    }
}

/// True if this process has slabs, and may lend them.
fn is_usable() -> bool {
    RANGE.load(Relaxed) != 0 && GENERATION.load(Relaxed) == fork::generation() && !lending::is_forbidden()
}

/// Returns a lease of the block whose body begins at `body`. `None` if no body begins there, if it
/// has less than `len` bytes, or if loans are forbidden.
pub fn lend(body: *const u8, len: usize) -> Option<Lease> {
    if !is_usable() || !owns(body) {
        return None;
    }
    let mut pool = lock();
    let (id, start) = pool.find(body.addr() - BODY_AT)?;
    pool.lend(id, start, len, |_| true)
}

/// Returns a lease, and the address of a new body of `len` bytes, which lasts as long as the lease.
/// `None` if there is no memory.
pub(crate) fn allocate_lent(len: usize) -> Option<(Lease, NonNull<u8>)> {
    let body = allocate(0, len)?;
    let lease = lend(body.as_ptr(), len);
    // SAFETY: just allocated with this `lead`. The lease keeps the memory.
    unsafe { free(body.as_ptr(), 0) };
    Some((lease?, body))
}

/// True if the body that begins at `body` has a lease: another process may read it.
pub fn is_lent(body: *const u8) -> bool {
    if !owns(body) || GENERATION.load(Relaxed) != fork::generation() {
        return false;
    }
    let pool = lock();
    let Some((id, start)) = pool.find(body.addr() - BODY_AT) else { return false };
    let slab = pool.slabs.iter().find(|slab| slab.file.id == id);
    slab.and_then(|slab| slab.blocks.get(&start)).is_some_and(|block| block.leases > 0)
}

pub use lending::lent;

/// Returns the number of bytes that all slabs may use.
pub(crate) fn budget() -> usize {
    lock().budget
}

/// True if the slab of this number was not given back.
pub(crate) fn is_in_use(id: u64) -> bool {
    lock().slabs.iter().any(|slab| slab.file.id == id)
}

/// Gives back slabs that have been idle for a while. Returns true if there are slabs left.
pub fn trim() -> bool {
    // A forked child has no pool, whose lock a thread of the parent may have held.
    if RANGE.load(Relaxed) == 0 || GENERATION.load(Relaxed) != fork::generation() {
        return false;
    }
    let mut pool = lock();
    pool.trim(Instant::now());
    !pool.slabs.is_empty()
}

impl Pool {
    /// Creates a slab for a block of `bytes`. Returns its place in the list.
    fn add_slab(&mut self, bytes: usize) -> Option<usize> {
        let count = bytes.div_ceil(SLOT);
        let first = (0..=SLOTS.checked_sub(count)?)
            .find(|&first| self.slots[first..first + count].iter().all(|used| !used))?;
        let slots = first..first + count;
        let length = if count == 1 { SLOT } else { bytes.next_multiple_of(UNIT) };
        let fd = memfd::create(length).ok()?;
        map(address(first), length, Some(fd.as_fd())).ok()?;
        // The writable mapping precedes the seal, which forbids further ones.
        if memfd::seal(&fd, SEALS).is_err() {
            let _ = map(address(first), length, None);
            return None;
        }
        MAPPED[first].length.store(length, Relaxed);
        MAPPED[first].fd_plus_1.store(fd.as_raw_fd() + 1, Relaxed);
        self.slots[slots.clone()].fill(true);
        self.last_id += 1;
        self.slabs.push(Slab {
            file: Arc::new(SlabFile { id: self.last_id, length, fd }),
            slots,
            units: Units::new(length / UNIT),
            blocks: BTreeMap::new(),
            idle_since: None,
        });
        Some(self.slabs.len() - 1)
    }

    /// Makes a block of these units, which are taken. Gives them back if there is no memory.
    fn place(&mut self, at: usize, run: Range<usize>, lead: usize) -> Option<NonNull<u8>> {
        let used: usize = self.slabs.iter().map(|slab| slab.units.populated() * UNIT).sum();
        let budget = self.budget;
        let slab = self.slabs.get_mut(at)?;
        let base = address(slab.slots.start);
        let mut left = budget.saturating_sub(used);
        while let Some(bare) = slab.units.populate(run.clone()) {
            let bytes = bare.len() * UNIT;
            let place = base.wrapping_byte_add(bare.start * UNIT);
            if bytes > left || populate(place, bytes, slab.file.as_fd(), bare.start * UNIT).is_err() {
                lending::add(Count::OverBudget, 1);
                slab.units.forget_memory(bare);
                slab.units.give(run);
                slab.note_use();
                return None;
            }
            left -= bytes;
        }
        let start = run.start * UNIT;
        slab.blocks.insert(start, Block { units: run, live: Some(Use::new()), leases: 0 });
        slab.note_use();
        NonNull::new(base.wrapping_byte_add(start + BODY_AT - lead).cast())
    }

    /// Returns the slab and the position of the block that begins at `address`.
    fn find(&self, address: usize) -> Option<(u64, usize)> {
        let offset = address.checked_sub(RANGE.load(Relaxed))?;
        let slab = self.slabs.iter().find(|slab| slab.slots.contains(&(offset / SLOT)))?;
        Some((slab.file.id, offset - slab.slots.start * SLOT))
    }

    /// Returns a lease of a live block with at least `len` bytes, if `wanted` is true for its use.
    fn lend(&mut self, id: u64, start: usize, len: usize, wanted: impl Fn(&Use) -> bool) -> Option<Lease> {
        let slab = self.slabs.iter_mut().find(|slab| slab.file.id == id)?;
        let block = slab.blocks.get_mut(&start)?;
        let is_wanted = block.live.as_ref().is_some_and(wanted);
        if !is_wanted || block.units.len() * UNIT < BODY_AT.checked_add(len)? {
            return None;
        }
        block.leases += 1;
        Some(Lease { file: slab.file.clone(), offset: start + BODY_AT, generation: fork::generation() })
    }

    /// Changes a block, and frees its units if it is in use no longer.
    fn end(&mut self, id: u64, start: usize, change: impl FnOnce(&mut Block)) {
        let Some(slab) = self.slabs.iter_mut().find(|slab| slab.file.id == id) else { return };
        let Some(block) = slab.blocks.get_mut(&start) else { return };
        change(block);
        if block.live.is_none() && block.leases == 0 {
            let units = block.units.clone();
            slab.blocks.remove(&start);
            slab.units.give(units);
            slab.note_use();
        }
    }

    /// Gives back the slabs that have been idle for `IDLE` at `now`.
    fn trim(&mut self, now: Instant) {
        let slots = &mut self.slots;
        self.slabs.retain(|slab| {
            let idle = slab.idle_since.is_some_and(|since| now.saturating_duration_since(since) >= IDLE);
            if idle {
                let first = slab.slots.start;
                MAPPED[first].fd_plus_1.store(0, Relaxed);
                // Replacing the mapping keeps the range reserved. If that fails, the memory stays
                // until the process ends.
                let freed = map(address(first), slab.file.length, None).is_ok();
                slots[slab.slots.clone()].fill(!freed);
            }
            !idle
        });
    }
}

impl Slab {
    /// Notes if it is idle.
    fn note_use(&mut self) {
        self.idle_since = self.blocks.is_empty().then(|| self.idle_since.unwrap_or_else(Instant::now));
    }
}

fn address(slot: usize) -> *mut libc::c_void {
    std::ptr::with_exposed_provenance_mut(RANGE.load(Relaxed) + slot * SLOT)
}

/// Maps a file at a fixed address, for reading and writing. Without a file, reserves addresses
/// that cannot be used: at `at`, or anywhere if that is null.
fn map(at: *mut libc::c_void, length: usize, file: Option<BorrowedFd<'_>>) -> io::Result<NonNull<u8>> {
    let fixed = if at.is_null() { 0 } else { libc::MAP_FIXED };
    let (access, flags, fd) = match file {
        Some(file) => (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1),
    };
    // SAFETY: the system selects the address, or it lies in the range, whose slots there are free
    // or have no blocks.
    let base = unsafe { libc::mmap(at, length, access, flags | fixed, fd, 0) };
    match NonNull::new(base.cast::<u8>()).filter(|_| base != libc::MAP_FAILED) {
        Some(base) => Ok(base),
        None => Err(io::Error::last_os_error()),
    }
}

/// Makes the system allocate the pages of this part of a file, which is mapped at `place`. Touching
/// pages that cannot be allocated would kill the process.
fn populate(place: *mut libc::c_void, length: usize, file: BorrowedFd<'_>, offset: usize) -> io::Result<()> {
    /// MADV_POPULATE_WRITE, since Linux 5.14.
    const POPULATE_WRITE: libc::c_int = 23;
    // SAFETY: a mapping of ours, which does not change.
    match retry(|| check(unsafe { libc::madvise(place, length, POPULATE_WRITE) })) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let (offset, length) = (offset as libc::off_t, length as libc::off_t);
            // SAFETY: the descriptor is open; integers only.
            retry(|| check(unsafe { libc::fallocate(file.as_raw_fd(), 0, offset, length) })).map(drop)
        }
        outcome => outcome.map(drop),
    }
}

/// Gives a forked child its own copy of each page that it writes to. Takes no lock.
extern "C" fn keep_in_child() {
    for (slot, MappedFile { fd_plus_1, length }) in MAPPED.iter().enumerate() {
        let fd = fd_plus_1.load(Relaxed) - 1;
        if fd < 0 {
            continue;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
        // SAFETY: replaces a mapping of the same file. The child has one thread.
        unsafe { libc::mmap(address(slot), length.load(Relaxed), access, flags, fd, 0) };
    }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests;
