//! Handles for Rust code in the same process, such as a language binding: the sockets behind the C
//! handles, with results in place of errno.
//!
//! A [`SocketHandle`] is safe to use. It refers to a slot, which lives for ever, and to one socket
//! in that slot. After the socket was closed, by whichever handle, every call fails with
//! [`Refusal::Closed`], also if the slot holds another socket by then. In a forked child the same
//! is true of the handles of the parent.
//!
//! [`SocketHandle::enter`] excludes other callers with an atomic exchange. So threads that share a
//! socket against the rules of ZeroMQ take turns, even if they enter at the same time. A caller
//! that finds another one inside is refused, and decides itself how to wait. The C functions do not
//! exclude in this way: a program uses either them or this module for its sockets.
//!
//! Sockets for several threads (CLIENT, SERVER and similar types) have a lock of their own. Between
//! [`SocketHandle::enter`] and the result of a call, another thread may take it, and the call then
//! waits. A caller that must not wait uses [`SocketHandle::at_once`].

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use tautline_core::poller::{self, Item, PollTarget};
use tautline_core::{Context, Error, Message, SharedSocket, Socket, SocketType, proxy};
use tautline_io::fd::RawFd;

use crate::context;
use crate::entry::{self, SocketGuard, SocketSlot};
use crate::inherited::LINGER;
use crate::msg;
use crate::shared::{self, SharedSlot};

mod entered;
mod watch;

use entered::Access;
pub use entered::{EndpointKind, EnteredSocket, WAIT_PEERS, WAIT_SUBSCRIPTIONS};
pub use watch::SharedWatch;

/// A socket; see the module documentation. A copy refers to the same socket.
#[derive(Clone, Copy)]
pub struct SocketHandle(Place);

#[derive(Clone, Copy)]
enum Place {
    /// A socket of one thread, and the number of the socket in its slot.
    One(&'static SocketSlot, u32),
    /// A socket that several threads may use at the same time (CLIENT, SERVER and similar types),
    /// and the number of the socket in its slot.
    Many(&'static SharedSlot, u32),
}

/// Reason for which a caller cannot enter a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another caller is inside; see [`SocketHandle::wait_until_free`].
    Busy,
    /// The socket is closed, or a forked child has inherited it.
    Closed,
}

/// The slots of all sockets that [`SocketHandle::open`] has opened, by address.
fn opened() -> MutexGuard<'static, BTreeMap<usize, Place>> {
    static OPENED: Mutex<BTreeMap<usize, Place>> = Mutex::new(BTreeMap::new());
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SocketHandle {
    /// Opens a socket in the context behind a C handle.
    ///
    /// # Errors
    /// As zmq_socket(3).
    ///
    /// # Safety
    /// `context` is null, or a handle that `zmq_ctx_new` has returned at any time.
    pub unsafe fn open(context: *mut c_void, socket_type: i32) -> Result<SocketHandle, Error> {
        let socket_type = u8::try_from(socket_type).ok().and_then(SocketType::from_code);
        // SAFETY: guaranteed by the caller; the slots of contexts stay readable for ever.
        let socket = unsafe { context::socket(context, socket_type) }?;
        let place = if socket.is_thread_safe() {
            let slot = shared::open_slot(socket)?;
            Place::Many(slot, slot.body().generation())
        } else {
            let slot = entry::open_slot(socket);
            Place::One(slot, slot.body().generation())
        };
        let handle = SocketHandle(place);
        opened().insert(handle.address(), place);
        Ok(handle)
    }

    /// Returns the socket that is open at an address, which another handle has returned. `None` if
    /// there is none.
    pub fn at(address: usize) -> Option<SocketHandle> {
        match *opened().get(&address)? {
            Place::One(slot, _) if slot.is_in_use() => {
                Some(SocketHandle(Place::One(slot, slot.body().generation())))
            }
            Place::Many(slot, _) if slot.is_in_use() => {
                Some(SocketHandle(Place::Many(slot, slot.body().generation())))
            }
            _ => None,
        }
    }

    /// Returns the address of the slot, which is the socket's C handle.
    pub fn address(self) -> usize {
        match self.0 {
            Place::One(slot, _) => slot.handle().expose_provenance(),
            Place::Many(slot, _) => slot.handle().expose_provenance(),
        }
    }

    /// True until the socket is closed. False in a forked child that has inherited it.
    pub fn is_open(self) -> bool {
        match self.0 {
            Place::One(slot, generation) => slot.is_in_use() && slot.body().generation() == generation,
            Place::Many(slot, generation) => slot.is_in_use() && slot.body().generation() == generation,
        }
    }

    /// True if several threads may use the socket at the same time.
    pub fn is_shared(self) -> bool {
        matches!(self.0, Place::Many(..))
    }

    /// Enters the socket. The access ends when the result is dropped.
    ///
    /// # Errors
    /// Fails at once if another caller is inside, or if the socket is closed.
    #[inline(always)]
    pub fn enter(self) -> Result<EnteredSocket<'static>, Refusal> {
        let Place::One(slot, generation) = self.0 else { return self.enter_shared() };
        let Some(guard) = SocketGuard::try_new(slot) else { return Err(self.refusal()) };
        // While this caller is inside, the slot is not reused, so this check stays valid.
        if slot.is_in_use() && slot.body().generation() == generation {
            Ok(EnteredSocket(Access::One(guard)))
        } else {
            Err(Refusal::Closed)
        }
    }

