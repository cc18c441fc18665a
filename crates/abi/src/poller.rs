//! `zmq_poller_*`: a registered set of sockets and descriptors to wait for.
//!
//! A poller only keeps the list; `zmq_poll` does the waiting. If the list has sockets of several
//! threads, the poller also has a descriptor. The descriptor is readable whenever a wait with a
//! timeout of 0 may return events.
//!
//! The caller passes a handle of `zmq_poller_new`, or null; it must exist until the call returns.
//! `zmq_poller_destroy` takes the address of the variable with this handle, or null.
//! Sockets are handles of `zmq_socket`, or null. An array of events has room for `count` events.

use std::ffi::{c_int, c_long, c_short, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tautline_core::poller::{POLLERR, POLLIN, POLLOUT, POLLPRI};
use tautline_core::{Error, SharedSocket};
use tautline_io::fd::{AsRawFd, NONE, RawFd};
use tautline_io::fork;
use tautline_io::wake::{AnyWake, WakeFd};
use tautline_io::{errno, poll as system};

use crate::entry::SocketGuard;
use crate::error::{fail, status};
use crate::guard::{guard, guard_new};
use crate::handle::{self, Handle, Tag};
use crate::poll::{self, PollItem};
use crate::shared;

/// `zmq_poller_event_t`.
#[repr(C)]
pub struct PollerEvent {
    socket: *mut c_void,
    fd: RawFd,
    user_data: *mut c_void,
    events: c_short,
}

/// The object behind the handle.
#[repr(C)]
struct Poller {
    tag: Tag,
    set: Mutex<Set>,
    /// Process that made the poller, as returned by [`fork::generation`].
    generation: u32,
}

// SAFETY: repr(C), the tag first, and no other object has this tag.
unsafe impl Handle for Poller {
    const TAG: u32 = 0x9011_E501;
}

/// A registered socket or descriptor.
struct Registered {
    /// Null for a descriptor.
    socket: *mut c_void,
    fd: RawFd,
    user_data: *mut c_void,
    events: c_short,
    /// The socket, if several threads may use it.
    shared: Option<SharedRegistration>,
}

/// A registered socket that several threads may use.
struct SharedRegistration {
    socket: Arc<SharedSocket>,
    /// Descriptor that reports events of the socket while it is registered.
    wake_fd: Option<Arc<WakeFd>>,
}

// SAFETY: the pointers are handles and a value of the caller, which are only passed on.
unsafe impl Send for Registered {}

#[derive(Default)]
struct Set {
    registered: Vec<Registered>,
    /// The poller's own descriptor. It also watches the descriptors of the sockets.
    signal: Option<AnyWake>,
    /// Index at which the next wait begins, so that no event is starved by others.
    turn: usize,
}

const EVENTS: c_short = POLLIN | POLLOUT | POLLERR | POLLPRI;

impl Poller {
    /// Returns the poller behind a handle. Fault if the handle is invalid, Interrupted if a forked
    /// child has inherited it: its descriptor belongs to the parent.
    ///
    /// # Safety
    /// `handle` is null or points to at least four readable bytes, and is not being destroyed at
    /// the same time.
    unsafe fn at(handle: *mut c_void) -> Result<Arc<Poller>, Error> {
        // SAFETY: guaranteed by the caller.
        let poller = unsafe { handle::acquire::<Poller>(handle) }.ok_or(Error::Fault)?;
        if poller.is_inherited() { Err(Error::Interrupted) } else { Ok(poller) }
    }

    fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Set {
    fn find(&self, socket: *mut c_void, fd: RawFd) -> Option<usize> {
        self.registered
            .iter()
            .position(|known| known.socket == socket && (known.fd == fd || !socket.is_null()))
    }

    fn add(&mut self, mut new: Registered) -> Result<(), Error> {
        if self.find(new.socket, new.fd).is_some() {
            return Err(Error::Invalid);
        }
        if tautline_core::is_memory_short() {
            return Err(Error::NoMemory);
        }
        if let Some(watched) = &mut new.shared {
            self.watch(watched, new.events)?;
        }
        self.registered.push(new);
        Ok(())
    }

    fn modify(&mut self, index: usize, events: c_short) -> Result<(), Error> {
        if let Some(mut watched) = self.registered[index].shared.take() {
            self.unwatch(&mut watched);
            let outcome = self.watch(&mut watched, events);
            self.registered[index].shared = Some(watched);
            outcome?;
        }
        self.registered[index].events = events;
        Ok(())
    }

    fn remove(&mut self, index: usize) {
        if let Some(mut watched) = self.registered.remove(index).shared {
            self.unwatch(&mut watched);
        }
        if self.registered.iter().all(|known| known.shared.is_none()) {
            self.signal = None;
        }
    }

    fn watch(&mut self, watched: &mut SharedRegistration, events: c_short) -> Result<(), Error> {
        let signal = match &mut self.signal {
            Some(signal) => signal,
            place => place.insert(AnyWake::new()?),
        };
        let told = watched.socket.watch(signal.own(), events)?;
        if let Err(error) = signal.add(&told) {
            watched.socket.unwatch(signal.own());
            return Err(error.into());
        }
        watched.wake_fd = Some(told);
        Ok(())
    }

    fn unwatch(&mut self, watched: &mut SharedRegistration) {
        let Some(signal) = &self.signal else { return };
        watched.socket.unwatch(signal.own());
        if let Some(told) = watched.wake_fd.take() {
            signal.remove(&told);
        }
    }

    /// Returns the items to wait for, starting with the one whose turn it is.
    fn items(&mut self) -> Vec<(usize, PollItem)> {
        if let Some(signal) = &self.signal {
            signal.own().drain();
        }
        let count = self.registered.len();
        let start = if count == 0 { 0 } else { self.turn % count };
        let order = (start..count).chain(0..start);
        order
            .map(|index| (index, &self.registered[index]))
            .filter(|(_, known)| known.events != 0)
            .map(|(index, known)| {
                let item = PollItem { socket: known.socket, fd: known.fd, events: known.events, revents: 0 };
                (index, item)
            })
            .collect()
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        while !self.registered.is_empty() {
            self.remove(0);
        }
    }
}

/// Calls `call` with the set of a poller. Fault if the handle is invalid.
///
/// # Safety
/// `poller` is null, or points to at least four readable bytes (the tag).
unsafe fn with_set(poller: *mut c_void, call: impl FnOnce(&mut Set) -> Result<(), Error>) -> c_int {
    guard(-1, || {
        // SAFETY: guaranteed by the caller.
        status(unsafe { Poller::at(poller) }.and_then(|poller| call(&mut poller.set())))
    })
}

/// Checks that this is a socket. Returns the socket if several threads may use it.
///
/// # Safety
/// `socket` is null, or points to at least four readable bytes (the tag).
unsafe fn check_socket(socket: *mut c_void) -> Result<Option<Arc<SharedSocket>>, Error> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match SocketGuard::is_handle(socket) {
            true => Ok(None),
            false => shared::at(socket).map(Some),
        }
    }
}

