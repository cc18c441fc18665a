//! A ring of bytes in shared memory, with one writer and one reader in different processes.
//!
//! A large body may be a loan (`loans.rs`): it belongs to the stream, but takes no space here. Each
//! buffer of a write is lent as a whole or not at all.
//!
//! Each end keeps its own position in its private memory. It reads the other end's position from
//! the region, and uses it only after a check. An end that has to wait asks for a bell (`bell.rs`).

use super::atomic::Ordering::{Acquire, Relaxed, Release};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::super::rights::PeerFd;
use super::super::transfer::{Sources, Targets};
use super::bell;
use super::loans::{Borrower, Lender, Loan, Outcome};
use super::region::{CAPACITY, Region};
use crate::lending;

/// Bytes that the writer copies before it publishes them to the reader, so that both ends work on a
/// long message at once.
const PIECE: usize = 64 * 1024;

/// Error number of a read that finds a loan, which the caller wants to take as a whole.
pub(crate) const LOAN_AHEAD: libc::c_int = libc::EMEDIUMTYPE;

/// Writing end of a ring.
pub(super) struct RegionWriter {
    region: Region,
    tail: u64,
    /// Reader's position when we last read it.
    head: u64,
    /// Lends large bodies, if the reader takes loans.
    lender: Option<Box<Lender>>,
    /// True if the ring has the beginning of a buffer, whose rest comes next.
    is_cut: bool,
}

/// Reading end of a ring.
pub(super) struct RegionReader {
    region: Arc<Region>,
    head: u64,
    /// Writer's position when we last read it.
    tail: u64,
    borrower: Option<Box<Borrower>>,
}

/// Error for an impossible value from the other end.
pub(super) fn broken() -> io::Error {
    io::Error::from_raw_os_error(libc::EPROTO)
}

impl RegionWriter {
    pub(super) fn new(region: Region) -> Self {
        RegionWriter { region, tail: 0, head: 0, lender: None, is_cut: false }
    }

    /// True if the reader has mapped the region.
    pub(super) fn is_accepted(&self) -> bool {
        self.region.header().accepted.load(Acquire) != 0
    }

    /// Announces that the data after `at` bytes of the socket is in the ring. `lends` permits
    /// loans.
    pub(super) fn switch(&mut self, at: u64, lends: bool) {
        self.lender = if lends { Lender::new(self.region.loans()) } else { None };
        self.region.header().switch_at.0.store(at, Relaxed);
        self.region.header().switched.store(1, Release);
    }

    /// True if the reader takes loans.
    pub(super) fn lends(&self) -> bool {
        self.lender.is_some()
    }

    /// Ends returned loans, and announces slabs that were given back.
    pub(super) fn tidy(&mut self) {
        if let Some(lender) = &mut self.lender {
            lender.tidy(self.region.loans());
        }
    }

    /// Copies as much of the buffers as there is space for. If less than everything fits, a bell
    /// will ring when there is more space. `prepare` is called before the bell is requested, and
    /// returns true if the other end can still ring it. `reader` is the socket at which the other
    /// end rings.
    pub(super) fn put(
        &mut self,
        sources: &Sources<'_>,
        reader: Option<BorrowedFd<'_>>,
        mut prepare: impl FnMut() -> bool,
    ) -> io::Result<usize> {
        let (mut written, mut shown) = (0, 0);
        for buffer in sources.raw() {
            let (mut from, mut left) = (buffer.iov_base.cast::<u8>().cast_const(), buffer.iov_len);
            let is_rest = left > 0 && std::mem::take(&mut self.is_cut);
            // SAFETY: here and below, the sources are valid for reads.
            let mut lent = if is_rest { Outcome::Copy } else { unsafe { self.lend(reader, from, left) } };
            if lent == Outcome::NoRoom {
                self.publish();
                if !prepare() {
                    return if written > 0 { Ok(written) } else { Err(io::ErrorKind::BrokenPipe.into()) };
                }
                bell::request(&self.region.header().blocked.0);
                // SAFETY: as above.
                lent = unsafe { self.lend(reader, from, left) };
            }
            match lent {
                Outcome::NoRoom => return Ok(written),
                Outcome::Lent => {
                    written += left;
                    left = 0;
                }
                Outcome::Copy => {}
            }
            while left > 0 {
                let mut room = self.space();
                if room == 0 {
                    // The reader may free space only after it sees the data.
                    self.publish();
                    shown = written;
                    self.is_cut = is_rest || left < buffer.iov_len;
                    room = match self.await_room(&mut prepare) {
                        Ok(room) if room > 0 => room,
                        // The reader may have read the published bytes, so they must count as
                        // written. An error repeats with the next bytes.
                        Ok(_) => return Ok(written),
                        Err(error) => return if written > 0 { Ok(written) } else { Err(error) },
                    };
                    self.is_cut = false;
                }
                let n = left.min(room).min(PIECE);
                // SAFETY: the sources are valid for reads. n is at most the remaining length of
                // this source and at most the free space in the ring.
                unsafe {
                    self.region.put(self.tail, from, n);
                    from = from.add(n);
                }
                left -= n;
                written += n;
                self.tail += n as u64;
                if written - shown >= PIECE {
                    self.publish();
                    shown = written;
                }
            }
        }
        self.publish();
        Ok(written)
    }

