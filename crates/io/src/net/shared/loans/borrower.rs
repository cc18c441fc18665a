//! The reader's end of the loans of one direction.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::super::atomic::Ordering::{Acquire, Relaxed, Release};
use super::super::region::{Region, copy_opaquely};
use super::super::ring::broken;
use super::{LoanArea, PLACES, SLABS, caretaker, exposure, lease, slab_state};
use crate::children::Use;
use crate::lending::{self, Count};
use crate::net::rights::PeerFd;
use crate::net::transfer::{self, Targets};
use crate::sys::{check, retry};
use crate::{fork, libc, memfd, slab};

/// Limit for the slabs of other processes that this process maps. A slab counts once, although each
/// connection maps it for itself: a process that writes to a body must not change the message of
/// another connection.
const BUDGET: usize = 1024 * 1024 * 1024;
static FILES: Mutex<Files> = Mutex::new(Files { mapped: BTreeMap::new(), bytes: 0 });

/// The mapped slabs, by device and inode.
struct Files {
    /// Number of mappings and of bytes.
    mapped: BTreeMap<(u64, u64), (usize, usize)>,
    bytes: usize,
}

impl Files {
    /// `None` if another thread uses them, in a forked child: it may be a thread of the parent.
    fn lock() -> Option<MutexGuard<'static, Files>> {
        match fork::generation() {
            0 => Some(FILES.lock().unwrap_or_else(PoisonError::into_inner)),
            _ => FILES.try_lock().ok(),
        }
    }

    /// Adds a mapping, unless it exceeds the budget.
    fn add(&mut self, file: (u64, u64), length: usize) -> bool {
        if let Some((mappings, _)) = self.mapped.get_mut(&file) {
            *mappings += 1;
            return true;
        }
        let fits = length <= BUDGET - self.bytes;
        if fits {
            self.bytes += length;
            self.mapped.insert(file, (1, length));
        }
        fits
    }

    fn remove(&mut self, file: (u64, u64)) {
        let Some((mappings, length)) = self.mapped.get_mut(&file) else { return };
        *mappings -= 1;
        if *mappings == 0 {
            self.bytes -= *length;
            self.mapped.remove(&file);
        }
    }
}

/// The part of a mapping in the budget.
struct Share((u64, u64));

impl Share {
    fn take(memory: &PeerFd, length: usize) -> io::Result<Self> {
        let file = memory.identity()?;
        let fits = Files::lock().is_some_and(|mut files| files.add(file, length));
        fits.then_some(Share(file)).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(mut files) = Files::lock() {
            files.remove(self.0);
        }
    }
}

/// A slab of the peer, mapped for reading.
struct MappedSlab {
    base: NonNull<u8>,
    length: usize,
    _share: Share,
    /// A second mapping, in which pages are copied when they are written. `None` if it cannot be
    /// had.
    private: Option<NonNull<u8>>,
}

// SAFETY: the mapping belongs to this value, on any thread.
unsafe impl Send for MappedSlab {}
// SAFETY: a shared reference gives addresses only.
unsafe impl Sync for MappedSlab {}

impl MappedSlab {
    /// Maps a slab. Fails unless it is memory of this length whose seals forbid new mappings for
    /// writing, and a new length.
    fn accept(memory: PeerFd, length: usize) -> io::Result<Self> {
        let raw = memory.as_fd().as_raw_fd();
        // The first check takes no lock, see `Region::accept`.
        // SAFETY: the descriptor is open; EINVAL for one that cannot be sealed.
        let seals = check(unsafe { libc::fcntl(raw, libc::F_GET_SEALS) })?;
        let wanted = memfd::FIXED_LENGTH | libc::F_SEAL_FUTURE_WRITE;
        if seals & wanted != wanted || !memfd::is_plain(raw)? || !memory.has_length(length as u64) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let share = Share::take(&memory, length)?;
        let base = map(raw, length, libc::PROT_READ, libc::MAP_SHARED)?;
        caretaker::start();
        // No descriptor stays, which a program could close and use for another file.
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let private = map(raw, length, access, libc::MAP_PRIVATE | libc::MAP_NORESERVE).ok();
        Ok(MappedSlab { base, length, _share: share, private })
    }