    #[cold]
    fn enter_shared(self) -> Result<EnteredSocket<'static>, Refusal> {
        let shared = self.shared().ok_or(Refusal::Closed)?;
        if shared.try_enter().is_none() {
            return Err(Refusal::Busy);
        }
        Ok(EnteredSocket(Access::Many(shared, None)))
    }

    /// Returns the socket for several threads, unless it is closed.
    fn shared(self) -> Option<Arc<SharedSocket>> {
        match self.0 {
            // In a forked child, a thread that exists only in the parent may hold the lock of the
            // body.
            Place::Many(slot, generation) if slot.is_in_use() => slot.body().socket(generation),
            _ => None,
        }
    }

    /// Calls `call` with the socket. Never waits for another caller, also not within `call`.
    ///
    /// # Errors
    /// Fails at once if another caller is inside, or if the socket is closed.
    #[inline(always)]
    pub fn at_once<T>(self, mut call: impl FnMut(&mut EnteredSocket<'_>) -> T) -> Result<T, Refusal> {
        // The shared path takes a `dyn` reference, so that `call` has one copy and can be inlined
        // below.
        let Place::One(slot, generation) = self.0 else { return self.at_once_shared(&mut call) };
        let Some(guard) = SocketGuard::try_new(slot) else { return Err(self.refusal()) };
        // While this caller is inside, the slot is not reused, so this check stays valid.
        if !slot.is_in_use() || slot.body().generation() != generation {
            return Err(Refusal::Closed);
        }
        Ok(call(&mut EnteredSocket(Access::One(guard))))
    }

    #[cold]
    fn at_once_shared<T>(self, call: &mut dyn FnMut(&mut EnteredSocket<'_>) -> T) -> Result<T, Refusal> {
        let shared = self.shared().ok_or(Refusal::Closed)?;
        let guard = shared.try_enter().ok_or(Refusal::Busy)?;
        Ok(call(&mut EnteredSocket(Access::Locked(guard))))
    }

    #[cold]
    fn refusal(self) -> Refusal {
        if self.is_open() { Refusal::Busy } else { Refusal::Closed }
    }

    /// Waits until no caller is inside, the socket is closed, or `limit` has passed. Another caller
    /// may enter before this one does.
    pub fn wait_until_free(self, limit: Duration) {
        let Place::One(slot, _) = self.0 else {
            return self.shared().map_or((), |shared| shared.wait_until_free(limit));
        };
        let started = Instant::now();
        while slot.body().is_busy() && self.is_open() {
            match started.elapsed() {
                waited if waited >= limit => return,
                waited if waited < Duration::from_micros(100) => std::thread::yield_now(),
                _ => tautline_io::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Closes the socket, zmq_close(3). `linger` replaces the option ZMQ_LINGER. Ends a blocked
    /// call of another thread, and waits until that thread has left.
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is already closed.
    pub fn close(self, linger: Option<i32>) -> Result<(), Error> {
        self.retire()?;
        let prepare = |socket: &mut Socket| {
            // An impossible time leaves the option as it is, as zmq_setsockopt does.
            let _ = linger.map(|linger| socket.set_option(LINGER, &linger.to_ne_bytes()));
        };
        match self.0 {
            Place::One(slot, _) => {
                let mut socket = entry::take_retired(slot);
                prepare(&mut socket);
                socket.close();
                Ok(())
            }
            Place::Many(slot, _) => shared::close_retired(slot, prepare),
        }
    }

    /// Invalidates the handle. One thread at a time, because another one could close the socket and
    /// open the next one in the same slot between the check and the change.
    fn retire(self) -> Result<(), Error> {
        static RETIRING: Mutex<()> = Mutex::new(());
        let mut retiring = None;
        for _ in 0..1000 {
            match RETIRING.try_lock() {
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
                Ok(guard) => retiring = Some(guard),
                Err(TryLockError::Poisoned(poison)) => retiring = Some(poison.into_inner()),
            }
            if retiring.is_some() {
                break;
            }
        }
        // A holder needs only nanoseconds. If the lock stays locked, the holder is a thread that
        // exists only in the parent of this process.
        let retired = self.is_open()
            && match self.0 {
                Place::One(slot, _) => slot.retire(),
                Place::Many(slot, _) => slot.retire(),
            };
        drop(retiring);
        if retired { Ok(()) } else { Err(Error::NotSocket) }
    }
}

/// Returns the engine's context behind a C handle, for code that uses the engine itself.
///
/// # Errors
/// Fault if the context has ended, Interrupted if a forked child has inherited it.
///
/// # Safety
/// `handle` is null, or a handle that `zmq_ctx_new` has returned at any time.
pub unsafe fn engine_context(handle: *mut c_void) -> Result<Context, Error> {
    // SAFETY: guaranteed by the caller; the slots of contexts stay readable for ever.
    unsafe { context::get_context(handle) }
}

/// An object to wait for; see [`poll`].
#[derive(Debug, Clone, Copy)]
pub struct PollEntry {
    /// The object.
    pub target: Target,
    /// The wanted events, of POLLIN and the other constants.
    pub events: i16,
    /// The events that have occurred.
    pub revents: i16,
}

/// The object of a [`PollEntry`].
#[derive(Clone, Copy)]
pub enum Target {
    /// A socket.
    Socket(SocketHandle),
    /// A descriptor of the system.
    Descriptor(RawFd),
}

/// Reason for which [`poll`] has failed.
#[derive(Debug, Clone, Copy)]
pub enum PollFailure {
    /// The caller cannot enter this socket. No socket is held.
    Refused(SocketHandle, Refusal),
    /// An error of zmq_poll(3).
    Error(Error),
}

/// Waits for an event of any entry, zmq_poll(3). Returns the number of entries with events.
///
/// # Errors
/// Fails at once if a socket is closed, or if another caller is inside.
pub fn poll(entries: &mut [PollEntry], timeout: Option<Duration>) -> Result<usize, PollFailure> {
    let mut held: Vec<Option<EnteredSocket<'static>>> = Vec::with_capacity(entries.len());
    // Index of the first entry with the same socket.
    let mut places = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let (entered, place) = match entry.target {
            Target::Descriptor(_) => (None, index),
            Target::Socket(handle) => match place_of(handle, &held) {
                Some(place) => (None, place),
                None => match handle.enter() {
                    Ok(entered) => {
                        if let Access::One(guard) = &entered.0 {
                            guard.store_index(u32::try_from(index).unwrap_or(u32::MAX));
                        }
                        (Some(entered), index)
                    }
                    Err(refusal) => return Err(PollFailure::Refused(handle, refusal)),
                },
            },
        };
        held.push(entered);
        places.push(place);
    }
    wait(entries, &mut held, &places, timeout).map_err(PollFailure::Error)
}

/// Returns the index of the entry that holds a socket of one thread.
fn place_of(handle: SocketHandle, held: &[Option<EnteredSocket<'_>>]) -> Option<usize> {
    let Place::One(slot, _) = handle.0 else { return None };
    let place = usize::try_from(slot.body().stored_index()?).ok()?;
    match held.get(place)?.as_ref()?.0 {
        Access::One(ref guard) if guard.is_of(slot.handle()) => Some(place),
        _ => None,
    }
}

fn wait(
    entries: &mut [PollEntry],
    held: &mut [Option<EnteredSocket<'_>>],
    places: &[usize],
    timeout: Option<Duration>,
) -> Result<usize, Error> {
    let mut watched = Vec::with_capacity(entries.len());
    for (entry, held) in entries.iter().zip(held) {
        let target = match (entry.target, held.as_mut().map(|entered| &mut entered.0)) {
            (Target::Descriptor(fd), _) => PollTarget::Descriptor(fd),
            (_, Some(Access::One(guard))) => PollTarget::Socket(guard.socket()?),
            (_, Some(Access::Many(shared, _))) => PollTarget::Shared(shared),
            // `poll` locks no socket.
            (_, Some(Access::Locked(_)) | None) => PollTarget::Descriptor(tautline_io::fd::NONE),
        };
        watched.push(Item { watched: target, events: 0, revents: 0 });
    }
    for (entry, place) in entries.iter().zip(places) {
        watched[*place].events |= entry.events;
    }
    poller::poll(&mut watched, timeout)?;
    let mut ready = 0;
    for (entry, place) in entries.iter_mut().zip(places) {
        let revents = watched[*place].revents;
        // Errors of descriptors are reported even if not requested.
        let is_socket = matches!(entry.target, Target::Socket(_));
        entry.revents = if is_socket { revents & entry.events } else { revents };
        ready += usize::from(entry.revents != 0);
    }
    Ok(ready)
}

/// Joins two sockets in the calling thread, zmq_proxy_steerable(3). If `backend` is `None`,
/// messages of the frontend go back to it.
///
/// # Errors
/// As zmq_proxy_steerable(3).
pub fn join(
    frontend: &mut EnteredSocket<'_>,
    backend: Option<&mut EnteredSocket<'_>>,
    capture: Option<&mut EnteredSocket<'_>>,
    control: Option<&mut EnteredSocket<'_>>,
) -> Result<(), Error> {
    frontend.with(|frontend| {
        optional(backend, |backend| {
            optional(capture, |capture| {
                optional(control, |control| proxy::run(frontend, backend, capture, control))
            })
        })
    })
}

fn optional(
    entered: Option<&mut EnteredSocket<'_>>,
    call: impl FnOnce(Option<&mut Socket>) -> Result<(), Error>,
) -> Result<(), Error> {
    match entered {
        Some(entered) => entered.with(|socket| call(Some(socket))),
        None => call(None),
    }
}

/// Sets the number that `zmq_errno` returns in the calling thread.
pub fn set_errno(number: i32) {
    tautline_io::errno::set(number);
}

/// Returns a property of the peer that sent a message, zmq_msg_gets(3).
pub fn property<'a>(message: &'a Message, name: &str) -> Option<&'a CStr> {
    msg::property(message, name)
}

impl PartialEq for SocketHandle {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Place::One(slot, number), Place::One(other, of_other)) => {
                std::ptr::eq(slot, other) && number == of_other
            }
            (Place::Many(slot, number), Place::Many(other, of_other)) => {
                std::ptr::eq(slot, other) && number == of_other
            }
            _ => false,
        }
    }
}

impl Eq for SocketHandle {}

impl std::fmt::Debug for SocketHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SocketHandle({:#x})", self.address())
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Socket(handle) => handle.fmt(f),
            Target::Descriptor(fd) => write!(f, "Descriptor({fd:?})"),
        }
    }
}

#[cfg(test)]
mod tests;