fn check_fd(fd: RawFd) -> Result<(), Error> {
    if fd == NONE { Err(Error::Os(errno::EBADF)) } else { Ok(()) }
}

fn check_events(events: c_short) -> Result<(), Error> {
    if events & !EVENTS == 0 { Ok(()) } else { Err(Error::Invalid) }
}

/// Makes a poller, to be released with [`zmq_poller_destroy`].
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub extern "C" fn zmq_poller_new() -> *mut c_void {
    guard_new(null_mut(), || {
        fork::start_counting();
        let set = Mutex::new(Set::default());
        handle::into_raw(Poller { tag: Tag::of::<Poller>(), set, generation: fork::generation() })
    })
}

/// Frees the poller and sets the caller's pointer to null. -1 with EFAULT if it is not a poller.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_destroy(poller: *mut *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null, or a valid place that holds null or the handle of an
        // object.
        let released = unsafe { poller.as_mut().and_then(|place| handle::release::<Poller>(*place)) };
        let Some(released) = released else { return fail(Error::Fault) };
        if released.is_inherited() {
            // Dropping it would take the locks of its sockets and wake the parent's I/O thread.
            std::mem::forget(released);
        }
        // SAFETY: not null, since a handle was found there.
        unsafe { *poller = null_mut() };
        0
    })
}

