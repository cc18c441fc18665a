//! Sockets that several threads use at once: CLIENT, SERVER, RADIO, DISH, SCATTER, GATHER, PEER and
//! CHANNEL.
//!
//! A lock makes one caller at a time the owner of the [`Socket`]. A caller waits for a message, or
//! for room, in one of two ways:
//!
//! - **alone**: it holds the lock and uses the wait rule, as fast as any other socket. When another
//!   caller knocks (`News::LockRequested`), the sleeper wakes up and releases the lock.
//! - **in company**, from then on for a while: the lock is free. The I/O thread reads the
//!   connections. One of the waiting threads, called *sentinel*, sleeps on the socket's wake
//!   descriptor, which every event wakes now (as with ZMQ_FD). All other waiting threads sleep on
//!   condition variables.
//!
//! A caller that leaves wakes the threads whose operation is possible now. If there is no sentinel,
//! it also wakes a thread to become the sentinel, so no wake-up is lost. Pollers (zmq_poll(3),
//! zmq_poller(3)) wait on their own descriptor, which is woken the same way.

use std::sync::{Condvar, OnceLock, TryLockError};
use std::time::{Duration, Instant};

use crate::conn::{News, SocketInbox};
use crate::error::Error;
use crate::pipe::{Body, Part, Target};
use crate::socket::{Flags, PollEvents, Socket};
use crate::wait::blind_timeout;
use std::io::ErrorKind;
use tautline_io::fd::AsRawFd;
use tautline_io::poll::{self, PollFd};
use tautline_io::thread;
use tautline_io::wake::WakeFd;
use tautline_proto::SocketType;
use tautline_queue::message::Message;
use tautline_queue::sync::atomic::Ordering::SeqCst;
use tautline_queue::sync::atomic::{AtomicBool, AtomicU32};
use tautline_queue::sync::{Arc, Mutex, MutexGuard, lock, try_lock};

mod guard;
#[cfg(test)]
mod tests;

pub use guard::{SharedGuard, wait_in_turns};

/// Time that a socket stays in company after two threads have met in it.
const COMPANY: Duration = Duration::from_millis(200);

/// A socket for many threads; see the module documentation.
pub struct SharedSocket {
    state: Mutex<SharedState>,
    /// Waiting receivers other than the sentinel, and waiting senders.
    readable: Condvar,
    writable: Condvar,
    /// Number of callers that wait for the lock.
    contenders: AtomicU32,
    /// True if the holder of the lock sleeps, or is about to.
    alone: AtomicBool,
    inbox: Arc<SocketInbox>,
    socket_type: SocketType,
    /// The process that created it.
    process: u32,
    /// True if a forked child has closed its copy.
    closed_in_child: AtomicBool,
    /// Descriptor on which the sentinel sleeps, in addition to the socket's own wake descriptor.
    sentinel_wake: OnceLock<WakeFd>,
}

struct SharedState {
    /// `None` once it is closed.
    socket: Option<Socket>,
    readers: u32,
    writers: u32,
    /// Operations that the sentinel waits for, if there is one.
    sentinel: Option<PollEvents>,
    watchers: Vec<(Arc<WakeFd>, PollEvents)>,
    /// End of the time in company.
    company: Option<Instant>,
}

impl SharedState {
    fn socket(&mut self) -> Result<&mut Socket, Error> {
        self.socket.as_mut().ok_or(Error::NotSocket)
    }

    fn has_no_waiters(&self) -> bool {
        self.readers == 0 && self.writers == 0 && self.sentinel.is_none() && self.watchers.is_empty()
    }
}

type StateGuard<'a> = MutexGuard<'a, SharedState>;

const READ: PollEvents = PollEvents { read: true, write: false };
const WRITE: PollEvents = PollEvents { read: false, write: true };

impl SharedSocket {
    /// Makes a socket usable by many threads.
    ///
    /// # Errors
    /// [`Error::TooManyFiles`] without descriptors.
    pub fn new(socket: Socket) -> Result<Arc<SharedSocket>, Error> {
        Ok(Arc::new(SharedSocket {
            inbox: socket.inbox().clone(),
            socket_type: socket.socket_type(),
            state: Mutex::new(SharedState {
                socket: Some(socket),
                readers: 0,
                writers: 0,
                sentinel: None,
                watchers: Vec::new(),
                company: None,
            }),
            readable: Condvar::new(),
            writable: Condvar::new(),
            contenders: AtomicU32::new(0),
            alone: AtomicBool::new(false),
            process: thread::process_id(),
            closed_in_child: AtomicBool::new(false),
            sentinel_wake: OnceLock::new(),
        }))
    }

    /// Returns the type of the socket.
    pub fn socket_type(&self) -> SocketType {
        self.socket_type
    }

