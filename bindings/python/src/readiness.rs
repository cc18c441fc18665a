//! `Readiness`: one descriptor that an event loop watches for a socket.
//!
//! ZMQ_FD would serve, but after a program has asked for it, the socket writes it for every message,
//! even without a waiting task. The descriptors of this file stay silent until `arm` returns
//! WAITING.
//!
//! The descriptor is an epoll instance with edges: it becomes readable once for each event, until
//! `clear`. A wait follows the engine's wait rule in steps:
//!
//! ```text
//!   arm(events)   READY     try the operation again now
//!                 SOON      call arm again in the next turn of the loop (the wait rule spins, or has
//!                           read only a part of the available data)
//!                 WAITING   the descriptor becomes readable; then: clear(), and arm again
//! ```
//!
//! An edge that is taken while no wait rests belongs to a wake signal that is still raised, and that
//! does not write its descriptor again. The next wait that comes to rest therefore checks once more.
//!
//! A socket that several threads may use has no wait rule: `arm` returns READY or WAITING.
//!
//! Another part of the program may call the same socket and wait. That call ends the rest of the
//! socket, and the event loop would sleep on. It therefore ends with [`notify`].

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tautline_abi::native::{SharedWatch, SocketHandle};
use tautline_core::{Error, WaitMode, WaitState, WaitStep, poller};

use crate::socket::Socket;
use crate::{enter, errors};

const WAITING: i32 = 0;
const READY: i32 = 1;
const SOON: i32 = 2;

/// The readiness of a socket, as one descriptor for an event loop.
#[pyclass(frozen, weakref, module = "tautline_zmq._native")]
pub(crate) struct Readiness {
    socket: SocketHandle,
    /// The wait for a socket that several threads may use.
    shared: Option<SharedWatch>,
    epoll: OwnedFd,
    /// Copies of the engine's descriptors, and the event of [`notify`]: the epoll instance watches
    /// them.
    watched: Vec<OwnedFd>,
    /// A thread that holds this lock never waits for a socket or for the interpreter lock.
    wait: Mutex<Wait>,
}

#[derive(Default)]
struct Wait {
    state: WaitState,
    /// True if an edge was taken while no wait rested.
    unseen: bool,
}

impl Readiness {
    fn wait(&self) -> MutexGuard<'_, Wait> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Readiness {
    #[classattr]
    const WAITING: i32 = WAITING;
    #[classattr]
    const READY: i32 = READY;
    #[classattr]
    const SOON: i32 = SOON;

    /// Watches a socket.
    #[new]
    fn new(py: Python<'_>, socket: &Bound<'_, Socket>) -> PyResult<Readiness> {
        let socket = socket.get().handle(py)?;
        let shared = if socket.is_shared() {
            Some(SharedWatch::new().map_err(|error| errors::exception(py, error))?)
        } else {
            None
        };
        let mut watched = enter::call(py, socket, |socket| match &shared {
            Some(watch) => watch.descriptors(socket),
            None => socket.with(|socket| socket.descriptors().map_err(Error::from)),
        })?;
        let event = event()?;
        let number = event.as_raw_fd();
        watched.push(event);
        let epoll = watch(&watched)?;
        let mut all = lock(&NOTIFIED);
        all.push((socket, number));
        COUNT.store(all.len(), Ordering::Relaxed);
        drop(all);
        let wait = Mutex::default();
        Ok(Readiness { socket, shared, epoll, watched, wait })
    }

    /// Returns the descriptor.
    fn fileno(&self) -> i32 {
        self.epoll.as_raw_fd()
    }