    /// Returns the address of the same bytes in the second mapping.
    fn private(&self, body: NonNull<u8>, length: usize) -> Option<NonNull<u8>> {
        let base = self.private?;
        let offset = body.addr().get() - self.base.addr().get();
        // SAFETY: both mappings have the same length.
        let place = unsafe { base.add(offset) };
        // All of the pages belong to this body.
        // SAFETY: a body begins at this position in its first page.
        let page = unsafe { place.sub(slab::BODY_AT) };
        exposure::drop_copies(page, slab::BODY_AT + length).ok().map(|()| place)
    }
}

/// A slab as the reader's end uses it.
struct KnownSlab {
    slab: Arc<MappedSlab>,
    /// True for each page that the system has allocated. It stays: the seals of the slab forbid to
    /// give back a page.
    allocated: Vec<bool>,
}

impl KnownSlab {
    /// Maps a slab. Also fails if the system cannot allocate pages on request.
    fn accept(memory: PeerFd, length: usize) -> io::Result<Self> {
        let slab = Arc::new(MappedSlab::accept(memory, length)?);
        allocate(slab.base, length.min(slab::PAGE))?;
        Ok(KnownSlab { slab, allocated: vec![false; length.div_ceil(slab::PAGE)] })
    }

    /// Returns the address of a body, whose pages the system has allocated by then: touching one
    /// that cannot be allocated would kill the process. `None` if the body is not inside the slab.
    fn body(&mut self, offset: u64, length: u64) -> Option<NonNull<u8>> {
        let (offset, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
        let end = offset.checked_add(length)?;
        if length == 0 || end > self.slab.length || offset % slab::PAGE != slab::BODY_AT {
            return None;
        }
        // SAFETY: inside of the mapping, as is the start of its page.
        let (body, page) =
            unsafe { (self.slab.base.add(offset), self.slab.base.add(offset - slab::BODY_AT)) };
        let allocated = self.allocated.get_mut(offset / slab::PAGE..end.div_ceil(slab::PAGE))?;
        if allocated.contains(&false) {
            allocate(page, slab::BODY_AT + length).ok()?;
            allocated.fill(true);
        }
        Some(body)
    }
}

impl Drop for MappedSlab {
    fn drop(&mut self) {
        for base in [Some(self.base), self.private].into_iter().flatten() {
            // SAFETY: the mapping belongs to this value, and no reference to it is left.
            unsafe { libc::munmap(base.as_ptr().cast(), self.length) };
        }
    }
}

/// True if this process has mapped slabs of others.
pub(super) fn has_mapped_slabs() -> bool {
    Files::lock().is_some_and(|files| files.bytes > 0)
}

/// Maps a whole slab at any free address.
fn map(memory: RawFd, length: usize, access: libc::c_int, flags: libc::c_int) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at any free address.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, memory, 0) };
    match NonNull::new(base.cast::<u8>()).filter(|_| base != libc::MAP_FAILED) {
        Some(base) => Ok(base),
        None => Err(io::Error::last_os_error()),
    }
}

/// Makes the system allocate the pages of this part of a slab's mapping.
fn allocate(start: NonNull<u8>, length: usize) -> io::Result<()> {
    /// MADV_POPULATE_READ, since Linux 5.14.
    const POPULATE_READ: libc::c_int = 22;
    // SAFETY: a part of the mapping, which does not change.
    retry(|| check(unsafe { libc::madvise(start.as_ptr().cast(), length, POPULATE_READ) })).map(drop)
}

/// The entry of a loan, as the reader has read it once.
#[derive(Clone, Copy)]
struct Entry {
    place: usize,
    at: u64,
    slab: usize,
    offset: u64,
    length: u64,
}

/// The reader's side of a place that is HELD. Dropping it returns the body.
struct HeldPlace {
    region: Arc<Region>,
    place: usize,
    generation: u32,
    /// Shows the writer that this process lives.
    _life_line: Arc<PeerFd>,
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        // A forked child has not borrowed it.
        if self.generation == fork::generation() {
            lease::give_back(&self.region.loans().places[self.place].word);
        }
    }
}

/// A body in the memory of another process. Dropping it returns the body, after the forked children
/// that may use it.
pub struct Loan {
    held: Option<HeldPlace>,
    used: Use,
    body: NonNull<u8>,
    length: usize,
    /// Address of the body for writing, once it was exposed.
    exposed: OnceLock<Option<NonNull<u8>>>,
    slab: Arc<MappedSlab>,
}

