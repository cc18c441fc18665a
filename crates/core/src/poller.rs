//! Waiting for several sockets and descriptors at once, zmq_poll(3).

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::shared::SharedSocket;
use crate::socket::{PollEvents, Socket, signals};
use crate::wait::{self, Waiter};
use tautline_io::fd::{AsRawFd, RawFd};
use tautline_io::poll::{self, PollFd};
use tautline_io::wake::WakeFd;
use tautline_queue::sync::Arc;

/// ZMQ_POLLIN: a message can be received, or the descriptor read.
pub const POLLIN: i16 = 1;
/// ZMQ_POLLOUT: a message can be sent, or the descriptor written.
pub const POLLOUT: i16 = 2;
/// ZMQ_POLLERR: an error condition on a descriptor.
pub const POLLERR: i16 = 4;
/// ZMQ_POLLPRI: urgent data on a descriptor.
pub const POLLPRI: i16 = 8;

/// A socket or descriptor to wait for.
#[derive(Debug)]
pub enum PollTarget<'a> {
    /// A socket.
    Socket(&'a mut Socket),
    /// A socket that other threads may use at the same time.
    Shared(&'a SharedSocket),
    /// A descriptor of the application.
    Descriptor(RawFd),
}

/// An object to wait for, and its events.
#[derive(Debug)]
pub struct Item<'a> {
    /// The object.
    pub watched: PollTarget<'a>,
    /// The wanted events, of [`POLLIN`] and the other constants.
    pub events: i16,
    /// The events that have occurred; filled in by [`poll()`].
    pub revents: i16,
}

/// Waits until at least one item has an event, or for `timeout` (`None`: for ever). Returns the
/// number of items with events.
///
/// # Errors
/// [`Error::Terminated`], [`Error::Interrupted`], [`Error::TooManyFiles`] without descriptors for
/// shared sockets.
pub fn poll(items: &mut [Item<'_>], timeout: Option<Duration>) -> Result<usize, Error> {
    let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
    let mut raw: Vec<PollFd> = items.iter().filter_map(descriptor).collect();
    let mut watch = None;
    let mut timed_out = timeout == Some(Duration::ZERO);
    let mut has_waited = false;
    loop {
        if !raw.is_empty() {
            match poll::poll(&mut raw, Some(Duration::ZERO)) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                    return Err(Error::Interrupted);
                }
                other => other?,
            };
        }
        let collected = collect(items, &raw);
        if timed_out || collected != Ok(0) {
            end(items, has_waited);
            return collected;
        }
        match &watch {
            None => {
                if let Some(new) = Watch::new(items)? {
                    raw.extend_from_slice(&new.fds);
                    watch = Some(new);
                    // Earlier events were not signalled, so check once more.
                    continue;
                }
            }
            Some(watch) => drop(watch.wake.drain()),
        }
        let mut waiting: Vec<_> = items.iter_mut().filter_map(waiter).collect();
        let mut waiters: Vec<&mut dyn Waiter> =
            waiting.iter_mut().map(|waiter| waiter as &mut dyn Waiter).collect();
        has_waited = true;
        match wait::wait(&mut waiters, &mut raw, deadline) {
            Ok(()) => {}
            Err(Error::Again) => timed_out = true,
            Err(error) => {
                end(items, has_waited);
                return Err(error);
            }
        }
    }
}

