//! Handles of the sockets that several threads may use at once (CLIENT, SERVER and their like).
//!
//! They are told from the others by the tag of their slot, so that these pay nothing for them.
//! Called by [`crate::entry`], when a handle is not that of an ordinary socket.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tautline_core::{Error, SharedSocket, Socket, SocketType};

use crate::inherited;
use crate::slot::{Body, Slot, Spare};

/// A slot with such a socket in it.
pub(crate) type SharedSlot = Slot<SharedBody>;

/// What such a socket's slot holds.
#[derive(Debug, Default)]
pub(crate) struct SharedBody(Mutex<Option<Arc<SharedSocket>>>);

impl Body for SharedBody {
    const TAG: u32 = 0x50C4_E702;

    fn spare() -> &'static Spare<Self> {
        static SPARE: Spare<SharedBody> = Spare::new();
        &SPARE
    }
}

impl SharedBody {
    fn place(&self) -> MutexGuard<'_, Option<Arc<SharedSocket>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As `place`, unless it stays locked: its holders need some nanoseconds, so then the holder is
    /// a thread that only the parent of this forked process has.
    fn place_if_free(&self) -> Option<MutexGuard<'_, Option<Arc<SharedSocket>>>> {
        for _ in 0..1000 {
            match self.0.try_lock() {
                Ok(place) => return Some(place),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }

    /// In a forked child: the type of the parent's socket.
    pub(crate) fn socket_type(&self) -> Option<SocketType> {
        self.place_if_free()?.as_ref().map(|socket| socket.socket_type())
    }
}

/// Gives a new socket to C.
pub(crate) fn open(socket: Socket) -> Result<*mut c_void, Error> {
    let shared = SharedSocket::new(socket)?;
    let slot = SharedSlot::claim();
    *slot.body().place() = Some(shared);
    Ok(slot.publish())
}

/// The socket behind a handle. NotSocket if it is none of this kind, Interrupted if a forked child
/// has inherited it.
///
/// # Safety
/// `handle` is null, or points to four readable bytes.
pub(crate) unsafe fn at(handle: *mut c_void) -> Result<Arc<SharedSocket>, Error> {
    // SAFETY: the caller's word.
    let Some(slot) = (unsafe { SharedSlot::at(handle) }) else {
        // SAFETY: the caller's word.
        return Err(unsafe { inherited::socket_fault(handle) });
    };
    slot.body().place().clone().ok_or(Error::NotSocket)
}

/// Ends the handle and closes the socket. NotSocket if it is none of this kind.
///
/// # Safety
/// As for [`at`].
pub(crate) unsafe fn close(handle: *mut c_void) -> Result<(), Error> {
    // SAFETY: the caller's word.
    let Some(slot) = (unsafe { SharedSlot::at(handle) }) else {
        // SAFETY: the caller's word.
        return unsafe { inherited::close(handle) };
    };
    if !slot.retire() {
        return Err(Error::NotSocket);
    }
    let Some(mut place) = slot.body().place_if_free() else { return Ok(()) };
    let shared = place.take();
    drop(place);
    slot.recycle();
    shared.ok_or(Error::NotSocket)?.close()
}