// SAFETY: the mapping lasts as long as this value, on any thread.
unsafe impl Send for Loan {}
// SAFETY: a shared reference gives the address and the length.
unsafe impl Sync for Loan {}

impl Loan {
    /// Address of the body. A faulty writer may change its bytes at any time.
    pub fn as_ptr(&self) -> *const u8 {
        self.body.as_ptr()
    }

    /// Length of the body in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns an address of the body that a program may write to. Its writes do not reach the
    /// other process. `None` if the system cannot do this.
    pub fn expose(&self) -> Option<*mut u8> {
        let exposed = self.exposed.get_or_init(|| {
            lending::add(Count::Exposed, 1);
            self.slab.private(self.body, self.length)
        });
        exposed.map(NonNull::as_ptr)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if self.used.is_own()
            && let Some(held) = self.held.take()
        {
            self.used.keep(held);
        }
    }
}

impl std::fmt::Debug for Loan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loan").field("length", &self.length).finish_non_exhaustive()
    }
}

/// The reader's end.
pub(in super::super) struct Borrower {
    slabs: [Option<KnownSlab>; SLABS],
    changes: u32,
    /// Number of loans that were taken, and of those that the writer had made at the last look.
    taken: u32,
    end: u32,
    /// The next loan.
    next: Option<Entry>,
    /// The loan that is being copied, and the bytes that are copied.
    current: Option<(Loan, usize)>,
    generation: u32,
}

impl Borrower {
    /// Creates the reader's end. Tells the writer that it takes loans.
    pub(in super::super) fn new(area: &LoanArea) -> Option<Box<Self>> {
        area.accepts.0.store(1, Release);
        Some(Box::new(Borrower {
            slabs: [const { None }; SLABS],
            changes: 0,
            taken: 0,
            end: 0,
            next: None,
            current: None,
            generation: fork::generation(),
        }))
    }

    /// Looks for new loans and new slabs. `writer` is the socket that the descriptors come through.
    /// Called after the end of the ring's bytes was read, so all loans before that end are known.
    pub(in super::super) fn look(&mut self, area: &LoanArea, writer: BorrowedFd<'_>) -> io::Result<()> {
        // Acquire pairs with the Release in `Lender`.
        let changes = area.changes.load(Acquire);
        if changes != self.changes {
            self.changes = changes;
            self.look_at_slabs(area, writer);
        }
        let end = area.end.load(Acquire);
        if end.wrapping_sub(self.taken) > PLACES as u32 {
            return Err(broken());
        }
        self.end = end;
        Ok(())
    }

    fn look_at_slabs(&mut self, area: &LoanArea, writer: BorrowedFd<'_>) {
        for (slab, shared) in self.slabs.iter_mut().zip(&area.slabs) {
            let word = shared.load(Acquire);
            match (word & slab_state::BITS, &slab) {
                (slab_state::OFFERED, None) => {
                    let length = usize::try_from(word & !slab_state::BITS).unwrap_or(0);
                    *slab = receive(writer).and_then(|memory| KnownSlab::accept(memory, length)).ok();
                    let state = if slab.is_some() { slab_state::MAPPED } else { slab_state::REFUSED };
                    // Release pairs with the Acquire in `Lender::mapped`.
                    shared.store(state, Release);
                }
                (slab_state::DROPPED, Some(_)) => {
                    *slab = None;
                    shared.store(slab_state::NONE, Release);
                }
                _ => {}
            }
        }
    }

    /// True if a loan is known that was not taken completely.
    pub(in super::super) fn has_loans(&self) -> bool {
        self.current.is_some() || self.taken != self.end
    }

    /// Returns the position of the next loan in the stream, if one is known. `head` is the position
    /// of the ring.
    pub(in super::super) fn next_at(&mut self, area: &LoanArea, head: u64) -> io::Result<Option<u64>> {
        if self.next.is_none() && self.taken != self.end {
            let place = usize::from(area.lane[self.taken as usize % PLACES].load(Relaxed));
            let entry = area.places.get(place).ok_or_else(broken)?;
            self.next = Some(Entry {
                place,
                at: entry.at.load(Relaxed),
                slab: entry.slab.load(Relaxed) as usize,
                offset: entry.offset.load(Relaxed),
                length: entry.length.load(Relaxed),
            });
        }
        let Some(next) = self.next else { return Ok(None) };
        if next.at < head { Err(broken()) } else { Ok(Some(next.at)) }
    }