/// Signals events to other parts of the program, see [`signals`].
fn end(items: &mut [Item<'_>], has_waited: bool) {
    for item in items {
        if let PollTarget::Socket(socket) = &mut item.watched {
            signals::end_poll(socket, has_waited);
        }
    }
}

fn descriptor(item: &Item<'_>) -> Option<PollFd> {
    let PollTarget::Descriptor(fd) = item.watched else { return None };
    let wanted = [(POLLIN, PollFd::IN), (POLLOUT, PollFd::OUT), (POLLPRI, PollFd::PRI)];
    let events = wanted.iter().filter(|(zmq, _)| item.events & zmq != 0).fold(0, |bits, (_, os)| bits | os);
    Some(PollFd::new(fd, events))
}

fn waiter<'s>(item: &'s mut Item<'_>) -> Option<crate::socket::Waiting<'s>> {
    let wanted = PollEvents::of(item.events);
    match &mut item.watched {
        PollTarget::Socket(socket) => Some(socket.waiter(wanted)),
        PollTarget::Descriptor(_) | PollTarget::Shared(_) => None,
    }
}

/// Descriptors on which a poller sleeps for its shared sockets.
struct Watch<'a> {
    wake: Arc<WakeFd>,
    fds: Vec<PollFd>,
    /// The sockets, and their descriptors, which stay open during the wait.
    sockets: Vec<(&'a SharedSocket, Arc<WakeFd>)>,
}

impl<'a> Watch<'a> {
    /// Returns `None` if there are no shared sockets.
    fn new(items: &[Item<'a>]) -> Result<Option<Self>, Error> {
        let shared = |item: &Item<'a>| match item.watched {
            PollTarget::Shared(socket) => Some((socket, item.events)),
            _ => None,
        };
        if !items.iter().any(|item| shared(item).is_some()) {
            return Ok(None);
        }
        let wake = Arc::new(WakeFd::new()?);
        let fds = vec![PollFd::new(wake.as_fd().as_raw_fd(), PollFd::IN)];
        let mut watch = Watch { wake, fds, sockets: Vec::new() };
        for (socket, events) in items.iter().filter_map(shared) {
            let told = socket.watch(&watch.wake, events)?;
            watch.fds.push(PollFd::new(told.as_fd().as_raw_fd(), PollFd::IN));
            watch.sockets.push((socket, told));
        }
        Ok(Some(watch))
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.sockets.iter().for_each(|(socket, _)| socket.unwatch(&self.wake));
    }
}

/// Fills in the current events. Returns the number of items with events.
fn collect(items: &mut [Item<'_>], raw: &[PollFd]) -> Result<usize, Error> {
    let many = items.len() > wait::MANY;
    if many {
        pull_many(items)?;
    }
    let mut raw = raw.iter();
    let mut ready = 0;
    for item in items {
        item.revents = match &mut item.watched {
            PollTarget::Socket(socket) => {
                let wanted = PollEvents::of(item.events);
                let can = match many && !signals::is_exposed(socket) {
                    true => socket.refresh(wanted, false)?,
                    false => signals::refresh_for_poll(socket, wanted)?,
                };
                (if can.read { POLLIN } else { 0 }) | (if can.write { POLLOUT } else { 0 })
            }
            PollTarget::Shared(socket) => {
                let can = socket.refresh(PollEvents::of(item.events))?;
                (if can.read { POLLIN } else { 0 }) | (if can.write { POLLOUT } else { 0 })
            }
            PollTarget::Descriptor(_) => raw.next().map_or(0, |fd| from_system(fd.revents)),
        };
        ready += usize::from(item.revents != 0);
    }
    Ok(ready)
}

/// Reads the network for those of many sockets that have no message yet. Skips sockets whose ZMQ_FD
/// was read, because each of them must reset its signal before it reads.
fn pull_many(items: &mut [Item<'_>]) -> Result<(), Error> {
    let mut waiting = Vec::with_capacity(items.len());
    for item in items {
        if let PollTarget::Socket(socket) = &mut item.watched {
            let wanted = PollEvents { read: item.events & POLLIN != 0, write: false };
            if wanted.read && !signals::is_exposed(socket) && !socket.refresh(wanted, false)?.read {
                waiting.push(socket.waiter(wanted));
            }
        }
    }
    let mut waiters: Vec<&mut dyn Waiter> =
        waiting.iter_mut().map(|waiter| waiter as &mut dyn Waiter).collect();
    wait::glance(&mut waiters)
}

/// Errors and hang-ups are reported as POLLERR, even if they are not wanted.
fn from_system(revents: i16) -> i16 {
    let known = [(POLLIN, PollFd::IN), (POLLOUT, PollFd::OUT), (POLLPRI, PollFd::PRI)];
    let bits = known.iter().filter(|(_, os)| revents & os != 0).fold(0, |bits, (zmq, _)| bits | zmq);
    if revents & !(PollFd::IN | PollFd::OUT | PollFd::PRI) != 0 { bits | POLLERR } else { bits }
}