    /// Sends a message part that is copied from `body`; see [`Socket::send`].
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is closed, even by another thread during the call; and
    /// the errors of [`Socket::send`].
    pub fn send(&self, body: &[u8], flags: Flags) -> Result<(), Error> {
        let patient = !flags.dontwait();
        self.send_part(&mut Part { body: Body::Borrowed(body), more: flags.more(), patient }, flags)
    }

    /// Sends a message part; see [`Socket::send_message`].
    ///
    /// # Errors
    /// The errors of [`SharedSocket::send`].
    pub fn send_message(&self, message: &mut Message, flags: Flags) -> Result<(), Error> {
        let patient = !flags.dontwait();
        self.send_part(&mut Part { body: Body::Owned(message), more: flags.more(), patient }, flags)?;
        drop(std::mem::take(message));
        Ok(())
    }

    fn send_part(&self, part: &mut Part<'_>, flags: Flags) -> Result<(), Error> {
        self.retry_until_done(flags, WRITE, None, |socket| socket.try_send(part))
    }

    /// Receives a message part into `buffer`; see [`Socket::recv`].
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is closed, even by another thread during the call; and
    /// the errors of [`Socket::recv`].
    pub fn recv(&self, buffer: &mut [u8], flags: Flags) -> Result<usize, Error> {
        let mut target = Target::Buffer(buffer);
        self.retry_until_done(flags, READ, None, |socket| socket.try_recv(&mut target))
    }

    /// Receives a message part; see [`Socket::recv_message`].
    ///
    /// # Errors
    /// The errors of [`SharedSocket::recv`].
    pub fn recv_message(&self, message: &mut Message, flags: Flags) -> Result<usize, Error> {
        let mut target = Target::Message(message);
        self.retry_until_done(flags, READ, None, |socket| socket.try_recv(&mut target))
    }

    /// Repeats `attempt`, which must not wait, until it succeeds or fails, or until `deadline`.
    /// Waits for `events` (POLLIN or POLLOUT) before each repetition. For a caller whose send or
    /// receive was interrupted.
    ///
    /// # Errors
    /// [`Error::Again`] at the deadline, [`Error::Interrupted`], [`Error::NotSocket`] if the socket
    /// is closed, or the error of `attempt`.
    pub fn repeat<T>(
        &self,
        events: i16,
        deadline: Instant,
        attempt: impl FnMut(&mut Socket) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.retry_until_done(Flags::NONE, PollEvents::of(events), Some(deadline), attempt)
    }

    /// Accepts peers at `endpoint`; see [`Socket::bind`]. Other threads can use the socket while a
    /// host name is being resolved.
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is closed, and the errors of [`Socket::bind`].
    pub fn bind(&self, endpoint: &str) -> Result<(), Error> {
        let (parsed, question) = self.with(|socket| socket.prepare_bind(endpoint))?;
        let at = question.map(|question| question.ask()).transpose();
        self.with(|socket| socket.bind_at(endpoint, &parsed, at))
    }

    /// Stops accepting peers at `endpoint`, or ends the connections to it; see [`Socket::unbind`]
    /// and [`Socket::disconnect`]. Other threads can use the socket while a host name is being
    /// resolved.
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is closed, and the errors of [`Socket::unbind`].
    pub fn unbind(&self, endpoint: &str) -> Result<(), Error> {
        let Some(question) = self.with(|socket| socket.end_or_ask(endpoint))? else { return Ok(()) };
        let at = question.ask().map_err(|_| Error::NoEntry)?;
        self.with(|socket| socket.end_named(endpoint, Some(at)))
    }

    /// Gives `call` exclusive use of the socket. `call` should not block, because other threads
    /// would have to wait.
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is closed, or the error of `call`.
    pub fn with<T>(&self, call: impl FnOnce(&mut Socket) -> Result<T, Error>) -> Result<T, Error> {
        let mut state = self.enter();
        let result = state.socket().and_then(call);
        self.wake_ready(&mut state);
        result
    }

    /// Closes the socket. Threads that wait in it get [`Error::NotSocket`].
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is already closed.
    pub fn close(&self) -> Result<(), Error> {
        self.close_after(|_| {})
    }