    /// Lends a large body, or counts why it is copied. `reader` takes descriptors.
    ///
    /// # Safety
    /// `body` must be valid for reads of `length` bytes.
    unsafe fn lend(&mut self, reader: Option<BorrowedFd<'_>>, body: *const u8, length: usize) -> Outcome {
        match (&mut self.lender, reader) {
            (Some(lender), Some(reader)) if length >= lending::LOWEST_LIMIT => {
                // SAFETY: the caller's promise.
                unsafe { lender.lend(&self.region, reader, self.tail, body, length) }
            }
            _ => Outcome::Copy,
        }
    }

    /// True if the reader may still use a body that was lent.
    pub(super) fn has_loans(&mut self) -> bool {
        self.lender.as_mut().is_some_and(|lender| lender.has_loans(self.region.loans()))
    }

    fn space(&self) -> usize {
        // At most the capacity, because `head` is never beyond `tail`.
        CAPACITY - (self.tail - self.head) as usize
    }

    fn load_head(&mut self) -> io::Result<()> {
        // Acquire pairs with the Release of `take`: the writer overwrites bytes only after the
        // reader has copied them.
        let head = self.region.header().head.0.load(Acquire);
        if self.tail.checked_sub(head).is_none_or(|n| n > CAPACITY as u64) || head < self.head {
            return Err(broken());
        }
        self.head = head;
        Ok(())
    }

    /// Looks again after finding no space. Requests a bell if the ring is still full.
    fn await_room(&mut self, prepare: &mut impl FnMut() -> bool) -> io::Result<usize> {
        self.load_head()?;
        if self.space() == 0 {
            if !prepare() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            bell::request(&self.region.header().blocked.0);
            self.load_head()?;
        }
        Ok(self.space())
    }

    fn publish(&self) {
        // Release pairs with the Acquire in `RegionReader::load_tail`.
        self.region.header().tail.0.store(self.tail, Release);
    }

    /// Returns true if the reader sleeps and a bell must be rung now. Called after `put`.
    pub(super) fn take_asleep(&self) -> bool {
        bell::take_request(&self.region.header().asleep.0, || true)
    }
}

impl RegionReader {
    /// Accepts the region. The writer may put its bytes here from now on. `borrows` permits loans.
    pub(super) fn new(region: Region, borrows: bool) -> Self {
        let region = Arc::new(region);
        let borrower = if borrows { Borrower::new(region.loans()) } else { None };
        region.header().accepted.store(1, Release);
        RegionReader { region, head: 0, tail: 0, borrower }
    }

    /// True if the reader takes loans.
    pub(super) fn borrows(&self) -> bool {
        self.borrower.is_some()
    }

    /// Ends the use of slabs that the writer has given back.
    pub(super) fn tidy(&mut self, writer: BorrowedFd<'_>) {
        if let Some(borrower) = &mut self.borrower {
            // An error repeats with the next read.
            let _ = borrower.look(self.region.loans(), writer);
        }
    }

    /// Returns how many bytes of the socket precede those of the ring, once the writer has
    /// announced it.
    pub(super) fn switched_at(&self) -> Option<u64> {
        let header = self.region.header();
        (header.switched.load(Acquire) != 0).then(|| header.switch_at.0.load(Relaxed))
    }

    /// Takes the available data, as much as the buffers hold. `writer` is the socket of the writer.
    /// With `adopts`, stops before a loan, and fails with [`LOAN_AHEAD`] at one.
    pub(super) fn take(
        &mut self,
        targets: &Targets<'_>,
        writer: &Arc<PeerFd>,
        adopts: bool,
    ) -> io::Result<usize> {
        if !self.has_bytes(writer.as_fd())? {
            return Ok(0);
        }
        let mut taken = 0;
        for buffer in targets.raw() {
            let (mut to, mut left) = (buffer.iov_base.cast::<u8>(), buffer.iov_len);
            while left > 0 {
                let n = self.take_piece(to, left, writer, adopts)?;
                if n == 0 {
                    break;
                }
                to = to.wrapping_add(n);
                left -= n;
                taken += n;
            }
        }
        if taken > 0 {
            // Release: the copy is complete.
            self.region.header().head.0.store(self.head, Release);
        } else if adopts && self.loan_length().is_some() {
            return Err(io::Error::from_raw_os_error(LOAN_AHEAD));
        }
        Ok(taken)
    }

