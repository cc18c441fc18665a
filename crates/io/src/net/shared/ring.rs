//! A ring of bytes in shared memory, with one writer and one reader in different processes.
//!
//! Each end has its own position in memory of its own, and takes the other's from the region only
//! after a check. An end that has to wait asks for a bell (`bell.rs`).

use super::atomic::Ordering::{Acquire, Relaxed, Release};
use std::io;

use super::super::transfer::{Sources, Targets};
use super::bell;
use super::region::{CAPACITY, Region};

/// Bytes put at once before they are shown to the reader, so that both ends are at work on a long
/// message.
const PIECE: usize = 64 * 1024;

/// Puts bytes.
pub(super) struct Producer {
    region: Region,
    tail: u64,
    /// The reader's position, as it was last looked at.
    head: u64,
}

/// Takes them.
pub(super) struct Consumer {
    region: Region,
    head: u64,
    /// The writer's position, as it was last looked at.
    tail: u64,
}

/// The other end says what cannot be.
fn broken() -> io::Error {
    io::Error::from_raw_os_error(libc::EPROTO)
}

impl Producer {
    pub(super) fn new(region: Region) -> Self {
        Producer { region, tail: 0, head: 0 }
    }

    /// Whether the reader has mapped the region.
    pub(super) fn is_accepted(&self) -> bool {
        self.region.header().accepted.load(Acquire) != 0
    }

    /// What follows `at` bytes of the socket is in the ring.
    pub(super) fn switch(&self, at: u64) {
        self.region.header().switch_at.0.store(at, Relaxed);
        self.region.header().switched.store(1, Release);
    }

    /// Puts as much of the buffers as there is room for. Less than all: a bell will ring when there
    /// is more; `prepare` is called before it is asked for, and says whether there is still an end
    /// to ring it.
    pub(super) fn put(
        &mut self,
        sources: &Sources<'_>,
        mut prepare: impl FnMut() -> bool,
    ) -> io::Result<usize> {
        let (mut written, mut shown) = (0, 0);
        for buffer in sources.raw() {
            let (mut from, mut left) = (buffer.iov_base.cast::<u8>().cast_const(), buffer.iov_len);
            while left > 0 {
                let mut room = self.room();
                if room == 0 {
                    // The reader may be slow to make room as long as it does not see what is there.
                    self.show();
                    shown = written;
                    room = match self.await_room(&mut prepare) {
                        Ok(room) if room > 0 => room,
                        // What was shown may have been read: it must not be taken for unwritten. An
                        // error comes again with the next bytes.
                        Ok(_) => return Ok(written),
                        Err(error) => return if written > 0 { Ok(written) } else { Err(error) },
                    };
                }
                let n = left.min(room).min(PIECE);
                // SAFETY: the sources are valid for reads, n is at most what is left of this one,
                // and as much is free in the ring.
                unsafe {
                    self.region.put(self.tail, from, n);
                    from = from.add(n);
                }
                left -= n;
                written += n;
                self.tail += n as u64;
                if written - shown >= PIECE {
                    self.show();
                    shown = written;
                }
            }
        }
        self.show();
        Ok(written)
    }

    fn room(&self) -> usize {
        // At most the capacity, as `head` is never beyond `tail`.
        CAPACITY - (self.tail - self.head) as usize
    }

    fn look(&mut self) -> io::Result<()> {
        // Acquire pairs with the Release of `take`: what is read is not overwritten before.
        let head = self.region.header().head.0.load(Acquire);
        if self.tail.checked_sub(head).is_none_or(|n| n > CAPACITY as u64) || head < self.head {
            return Err(broken());
        }
        self.head = head;
        Ok(())
    }

    /// There is no room: looks again, and if there is none asks for a bell.
    fn await_room(&mut self, prepare: &mut impl FnMut() -> bool) -> io::Result<usize> {
        self.look()?;
        if self.room() == 0 {
            if !prepare() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            bell::ask(&self.region.header().blocked.0);
            self.look()?;
        }
        Ok(self.room())
    }

    fn show(&self) {
        // Release pairs with the Acquire in `Consumer::look`.
        self.region.header().tail.0.store(self.tail, Release);
    }

    /// After `put`: whether the reader sleeps and is to be woken, by a bell that must be rung now.
    pub(super) fn take_sleeper(&self) -> bool {
        bell::is_asked_for(&self.region.header().asleep.0, || true)
    }
}

impl Consumer {
    /// Tells the writer, which may put its bytes here from now on.
    pub(super) fn new(region: Region) -> Self {
        region.header().accepted.store(1, Release);
        Consumer { region, head: 0, tail: 0 }
    }

    /// How many bytes of the socket come before those of the ring, once the writer has said so.
    pub(super) fn switched_at(&self) -> Option<u64> {
        let header = self.region.header();
        (header.switched.load(Acquire) != 0).then(|| header.switch_at.0.load(Relaxed))
    }

    /// Takes what there is, as much as the buffers hold.
    pub(super) fn take(&mut self, targets: &Targets<'_>) -> io::Result<usize> {
        if self.tail == self.head {
            self.look()?;
        }
        let mut taken = 0;
        for buffer in targets.raw() {
            let n = buffer.iov_len.min((self.tail - self.head) as usize);
            // SAFETY: the targets are valid for writes; n is at most the capacity, which `look` has
            // seen to.
            unsafe { self.region.get(self.head, buffer.iov_base.cast(), n) };
            self.head += n as u64;
            taken += n;
        }
        if taken > 0 {
            // Release: the copying is over.
            self.region.header().head.0.store(self.head, Release);
        }
        Ok(taken)
    }

    /// Whether there is something, going by where the writer is now.
    pub(super) fn has_bytes(&mut self) -> io::Result<bool> {
        if self.tail == self.head {
            self.look()?;
        }
        Ok(self.tail != self.head)
    }

    fn look(&mut self) -> io::Result<()> {
        // Acquire pairs with the Release in `Producer::show`.
        let tail = self.region.header().tail.0.load(Acquire);
        if tail.checked_sub(self.head).is_none_or(|n| n > CAPACITY as u64) {
            return Err(broken());
        }
        self.tail = tail;
        Ok(())
    }

    /// After `take`: whether the writer waits for room of which there is enough now, and is to be
    /// told.
    pub(super) fn take_blocked(&mut self) -> bool {
        bell::is_asked_for(&self.region.header().blocked.0, || {
            // To tell it of every bit of room would make its writes small.
            let tail = self.region.header().tail.0.load(Relaxed);
            let free = (CAPACITY as u64).saturating_sub(tail.wrapping_sub(self.head));
            free >= CAPACITY as u64 / 4
        })
    }

    /// Asks for a bell with the next bytes. False: there are some now, and no bell is asked for.
    pub(super) fn sleep(&mut self) -> io::Result<bool> {
        bell::ask(&self.region.header().asleep.0);
        let something = self.has_bytes()?;
        if something {
            self.region.header().asleep.0.store(0, Relaxed);
        }
        Ok(!something)
    }

    /// Whether a bell was asked for and has not been rung.
    pub(super) fn is_asleep(&self) -> bool {
        self.region.header().asleep.0.load(Relaxed) != 0
    }
}
