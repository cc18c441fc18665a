//! Access to a shared socket for callers that must not wait: code that holds another lock, such as
//! an interpreter lock, or that runs in an event loop.

use std::sync::TryLockError;
use std::time::{Duration, Instant};

use super::{COMPANY, SharedSocket, StateGuard};
use crate::conn::News;
use crate::error::Error;
use crate::socket::{PollEvents, Socket};
use tautline_io::thread;
use tautline_io::wake::WakeFd;
use tautline_queue::sync::atomic::Ordering::SeqCst;
use tautline_queue::sync::{Arc, try_lock};

/// Time between two turns of the other callers, in a wait that holds the lock.
const SLICE: Duration = Duration::from_millis(10);
/// Pause between two attempts to get the lock.
const PAUSE: Duration = Duration::from_millis(1);
/// Time for the other callers. Longer than [`PAUSE`].
const TURN: Duration = Duration::from_millis(3);

/// Calls `wait` with the socket and the end of a short wait, until it does not return
/// [`Error::Again`], or until `deadline`. Other callers get their turn during the wait.
///
/// # Errors
/// [`Error::Again`] at the deadline, [`Error::NotSocket`] if the socket is closed, or the error of
/// `wait`.
pub fn wait_in_turns(
    shared: &SharedSocket,
    deadline: Option<Instant>,
    mut wait: impl FnMut(&mut Socket, Instant) -> Result<(), Error>,
) -> Result<(), Error> {
    loop {
        let slice = Instant::now() + SLICE;
        let end = deadline.map_or(slice, |deadline| deadline.min(slice));
        let result = shared.with(|socket| wait(socket, end));
        if result != Err(Error::Again) || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return result;
        }
        if shared.contenders.load(SeqCst) > 0 {
            thread::sleep(TURN);
        }
    }
}

/// Exclusive use of a shared socket. When dropped, it wakes the threads whose operation is possible
/// now, and releases the lock.
pub struct SharedGuard<'a> {
    shared: &'a SharedSocket,
    state: StateGuard<'a>,
}

impl SharedSocket {
    /// Returns exclusive use of the socket. `None` if another caller has it. That caller may wait,
    /// as in a proxy.
    pub fn try_enter(&self) -> Option<SharedGuard<'_>> {
        let state = match try_lock(&self.state) {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(SharedGuard { shared: self, state })
    }

    /// Waits until [`SharedSocket::try_enter`] is likely to succeed, or until `limit` has passed. A
    /// caller that waits for a message or for room releases the lock.
    pub fn wait_until_free(&self, limit: Duration) {
        let started = Instant::now();
        let mut has_knocked = false;
        self.contenders.fetch_add(1, SeqCst);
        loop {
            if let Some(mut guard) = self.try_enter() {
                guard.state.company = Instant::now().checked_add(COMPANY);
                break;
            }
            // Pairs with `wait_alone`: either it sees the contender, or we see that it sleeps.
            if !has_knocked && self.alone.load(SeqCst) {
                self.inbox.push(News::LockRequested);
                has_knocked = true;
            }
            match started.elapsed() {
                waited if waited >= limit => break,
                waited if waited < Duration::from_micros(100) => std::thread::yield_now(),
                _ => thread::sleep(PAUSE),
            }
        }
        self.contenders.fetch_sub(1, SeqCst);
    }
}

impl SharedGuard<'_> {
    /// Returns the socket.
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is closed.
    pub fn socket(&mut self) -> Result<&mut Socket, Error> {
        self.state.socket()
    }

    /// Returns true if an operation of `events` (POLLIN, POLLOUT) that has failed with
    /// [`Error::Again`] is possible now. If not, `watcher` or the socket's wake descriptor becomes
    /// readable when it may be possible, until [`SharedGuard::disarm`].
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is closed, [`Error::TooManyFiles`] without descriptors.
    pub fn arm(&mut self, watcher: &Arc<WakeFd>, events: i16) -> Result<bool, Error> {
        self.disarm(watcher);
        watcher.drain();
        // Events before this line are visible to the check below, later ones wake again.
        self.shared.inbox.waker().clear();
        let wanted = PollEvents::of(events);
        let socket = self.state.socket()?;
        if socket.prepare_sleep(wanted)? || wanted.write && socket.possible_events(true).write {
            return Ok(true);
        }
        self.state.watchers.push((watcher.clone(), wanted));
        Ok(false)
    }

    /// Ends the effect of [`SharedGuard::arm`].
    pub fn disarm(&mut self, watcher: &Arc<WakeFd>) {
        self.state.watchers.retain(|(other, _)| !Arc::ptr_eq(other, watcher));
    }

    /// Returns the wake descriptor of the socket.
    ///
    /// # Errors
    /// [`Error::TooManyFiles`] without descriptors.
    pub fn wake_descriptor(&self) -> Result<Arc<WakeFd>, Error> {
        Ok(self.shared.inbox.waker().descriptor()?)
    }
}

impl std::fmt::Debug for SharedGuard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedGuard").finish_non_exhaustive()
    }
}

impl Drop for SharedGuard<'_> {
    fn drop(&mut self) {
        self.shared.wake_ready(&mut self.state);
    }
}