    /// Takes bytes of the ring or of a loan, at most `most` of them. 0 if there are none now, or if
    /// there is a loan that the caller adopts. `to` is valid for writes of `most` bytes.
    fn take_piece(
        &mut self,
        to: *mut u8,
        most: usize,
        writer: &Arc<PeerFd>,
        adopts: bool,
    ) -> io::Result<usize> {
        let mut ready = (self.tail - self.head) as usize;
        if let Some(borrower) = self.borrower.as_mut().filter(|borrower| borrower.has_loans()) {
            if let Some(at) = borrower.next_at(self.region.loans(), self.head)? {
                ready = ready.min((at - self.head) as usize);
            }
            if !adopts || borrower.is_copying() {
                // SAFETY: the caller's promise.
                let n = unsafe { borrower.copy(&self.region, self.head, writer, to, most)? };
                if n > 0 {
                    return Ok(n);
                }
            }
        }
        let n = most.min(ready);
        // SAFETY: the caller's promise; n is at most the capacity, as `load_tail` has checked.
        unsafe { self.region.get(self.head, to, n) };
        self.head += n as u64;
        Ok(n)
    }

    /// Returns the length of the loan at the current position, if there is one.
    pub(super) fn loan_length(&self) -> Option<usize> {
        self.borrower.as_ref()?.length_at(self.head)
    }

    /// Takes the loan at the current position. `writer` is the socket of the writer.
    pub(super) fn take_loan(&mut self, writer: &Arc<PeerFd>) -> io::Result<Option<Loan>> {
        match &mut self.borrower {
            Some(borrower) => borrower.take(&self.region, self.head, writer),
            None => Ok(None),
        }
    }

    /// True if there is data, according to the writer's current position.
    pub(super) fn has_bytes(&mut self, writer: BorrowedFd<'_>) -> io::Result<bool> {
        if self.tail == self.head {
            self.load_tail()?;
            self.look_for_loans(writer)?;
        }
        Ok(self.tail != self.head || self.borrower.as_ref().is_some_and(|borrower| borrower.has_loans()))
    }

    /// Called after `load_tail`, so that all loans before the tail are known.
    fn look_for_loans(&mut self, writer: BorrowedFd<'_>) -> io::Result<()> {
        let Some(borrower) = &mut self.borrower else { return Ok(()) };
        let area = self.region.loans();
        borrower.look(area, writer)?;
        let next = borrower.next_at(area, self.head)?;
        if next.is_some_and(|at| at > self.tail) {
            // The writer publishes the bytes before a loan first.
            self.load_tail()?;
        }
        if next.is_some_and(|at| at > self.tail) { Err(broken()) } else { Ok(()) }
    }

    fn load_tail(&mut self) -> io::Result<()> {
        // Acquire pairs with the Release in `RegionWriter::publish`.
        let tail = self.region.header().tail.0.load(Acquire);
        if tail.checked_sub(self.head).is_none_or(|n| n > CAPACITY as u64) {
            return Err(broken());
        }
        self.tail = tail;
        Ok(())
    }

    /// Returns true if the writer waits for space, there is enough now, and it must be rung. Called
    /// after `take`.
    pub(super) fn take_blocked(&mut self) -> bool {
        bell::take_request(&self.region.header().blocked.0, || {
            // A bell for every bit of space would make the writes small.
            let tail = self.region.header().tail.0.load(Relaxed);
            let free = (CAPACITY as u64).saturating_sub(tail.wrapping_sub(self.head));
            free >= CAPACITY as u64 / 4
        })
    }

    /// Requests a bell with the next bytes. If there is data now, returns false and requests no
    /// bell.
    pub(super) fn sleep(&mut self, writer: BorrowedFd<'_>) -> io::Result<bool> {
        bell::request(&self.region.header().asleep.0);
        let something = self.has_bytes(writer)?;
        if something {
            self.region.header().asleep.0.store(0, Relaxed);
        }
        Ok(!something)
    }

    /// True if a bell was requested and has not been rung.
    pub(super) fn is_asleep(&self) -> bool {
        self.region.header().asleep.0.load(Relaxed) != 0
    }
}

impl Drop for RegionReader {
    fn drop(&mut self) {
        if let Some(borrower) = &mut self.borrower {
            borrower.return_untaken(self.region.loans());
        }
    }
}
