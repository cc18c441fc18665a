//! `zmq_poller_*`: a registered set of sockets and descriptors to wait for.
//!
//! A poller only keeps the list; waiting is that of `zmq_poll`. With sockets of several threads in
//! it, it has a descriptor of its own, which is readable whenever it is worth to wait with a
//! timeout of 0.

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

use crate::entry::Entry;
use crate::error::{fail, status};
use crate::guard::guard;
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

/// What the handle points to.
#[repr(C)]
struct Poller {
    tag: Tag,
    set: Mutex<Set>,
    /// The process that made it, as [`fork::generation`] tells.
    generation: u32,
}

// SAFETY: repr(C), the tag first, and no other object has this number.
unsafe impl Handle for Poller {
    const TAG: u32 = 0x9011_E501;
}

/// A socket or a descriptor that is waited for.
struct Registered {
    /// Null for a descriptor.
    socket: *mut c_void,
    fd: RawFd,
    user_data: *mut c_void,
    events: c_short,
    /// The socket, if it is one of several threads.
    shared: Option<Watched>,
}

/// A socket of several threads.
struct Watched {
    socket: Arc<SharedSocket>,
    /// What it is watched by, as long as it is registered.
    told: Option<Arc<WakeFd>>,
}

// SAFETY: the pointers are handles and a caller's own value, which are only handed on.
unsafe impl Send for Registered {}

#[derive(Default)]
struct Set {
    registered: Vec<Registered>,
    /// The poller's own descriptor, beside what the sockets are watched by.
    signal: Option<AnyWake>,
    /// Where the next look begins, so that no event waits for ever behind others.
    turn: usize,
}

const EVENTS: c_short = POLLIN | POLLOUT | POLLERR | POLLPRI;

impl Poller {
    /// The poller behind a handle. Fault if it is none, Interrupted if a forked child has inherited
    /// it: its descriptor is the parent's.
    ///
    /// # Safety
    /// As for [`handle::acquire`].
    unsafe fn at(handle: *mut c_void) -> Result<Arc<Poller>, Error> {
        // SAFETY: the caller's word.
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

    fn watch(&mut self, watched: &mut Watched, events: c_short) -> Result<(), Error> {
        let signal = match &mut self.signal {
            Some(signal) => signal,
            place => place.insert(AnyWake::new()?),
        };
        let told = watched.socket.watch(signal.own(), events)?;
        if let Err(error) = signal.add(&told) {
            watched.socket.unwatch(signal.own());
            return Err(error.into());
        }
        watched.told = Some(told);
        Ok(())
    }

    fn unwatch(&mut self, watched: &mut Watched) {
        let Some(signal) = &self.signal else { return };
        watched.socket.unwatch(signal.own());
        if let Some(told) = watched.told.take() {
            signal.remove(&told);
        }
    }

    /// What to wait for, beginning with whose turn it is.
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

/// Lets `call` work on a poller. Fault if the handle is none.
///
/// # Safety
/// `poller` is null, or points to four readable bytes.
unsafe fn with_set(poller: *mut c_void, call: impl FnOnce(&mut Set) -> Result<(), Error>) -> c_int {
    guard(-1, || {
        // SAFETY: the caller's word.
        status(unsafe { Poller::at(poller) }.and_then(|poller| call(&mut poller.set())))
    })
}

/// Whether this is a socket, and the socket if it is one of several threads.
///
/// # Safety
/// `socket` is null, or points to four readable bytes.
unsafe fn check_socket(socket: *mut c_void) -> Result<Option<Arc<SharedSocket>>, Error> {
    // SAFETY: the caller's word.
    unsafe {
        match Entry::is_handle(socket) {
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

/// A new poller, to be given to [`zmq_poller_destroy`].
#[unsafe(no_mangle)]
pub extern "C" fn zmq_poller_new() -> *mut c_void {
    guard(null_mut(), || {
        fork::watch();
        let set = Mutex::new(Set::default());
        handle::into_raw(Poller { tag: Tag::of::<Poller>(), set, generation: fork::generation() })
    })
}

/// Frees the poller and sets the caller's pointer to null. -1 with EFAULT if it points to none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_destroy(poller: *mut *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: the caller gives null, or a valid place with null or the handle of an object in
        // it.
        let released = unsafe { poller.as_mut().and_then(|place| handle::release::<Poller>(*place)) };
        let Some(released) = released else { return fail(Error::Fault) };
        if released.is_inherited() {
            // To end it would take its sockets' locks, and tell the parent's I/O thread.
            std::mem::forget(released);
        }
        // SAFETY: not null, since a handle was found there.
        unsafe { *poller = null_mut() };
        0
    })
}

/// How many sockets and descriptors are registered. -1 with EFAULT if there is no poller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_size(poller: *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: the caller gives null or a handle.
        match unsafe { Poller::at(poller) } {
            Ok(poller) => c_int::try_from(poller.set().registered.len()).unwrap_or(c_int::MAX),
            Err(error) => fail(error),
        }
    })
}

/// Registers a socket. -1 with EFAULT without a poller, with ENOTSOCK, with EINVAL if it is
/// registered or the events are unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_add(
    poller: *mut c_void,
    socket: *mut c_void,
    user_data: *mut c_void,
    events: c_short,
) -> c_int {
    // SAFETY: the caller gives null or a handle for each.
    unsafe {
        with_set(poller, |set| {
            let shared = check_socket(socket)?.map(|socket| Watched { socket, told: None });
            check_events(events)?;
            set.add(Registered { socket, fd: NONE, user_data, events, shared })
        })
    }
}