    /// Like [`SharedSocket::close`], but calls `prepare` with the socket before, which can set
    /// ZMQ_LINGER.
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is already closed.
    pub fn close_after(&self, prepare: impl FnOnce(&mut Socket)) -> Result<(), Error> {
        if self.process != thread::process_id() {
            // A forked child: a thread that exists only in the parent may hold the lock for ever,
            // and the socket belongs to the parent.
            return if self.closed_in_child.swap(true, SeqCst) { Err(Error::NotSocket) } else { Ok(()) };
        }
        let mut socket = {
            let mut state = match try_lock(&self.state) {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    // The current call may be a proxy, which never releases the lock for other
                    // callers.
                    self.inbox.push(News::Closed);
                    self.enter()
                }
            };
            let socket = state.socket.take().ok_or(Error::NotSocket)?;
            self.wake_all(&state);
            socket
        };
        prepare(&mut socket);
        socket.close();
        Ok(())
    }

    // ---- one caller at a time

    fn enter(&self) -> StateGuard<'_> {
        match try_lock(&self.state) {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.enter_occupied(),
        }
    }

    #[cold]
    fn enter_occupied(&self) -> StateGuard<'_> {
        self.contenders.fetch_add(1, SeqCst);
        // Pairs with `wait_alone`: either it sees the contender, or we see that it sleeps.
        if self.alone.load(SeqCst) {
            self.inbox.push(News::LockRequested);
        }
        let mut state = lock(&self.state);
        self.contenders.fetch_sub(1, SeqCst);
        state.company = Instant::now().checked_add(COMPANY);
        state
    }

    fn retry_until_done<T>(
        &self,
        flags: Flags,
        wanted: PollEvents,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(&mut Socket) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut state = self.enter();
        let mut deadline = deadline.map(Some);
        loop {
            let result = state.socket().and_then(&mut attempt);
            if !matches!(result, Err(Error::Again)) || flags.dontwait() {
                self.wake_ready(&mut state);
                return result;
            }
            let until = match deadline {
                Some(until) => until,
                None => *deadline.insert(state.socket()?.deadline_for(wanted)),
            };
            let (stay, waited) = self.wait(state, wanted, until);
            state = stay;
            if let Err(error) = waited {
                self.wake_ready(&mut state);
                return Err(error);
            }
        }
    }

    fn wait<'a>(
        &'a self,
        mut state: StateGuard<'a>,
        wanted: PollEvents,
        deadline: Option<Instant>,
    ) -> (StateGuard<'a>, Result<(), Error>) {
        let in_company = state.company.is_some_and(|until| Instant::now() < until);
        if in_company || !state.has_no_waiters() {
            return self.wait_in_company(state, wanted, deadline);
        }
        let waited = self.wait_alone(&mut state, wanted, deadline);
        (state, waited)
    }

    /// Waits with the lock held, until the state has changed or another caller knocks.
    fn wait_alone(
        &self,
        state: &mut SharedState,
        wanted: PollEvents,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        let socket = state.socket()?;
        socket.conceal();
        self.alone.store(true, SeqCst);
        let waited = match self.contenders.load(SeqCst) {
            0 => socket.wait(wanted, deadline),
            _ => Ok(()),
        };
        self.alone.store(false, SeqCst);
        if self.contenders.load(SeqCst) > 0 {
            state.company = Instant::now().checked_add(COMPANY);
        }
        waited
    }

    /// Waits with the lock released.
    fn wait_in_company<'a>(
        &'a self,
        mut state: StateGuard<'a>,
        wanted: PollEvents,
        deadline: Option<Instant>,
    ) -> (StateGuard<'a>, Result<(), Error>) {
        let patience = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if patience == Some(Duration::ZERO) {
            return (state, Err(Error::Again));
        }
        self.wake_ready(&mut state);
        if state.sentinel.is_none() {
            return self.be_sentinel(state, wanted, patience);
        }
        let condition = if wanted.read { &self.readable } else { &self.writable };
        let count = |state: &mut SharedState, by: fn(u32, u32) -> u32| {
            let place = if wanted.read { &mut state.readers } else { &mut state.writers };
            *place = by(*place, 1);
        };
        count(&mut state, u32::wrapping_add);
        state = match patience {
            None => condition.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
            Some(time) => match condition.wait_timeout(state, time) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            },
        };
        count(&mut state, u32::wrapping_sub);
        (state, Ok(()))
    }

    /// Returns the descriptors for the sentinel's sleep. Returns `None` if a wanted operation is
    /// possible already.
    fn prepare_sentinel(
        &self,
        state: &mut SharedState,
        wanted: PollEvents,
    ) -> Result<Option<(Arc<WakeFd>, &WakeFd)>, Error> {
        if state.socket()?.prepare_sleep(wanted)? {
            return Ok(None);
        }
        if self.sentinel_wake.get().is_none() {
            // The lock ensures that only one thread does this.
            let _ = self.sentinel_wake.set(WakeFd::new()?);
        }
        let wake = self.inbox.waker().descriptor()?;
        Ok(self.sentinel_wake.get().map(|door| (wake, door)))
    }

    fn wake_sentinel(&self) {
        // The first sentinel has created it.
        if let Some(door) = self.sentinel_wake.get() {
            door.wake();
        }
    }

    /// Sleeps on the descriptors by which the I/O thread and inproc peers report events.
    fn be_sentinel<'a>(
        &'a self,
        mut state: StateGuard<'a>,
        wanted: PollEvents,
        patience: Option<Duration>,
    ) -> (StateGuard<'a>, Result<(), Error>) {
        let (wake, door) = match self.prepare_sentinel(&mut state, wanted) {
            Ok(Some(fds)) => fds,
            Ok(None) => return (state, Ok(())),
            Err(error @ (Error::NotSocket | Error::Terminated)) => return (state, Err(error)),
            // Without descriptors this thread cannot be the sentinel for now.
            Err(_) => {
                drop(state);
                let slept = poll::poll(&mut [], Some(blind_timeout(patience)));
                return (lock(&self.state), check_wait(slept));
            }
        };
        state.sentinel = Some(wanted);
        drop(state);
        let mut fds = [wake.as_fd(), door.as_fd()].map(|fd| PollFd::new(fd.as_raw_fd(), PollFd::IN));
        let slept = poll::poll(&mut fds, patience);
        let mut state = lock(&self.state);
        state.sentinel = None;
        self.inbox.waker().clear();
        door.drain();
        if state.writers > 0 {
            // The pattern may have forgotten the refused parts, so all senders must retry.
            self.writable.notify_all();
        }
        (state, check_wait(slept))
    }

    /// Wakes the threads whose operation is possible now. If there is no sentinel, also wakes a
    /// thread to become the sentinel.
    fn wake_ready(&self, state: &mut SharedState) {
        if !state.has_no_waiters() {
            self.wake_others(state);
        }
    }

    #[cold]
    fn wake_others(&self, state: &mut SharedState) {
        let SharedState { socket, readers, writers, sentinel, watchers, .. } = state;
        let Some(socket) = socket else { return self.wake_all(state) };
        let waits_for_room = *writers > 0
            || sentinel.iter().chain(watchers.iter().map(|(_, wanted)| wanted)).any(|of| of.write);
        let can = socket.possible_events(waits_for_room);
        let serves = |wanted: &PollEvents| wanted.read && can.read || wanted.write && can.write;
        if *readers > 0 && can.read {
            self.readable.notify_one();
        }
        if *writers > 0 && can.write {
            self.writable.notify_one();
        }
        match sentinel {
            Some(wanted) if serves(wanted) => self.wake_sentinel(),
            Some(_) => {}
            None if *readers > 0 => self.readable.notify_one(),
            None if *writers > 0 => self.writable.notify_one(),
            None => {}
        }
        for (watcher, wanted) in watchers.iter() {
            if serves(wanted) {
                watcher.wake();
            }
        }
    }

    fn wake_all(&self, state: &SharedState) {
        self.readable.notify_all();
        self.writable.notify_all();
        self.wake_sentinel();
        state.watchers.iter().for_each(|(watcher, _)| watcher.wake());
    }

    // ---- polling

    /// Returns the operations that are possible now, for pollers.
    pub(crate) fn refresh(&self, wanted: PollEvents) -> Result<PollEvents, Error> {
        let mut state = self.enter();
        self.inbox.waker().clear();
        let result = state.socket().and_then(|socket| socket.refresh_and_ask(wanted));
        self.wake_ready(&mut state);
        result
    }

    /// Wakes `watcher` when a wanted operation is possible, from now on until
    /// [`SharedSocket::unwatch`]. A poller sleeps on `watcher` and on the returned descriptor,
    /// which every event wakes while the socket is watched. The poller must check again once,
    /// directly after this call.
    ///
    /// # Errors
    /// [`Error::NotSocket`] if it is closed, [`Error::TooManyFiles`] without descriptors.
    pub fn watch(&self, watcher: &Arc<WakeFd>, events: i16) -> Result<Arc<WakeFd>, Error> {
        let mut state = self.enter();
        let wanted = PollEvents::of(events);
        state.socket()?.prepare_sleep(wanted)?;
        let wake = self.inbox.waker().descriptor()?;
        state.watchers.push((watcher.clone(), wanted));
        self.wake_ready(&mut state);
        Ok(wake)
    }

    /// Ends the effect of [`SharedSocket::watch`].
    pub fn unwatch(&self, watcher: &Arc<WakeFd>) {
        self.enter().watchers.retain(|(other, _)| !Arc::ptr_eq(other, watcher));
    }
}

fn check_wait(slept: std::io::Result<usize>) -> Result<(), Error> {
    match slept {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(Error::Interrupted),
        Err(error) => Err(error.into()),
    }
}

impl std::fmt::Debug for SharedSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedSocket").finish_non_exhaustive()
    }
}
