//! A ring of bytes in shared memory, with one writer and one reader in different processes.
//!
//! Each end keeps its own position in its private memory. It reads the other end's position from
//! the region, and uses it only after a check. An end that has to wait asks for a bell (`bell.rs`).

use super::atomic::Ordering::{Acquire, Relaxed, Release};
use std::io;

use super::super::transfer::{Sources, Targets};
use super::bell;
use super::region::{CAPACITY, Region};

/// Bytes that the writer copies before it publishes them to the reader, so that both ends work on a
/// long message at once.
const PIECE: usize = 64 * 1024;

/// Writing end of a ring.
pub(super) struct RegionWriter {
    region: Region,
    tail: u64,
    /// Reader's position when we last read it.
    head: u64,
}

/// Reading end of a ring.
pub(super) struct RegionReader {
    region: Region,
    head: u64,
    /// Writer's position when we last read it.
    tail: u64,
}

/// Error for an impossible value from the other end.
fn broken() -> io::Error {
    io::Error::from_raw_os_error(libc::EPROTO)
}

impl RegionWriter {
    pub(super) fn new(region: Region) -> Self {
        RegionWriter { region, tail: 0, head: 0 }
    }

    /// True if the reader has mapped the region.
    pub(super) fn is_accepted(&self) -> bool {
        self.region.header().accepted.load(Acquire) != 0
    }

    /// Announces that the data after `at` bytes of the socket is in the ring.
    pub(super) fn switch(&self, at: u64) {
        self.region.header().switch_at.0.store(at, Relaxed);
        self.region.header().switched.store(1, Release);
    }

    /// Copies as much of the buffers as there is space for. If less than everything fits, a bell
    /// will ring when there is more space. `prepare` is called before the bell is requested, and
    /// returns true if the other end can still ring it.
    pub(super) fn put(
        &mut self,
        sources: &Sources<'_>,
        mut prepare: impl FnMut() -> bool,
    ) -> io::Result<usize> {
        let (mut written, mut shown) = (0, 0);
        for buffer in sources.raw() {
            let (mut from, mut left) = (buffer.iov_base.cast::<u8>().cast_const(), buffer.iov_len);
            while left > 0 {
                let mut room = self.space();
                if room == 0 {
                    // The reader may free space only after it sees the data.
                    self.publish();
                    shown = written;
                    room = match self.await_room(&mut prepare) {
                        Ok(room) if room > 0 => room,
                        // The reader may have read the published bytes, so they must count as
                        // written. An error repeats with the next bytes.
                        Ok(_) => return Ok(written),
                        Err(error) => return if written > 0 { Ok(written) } else { Err(error) },
                    };
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
    /// Accepts the region. The writer may put its bytes here from now on.
    pub(super) fn new(region: Region) -> Self {
        region.header().accepted.store(1, Release);
        RegionReader { region, head: 0, tail: 0 }
    }

    /// Returns how many bytes of the socket precede those of the ring, once the writer has
    /// announced it.
    pub(super) fn switched_at(&self) -> Option<u64> {
        let header = self.region.header();
        (header.switched.load(Acquire) != 0).then(|| header.switch_at.0.load(Relaxed))
    }

    /// Takes the available data, as much as the buffers hold.
    pub(super) fn take(&mut self, targets: &Targets<'_>) -> io::Result<usize> {
        if self.tail == self.head {
            self.load_tail()?;
        }
        let mut taken = 0;
        for buffer in targets.raw() {
            let n = buffer.iov_len.min((self.tail - self.head) as usize);
            // SAFETY: the targets are valid for writes; n is at most the capacity, as `look` has
            // checked.
            unsafe { self.region.get(self.head, buffer.iov_base.cast(), n) };
            self.head += n as u64;
            taken += n;
        }
        if taken > 0 {
            // Release: the copy is complete.
            self.region.header().head.0.store(self.head, Release);
        }
        Ok(taken)
    }

    /// True if there is data, according to the writer's current position.
    pub(super) fn has_bytes(&mut self) -> io::Result<bool> {
        if self.tail == self.head {
            self.load_tail()?;
        }
        Ok(self.tail != self.head)
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
    pub(super) fn sleep(&mut self) -> io::Result<bool> {
        bell::request(&self.region.header().asleep.0);
        let something = self.has_bytes()?;
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