/// Changes what a registered socket is watched for. The errors are those of [`zmq_poller_add`];
/// EINVAL if it is not registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_modify(
    poller: *mut c_void,
    socket: *mut c_void,
    events: c_short,
) -> c_int {
    // SAFETY: the caller gives null or a handle for each.
    unsafe {
        with_set(poller, |set| {
            check_socket(socket)?;
            check_events(events)?;
            let index = set.find(socket, NONE).ok_or(Error::Invalid)?;
            set.modify(index, events)
        })
    }
}

/// Takes a socket out. -1 with EFAULT without a poller, with ENOTSOCK, with EINVAL if it is not
/// registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_remove(poller: *mut c_void, socket: *mut c_void) -> c_int {
    // SAFETY: the caller gives null or a handle for each.
    unsafe {
        with_set(poller, |set| {
            let index = set.find(socket, NONE).filter(|_| !socket.is_null());
            // A socket that was closed, against the rules, can still be taken out.
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
/// registered or the events are unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_add_fd(
    poller: *mut c_void,
    fd: RawFd,
    user_data: *mut c_void,
    events: c_short,
) -> c_int {
    // SAFETY: the caller gives null or a handle.
    unsafe {
        with_set(poller, |set| {
            check_fd(fd)?;
            check_events(events)?;
            set.add(Registered { socket: null_mut(), fd, user_data, events, shared: None })
        })
    }
}

/// Changes what a registered descriptor is watched for. The errors are those of
/// [`zmq_poller_add_fd`]; EINVAL if it is not registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_modify_fd(poller: *mut c_void, fd: RawFd, events: c_short) -> c_int {
    // SAFETY: the caller gives null or a handle.
    unsafe {
        with_set(poller, |set| {
            check_fd(fd)?;
            check_events(events)?;
            let index = set.find(null_mut(), fd).ok_or(Error::Invalid)?;
            set.modify(index, events)
        })
    }
}

/// Takes a descriptor out. -1 with EFAULT without a poller, with EBADF, with EINVAL if it is not
/// registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_remove_fd(poller: *mut c_void, fd: RawFd) -> c_int {
    // SAFETY: the caller gives null or a handle.
    unsafe {
        with_set(poller, |set| {
            check_fd(fd)?;
            let index = set.find(null_mut(), fd).ok_or(Error::Invalid)?;
            set.remove(index);
            Ok(())
        })
    }
}

/// The poller's own descriptor: readable when something has changed for its sockets of several
/// threads. -1 with EINVAL if it has none of those, with EFAULT without a poller or a place for the
/// answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_fd(poller: *mut c_void, fd: *mut RawFd) -> c_int {
    // SAFETY: the caller gives null or a handle, and null or a place.
    unsafe {
        with_set(poller, |set| {
            let place = fd.as_mut().ok_or(Error::Fault)?;
            *place = set.signal.as_ref().ok_or(Error::Invalid)?.as_fd().as_raw_fd();
            Ok(())
        })
    }
}

/// Waits for one event, as [`zmq_poller_wait_all`]; 0 when it has come. After a failure the event
/// says nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_wait(
    poller: *mut c_void,
    event: *mut PollerEvent,
    timeout: c_long,
) -> c_int {
    // SAFETY: the same contract, for one event.
    let count = unsafe { zmq_poller_wait_all(poller, event, 1, timeout) };
    if count >= 0 {
        return 0;
    }
    // SAFETY: the caller gives null or room for one event.
    if let Some(event) = unsafe { event.as_mut() } {
        *event = PollerEvent { socket: null_mut(), fd: NONE, user_data: null_mut(), events: 0 };
    }
    -1
}

/// Waits up to `timeout` milliseconds, for ever if negative, for events of what is registered, and
/// gives how many have come, at most `count`. -1 with EAGAIN after the time, with EFAULT without a
/// poller, without `events`, or if nothing could ever come, with EINVAL for a negative `count`,
/// with ENOTSOCK, with ETERM, with EINTR.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_poller_wait_all(
    poller: *mut c_void,
    events: *mut PollerEvent,
    count: c_int,
    timeout: c_long,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller gives null or a handle, and null or room for `count` events.
        let waited = unsafe { wait(poller, events, count, timeout) };
        waited.map_or_else(fail, |count| c_int::try_from(count).unwrap_or(c_int::MAX))
    })
}

/// # Safety
/// As for [`zmq_poller_wait_all`].
unsafe fn wait(
    poller: *mut c_void,
    events: *mut PollerEvent,
    count: c_int,
    timeout: c_long,
) -> Result<usize, Error> {
    // SAFETY: the caller's word.
    let poller = unsafe { Poller::at(poller) }?;
    if events.is_null() {
        return Err(Error::Fault);
    }
    let room = usize::try_from(count).map_err(|_| Error::Invalid)?;
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    let (places, mut items): (Vec<_>, Vec<_>) = poller.set().items().into_iter().unzip();
    if items.is_empty() {
        return nothing_to_wait_for(timeout);
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
        // What was registered there may have been taken out meanwhile, against the rules.
        let known =
            set.registered.get(place).filter(|known| known.socket == item.socket && known.fd == item.fd);
        if let Some(known) = known {
            let event = PollerEvent {
                socket: known.socket,
                fd: known.fd,
                user_data: known.user_data,
                events: item.revents,
            };
            // SAFETY: the caller gives room for `room` events, and `told` is less.
            unsafe { events.add(told).write(event) };
            told += 1;
        }
    }
    if told == 0 { Err(Error::Again) } else { Ok(told) }
}

fn nothing_to_wait_for(timeout: Option<Duration>) -> Result<usize, Error> {
    let deadline = Instant::now() + timeout.ok_or(Error::Fault)?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Again);
        }
        system::poll(&mut [], Some(left))?;
    }
}