/// Returns the number of registered sockets and descriptors. -1 with EFAULT if there is no poller.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_size(poller: *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or a handle.
        match unsafe { Poller::at(poller) } {
            Ok(poller) => c_int::try_from(poller.set().registered.len()).unwrap_or(c_int::MAX),
            Err(error) => fail(error),
        }
    })
}

/// Registers a socket. -1 with EFAULT without a poller, with ENOTSOCK, with EINVAL if it is already
/// registered or the events are unknown.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_add(
    poller: *mut c_void,
    socket: *mut c_void,
    user_data: *mut c_void,
    events: c_short,
) -> c_int {
    // SAFETY: the caller passes null or a handle for each.
    unsafe {
        with_set(poller, |set| {
            let shared = check_socket(socket)?.map(|socket| SharedRegistration { socket, wake_fd: None });
            check_events(events)?;
            set.add(Registered { socket, fd: NONE, user_data, events, shared })
        })
    }
}

/// Changes the events of a registered socket. The errors are those of [`zmq_poller_add`]; EINVAL if
/// the socket is not registered.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_modify(
    poller: *mut c_void,
    socket: *mut c_void,
    events: c_short,
) -> c_int {
    // SAFETY: the caller passes null or a handle for each.
    unsafe {
        with_set(poller, |set| {
            check_socket(socket)?;
            check_events(events)?;
            let index = set.find(socket, NONE).ok_or(Error::Invalid)?;
            set.modify(index, events)
        })
    }
}

/// Removes a socket. -1 with EFAULT without a poller, with ENOTSOCK, with EINVAL if it is not
/// registered.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_remove(poller: *mut c_void, socket: *mut c_void) -> c_int {
    // SAFETY: the caller passes null or a handle for each.
    unsafe {
        with_set(poller, |set| {
            let index = set.find(socket, NONE).filter(|_| !socket.is_null());
            // A socket that was closed while registered, against the rules, can still be removed.
            let index = match index {
                Some(index) => index,
                None => return check_socket(socket).and(Err(Error::Invalid)),
            };
            set.remove(index);
            Ok(())
        })
    }
}

/// Registers a descriptor. -1 with EFAULT without a poller, with EBADF, with EINVAL if it is
/// already registered or the events are unknown.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_add_fd(
    poller: *mut c_void,
    fd: RawFd,
    user_data: *mut c_void,
    events: c_short,
) -> c_int {
    // SAFETY: the caller passes null or a handle.
    unsafe {
        with_set(poller, |set| {
            check_fd(fd)?;
            check_events(events)?;
            set.add(Registered { socket: null_mut(), fd, user_data, events, shared: None })
        })
    }
}

/// Changes the events of a registered descriptor. The errors are those of [`zmq_poller_add_fd`];
/// EINVAL if the descriptor is not registered.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_modify_fd(poller: *mut c_void, fd: RawFd, events: c_short) -> c_int {
    // SAFETY: the caller passes null or a handle.
    unsafe {
        with_set(poller, |set| {
            check_fd(fd)?;
            check_events(events)?;
            let index = set.find(null_mut(), fd).ok_or(Error::Invalid)?;
            set.modify(index, events)
        })
    }
}

/// Removes a descriptor. -1 with EFAULT without a poller, with EBADF, with EINVAL if it is not
/// registered.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_remove_fd(poller: *mut c_void, fd: RawFd) -> c_int {
    // SAFETY: the caller passes null or a handle.
    unsafe {
        with_set(poller, |set| {
            check_fd(fd)?;
            let index = set.find(null_mut(), fd).ok_or(Error::Invalid)?;
            set.remove(index);
            Ok(())
        })
    }
}