    /// Returns READY, SOON or WAITING for an operation that needs `events`, of POLLIN and POLLOUT,
    /// and that would have blocked. POLLOUT means the message that was refused.
    fn arm(&self, py: Python<'_>, events: i16) -> PyResult<i32> {
        if events == 0 || events & !(poller::POLLIN | poller::POLLOUT) != 0 {
            return Err(PyValueError::new_err(format!("events={events} must be POLLIN, POLLOUT or both")));
        }
        if let Some(watch) = &self.shared {
            let ready = enter::call(py, self.socket, |socket| watch.arm(socket, events))?;
            return Ok(if ready { READY } else { WAITING });
        }
        enter::call(py, self.socket, |socket| {
            socket.with(|socket| {
                let wait = &mut *self.wait();
                loop {
                    // The event loop watches the descriptor, so no waker is needed.
                    let noop = Waker::noop();
                    match socket.poll_ready(events, &mut wait.state, WaitMode::Descriptors, noop)? {
                        WaitStep::Ready => return Ok(READY),
                        WaitStep::CheckAgain => return Ok(SOON),
                        WaitStep::Sleeping if !std::mem::take(&mut wait.unseen) => return Ok(WAITING),
                        WaitStep::Sleeping => {}
                    }
                }
            })
        })
    }

    /// Takes the events of the descriptor, which is then not readable until the next one.
    fn clear(&self) {
        // A forked child shares the epoll instance, and must not take its parent's events.
        if !self.socket.is_open() {
            return;
        }
        let mut wait = self.wait();
        if take_edges(&self.epoll) && !wait.state.is_sleeping() {
            wait.unseen = true;
        }
    }

    /// Ends a wait that will not be continued.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        if !self.socket.is_open() {
            return Ok(());
        }
        if let Some(watch) = &self.shared {
            return enter::call(py, self.socket, |socket| watch.disarm(socket));
        }
        enter::call(py, self.socket, |socket| {
            socket.with(|socket| {
                socket.stop_waiting(std::mem::take(&mut self.wait().state));
                Ok(())
            })
        })
    }
}

/// Sockets with the events of their `Readiness`. A thread that holds the lock never waits for a
/// socket or for the interpreter lock.
static NOTIFIED: Mutex<Vec<(SocketHandle, i32)>> = Mutex::new(Vec::new());
/// Length of the list.
// Relaxed: a hint. A thread that has just made a `Readiness` has not waited for its event yet.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn lock(all: &Mutex<Vec<(SocketHandle, i32)>>) -> MutexGuard<'_, Vec<(SocketHandle, i32)>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the descriptors of the socket's `Readiness` readable, so that their event loops arm them
/// again. Called after a call that has waited for the socket.
pub(crate) fn notify(socket: SocketHandle) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    for (_, event) in lock(&NOTIFIED).iter().filter(|(watched, _)| *watched == socket) {
        let one = 1_u64;
        // SAFETY: eight readable bytes, and a descriptor that stays open while it is in the list. A
        // full event stays readable.
        unsafe { libc::write(*event, (&raw const one).cast(), size_of::<u64>()) };
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        if let Some(watch) = &self.shared {
            // If another thread has the socket, it wakes a descriptor without readers.
            let _ = self.socket.at_once(|socket| watch.disarm(socket));
        }
        let number = self.watched.last().map(AsRawFd::as_raw_fd);
        let mut all = lock(&NOTIFIED);
        all.retain(|(_, event)| Some(*event) != number);
        COUNT.store(all.len(), Ordering::Relaxed);
    }
}

/// Number of descriptors of a socket, and room for their events.
const MAX: usize = 4;

/// Returns a descriptor that a write makes readable.
fn event() -> std::io::Result<OwnedFd> {
    // SAFETY: makes a descriptor, or returns -1.
    let number = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if number < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just made, and this is its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Returns an epoll instance with edges of the descriptors.
fn watch(descriptors: &[OwnedFd]) -> std::io::Result<OwnedFd> {
    // SAFETY: makes a descriptor, or returns -1.
    let number = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if number < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just made, and this is its only owner.
    let epoll = unsafe { OwnedFd::from_raw_fd(number) };
    for descriptor in descriptors {
        let mut event = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: 0 };
        // SAFETY: two open descriptors, and a valid event.
        let added = unsafe {
            libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor.as_raw_fd(), &raw mut event)
        };
        if added < 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(epoll)
}

/// Takes the pending edges of an epoll instance. Returns true if there were any.
fn take_edges(epoll: &OwnedFd) -> bool {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; MAX];
    // SAFETY: an open descriptor, and room for MAX events.
    unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), MAX as i32, 0) > 0 }
}
