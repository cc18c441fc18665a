//! Handles of the sockets that several threads may use at once (CLIENT, SERVER and similar types).
//!
//! The tag of their slot distinguishes them from ordinary sockets, which therefore have no extra
//! cost. [`crate::entry`] calls this file if a handle is not that of an ordinary socket.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tautline_core::{Error, SharedSocket, Socket, SocketType};

use crate::inherited;
use crate::slot::{FreeSlots, Slot, SlotContent};

/// A slot that holds such a socket.
pub(crate) type SharedSlot = Slot<SharedBody>;

/// Content of such a socket's slot.
#[derive(Debug, Default)]
pub(crate) struct SharedBody {
    socket: Mutex<Option<Arc<SharedSocket>>>,
    /// Number of sockets that this slot has held. Distinguishes a socket from its successors.
    // Relaxed: own: written under the lock of `socket`, before the handle is published.
    generation: AtomicU32,
}

impl SlotContent for SharedBody {
    const TAG: u32 = 0x50C4_E702;

    fn free_slots() -> &'static FreeSlots<Self> {
        static SPARE: FreeSlots<SharedBody> = FreeSlots::new();
        &SPARE
    }
}

impl SharedBody {
    fn place(&self) -> MutexGuard<'_, Option<Arc<SharedSocket>>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks `place`. Returns `None` if it stays locked: a holder needs only nanoseconds, so the
    /// holder must be a thread that exists only in the parent of this forked process.
    fn place_if_free(&self) -> Option<MutexGuard<'_, Option<Arc<SharedSocket>>>> {
        for _ in 0..1000 {
            match self.socket.try_lock() {
                Ok(place) => return Some(place),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }

    /// Returns the number of sockets that the slot has held.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Returns the socket with this number, unless it is closed.
    pub(crate) fn socket(&self, generation: u32) -> Option<Arc<SharedSocket>> {
        let place = self.place();
        if self.generation() == generation { place.clone() } else { None }
    }

    /// Returns the type of the parent's socket, in a forked child.
    pub(crate) fn socket_type(&self) -> Option<SocketType> {
        self.place_if_free()?.as_ref().map(|socket| socket.socket_type())
    }
}

/// Stores a new socket in a slot and returns its handle for C.
pub(crate) fn open(socket: Socket) -> Result<*mut c_void, Error> {
    Ok(open_slot(socket)?.handle())
}

/// Stores a new socket in a slot and returns the slot, whose handle is valid.
pub(crate) fn open_slot(socket: Socket) -> Result<&'static SharedSlot, Error> {
    let shared = SharedSocket::new(socket)?;
    let slot = SharedSlot::claim();
    let mut place = slot.body().place();
    slot.body().generation.fetch_add(1, Ordering::Relaxed);
    *place = Some(shared);
    drop(place);
    slot.publish();
    Ok(slot)
}

/// Returns the socket behind a handle. NotSocket if it is not a socket of this kind, Interrupted if
/// a forked child has inherited it.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
pub(crate) unsafe fn at(handle: *mut c_void) -> Result<Arc<SharedSocket>, Error> {
    // SAFETY: guaranteed by the caller.
    let Some(slot) = (unsafe { SharedSlot::at(handle) }) else {
        // SAFETY: guaranteed by the caller.
        return Err(unsafe { inherited::socket_fault(handle) });
    };
    slot.body().place().clone().ok_or(Error::NotSocket)
}

/// Invalidates the handle and closes the socket. NotSocket if it is not a socket of this kind.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
pub(crate) unsafe fn close(handle: *mut c_void) -> Result<(), Error> {
    // SAFETY: guaranteed by the caller.
    let Some(slot) = (unsafe { SharedSlot::at(handle) }) else {
        // SAFETY: guaranteed by the caller.
        return unsafe { inherited::close(handle) };
    };
    close_slot(slot, |_| {})
}

/// Invalidates the handle of the slot, calls `prepare` with the socket and closes it.
pub(crate) fn close_slot(slot: &'static SharedSlot, prepare: impl FnOnce(&mut Socket)) -> Result<(), Error> {
    if slot.retire() { close_retired(slot, prepare) } else { Err(Error::NotSocket) }
}

/// Calls `prepare` with the socket of a slot that this thread has retired, and closes it.
pub(crate) fn close_retired(
    slot: &'static SharedSlot,
    prepare: impl FnOnce(&mut Socket),
) -> Result<(), Error> {
    let Some(mut place) = slot.body().place_if_free() else { return Ok(()) };
    let shared = place.take();
    drop(place);
    slot.recycle();
    shared.ok_or(Error::NotSocket)?.close_after(prepare)
}