/// Stores the poller's own descriptor, which is readable after a change in one of its sockets that
/// several threads may use. -1 with EINVAL if it has no such sockets, with EFAULT without a poller
/// or without a place for the result.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_fd(poller: *mut c_void, fd: *mut RawFd) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or a place.
    unsafe {
        with_set(poller, |set| {
            let place = fd.as_mut().ok_or(Error::Fault)?;
            *place = set.signal.as_ref().ok_or(Error::Invalid)?.as_fd().as_raw_fd();
            Ok(())
        })
    }
}

/// Waits for one event, like [`zmq_poller_wait_all`]. Returns 0 after an event. After a failure
/// `event` has no meaning.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_wait(
    poller: *mut c_void,
    event: *mut PollerEvent,
    timeout: c_long,
) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or room for one event.
    let count = unsafe { zmq_poller_wait_all(poller, event, 1, timeout) };
    if count >= 0 {
        return 0;
    }
    // SAFETY: the caller passes null or room for one event.
    if let Some(event) = unsafe { event.as_mut() } {
        *event = PollerEvent { socket: null_mut(), fd: NONE, user_data: null_mut(), events: 0 };
    }
    -1
}

/// Waits up to `timeout` milliseconds, or without limit if negative, for events of registered
/// objects. Returns the number of events, at most `count`. -1 with EAGAIN after a timeout, with
/// EFAULT without a poller, without `events`, or if no event could ever occur, with EINVAL for a
/// negative `count`, with ENOTSOCK, with ETERM, with EINTR.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poller_wait_all(
    poller: *mut c_void,
    events: *mut PollerEvent,
    count: c_int,
    timeout: c_long,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or a handle, and null or room for `count` events.
        let waited = unsafe { wait(poller, events, count, timeout) };
        waited.map_or_else(fail, |count| c_int::try_from(count).unwrap_or(c_int::MAX))
    })
}

/// # Safety
/// `poller` is null, or points to at least four readable bytes (the tag). `events` is null,
/// or has room for `count` events.
unsafe fn wait(
    poller: *mut c_void,
    events: *mut PollerEvent,
    count: c_int,
    timeout: c_long,
) -> Result<usize, Error> {
    // SAFETY: guaranteed by the caller.
    let poller = unsafe { Poller::at(poller) }?;
    if events.is_null() {
        return Err(Error::Fault);
    }
    let room = usize::try_from(count).map_err(|_| Error::Invalid)?;
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    let (places, mut items): (Vec<_>, Vec<_>) = poller.set().items().into_iter().unzip();
    if items.is_empty() {
        return sleep_until_timeout(timeout);
    }
    // SAFETY: registered handles point to slots, which stay readable.
    if unsafe { poll::poll(&mut items, timeout) }? == 0 {
        return Err(Error::Again);
    }
    let mut set = poller.set();
    let ready = places.into_iter().zip(&items).filter(|(_, item)| item.revents != 0);
    let mut told = 0;
    for (place, item) in ready {
        if told == room {
            set.turn = place;
            break;
        }
        // Against the rules, the object at this place may have been removed during the wait.
        let known =
            set.registered.get(place).filter(|known| known.socket == item.socket && known.fd == item.fd);
        if let Some(known) = known {
            let event = PollerEvent {
                socket: known.socket,
                fd: known.fd,
                user_data: known.user_data,
                events: item.revents,
            };
            // SAFETY: the caller passes room for `room` events, and `told` is less.
            unsafe { events.add(told).write(event) };
            told += 1;
        }
    }
    if told == 0 { Err(Error::Again) } else { Ok(told) }
}

fn sleep_until_timeout(timeout: Option<Duration>) -> Result<usize, Error> {
    let deadline = Instant::now() + timeout.ok_or(Error::Fault)?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Again);
        }
        system::poll(&mut [], Some(left))?;
    }
}