    /// Returns the length of the loan at position `head` of the stream, if one begins there.
    pub(in super::super) fn length_at(&self, head: u64) -> Option<usize> {
        self.next.filter(|next| next.at == head).and_then(|next| usize::try_from(next.length).ok())
    }

    /// True if a loan was copied in part.
    pub(in super::super) fn is_copying(&self) -> bool {
        self.current.is_some()
    }

    /// Takes the loan at position `head` of the stream, if one begins there. `life_line` is the
    /// socket at which the writer is rung.
    pub(in super::super) fn take(
        &mut self,
        region: &Arc<Region>,
        head: u64,
        life_line: &Arc<PeerFd>,
    ) -> io::Result<Option<Loan>> {
        let Some(next) = self.next.filter(|next| next.at == head) else { return Ok(None) };
        let known = self.slabs.get_mut(next.slab).and_then(Option::as_mut).ok_or_else(broken)?;
        let body = known.body(next.offset, next.length).ok_or_else(broken)?;
        if !lease::take(&region.loans().places[next.place].word) {
            return Err(broken());
        }
        self.next = None;
        self.taken = self.taken.wrapping_add(1);
        Ok(Some(Loan {
            held: Some(HeldPlace {
                region: region.clone(),
                place: next.place,
                generation: fork::generation(),
                _life_line: life_line.clone(),
            }),
            used: Use::new(),
            body,
            length: next.length as usize,
            exposed: OnceLock::new(),
            slab: known.slab.clone(),
        }))
    }

    /// Copies bytes of the loan at position `head` of the stream, and returns their number. 0 if
    /// there is no loan here.
    ///
    /// # Safety
    /// `to` must be valid for writes of `most` bytes.
    pub(in super::super) unsafe fn copy(
        &mut self,
        region: &Arc<Region>,
        head: u64,
        life_line: &Arc<PeerFd>,
        to: *mut u8,
        most: usize,
    ) -> io::Result<usize> {
        if self.current.is_none() {
            self.current = self.take(region, head, life_line)?.map(|loan| (loan, 0));
            lending::add(Count::Copied, u64::from(self.current.is_some()));
        }
        let Some((loan, copied)) = &mut self.current else { return Ok(0) };
        let n = most.min(loan.length - *copied);
        // SAFETY: the body is inside the mapping, and the caller's memory is elsewhere. If the peer
        // writes to the body at the same time, the copy holds arbitrary bytes.
        unsafe { copy_opaquely(loan.as_ptr().add(*copied), to, n) };
        *copied += n;
        if *copied == loan.length {
            self.current = None;
        }
        Ok(n)
    }

    /// Returns the loans that were not taken, when the reader ends.
    pub(in super::super) fn return_untaken(&mut self, area: &LoanArea) {
        self.current = None;
        // A forked child has only a copy of the reader's end.
        if self.generation != fork::generation() {
            return;
        }
        area.places.iter().for_each(|place| lease::give_back_untaken(&place.word));
    }
}

/// Receives the descriptor of a slab.
fn receive(writer: BorrowedFd<'_>) -> io::Result<PeerFd> {
    let mut byte = [MaybeUninit::uninit()];
    let (_, mut rights) = transfer::receive_with_rights(writer, &Targets::one(&mut byte))?;
    match (rights.pop(), rights.is_empty()) {
        (Some(memory), true) => Ok(memory),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// True if this memory would be mapped as a slab.
#[cfg(all(test, not(loom)))]
pub(super) fn accepts(memory: PeerFd, length: usize) -> bool {
    MappedSlab::accept(memory, length).is_ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slab_of_several_connections_counts_once() {
        let mut files = Files { mapped: BTreeMap::new(), bytes: 0 };
        let (first, second) = ((1, 10), (1, 11));
        for _ in 0..8 {
            assert!(files.add(first, BUDGET / 2));
        }
        assert!(files.add(second, BUDGET / 2));
        assert!(!files.add((1, 12), 1));
        for _ in 0..7 {
            files.remove(first);
        }
        assert_eq!(files.bytes, BUDGET);
        files.remove(first);
        assert_eq!(files.bytes, BUDGET / 2);
        assert!(files.add((1, 12), 1));
    }
}
