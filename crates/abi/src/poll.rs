//! `zmq_poll` and `zmq_ppoll`: wait for sockets and descriptors in any mixture.
//!
//! The engine watches each socket once. If an array names a socket several times, the socket's
//! first item carries the events of all, and its other items are idle. Arrays of the usual length
//! use only the stack.
//!
//! The caller passes `count` items, each with a handle of `zmq_socket`, or null and a descriptor.

use std::ffi::{c_int, c_long, c_short, c_void};
use std::sync::Arc;
use std::time::Duration;

use tautline_core::poller::{self, Item, PollTarget};
use tautline_core::{Error, SharedSocket};
use tautline_io::fd::{NONE, RawFd};
use tautline_io::poll::SignalMask;

use crate::entry::{self, SocketGuard};
use crate::error::{fail, size};
use crate::guard::guard;
use crate::shared;

/// `zmq_pollitem_t`.
#[repr(C)]
pub struct PollItem {
    pub(crate) socket: *mut c_void,
    pub(crate) fd: RawFd,
    pub(crate) events: c_short,
    pub(crate) revents: c_short,
}

/// `ZMQ_POLLITEMS_DFLT`: arrays up to this length stay on the stack.
const USUAL: usize = 16;

/// A socket while it is watched.
enum WatchedSocket {
    /// A socket of one thread, which is not used elsewhere until the wait ends.
    One(SocketGuard),
    /// A socket that other threads may use at the same time.
    Many(Arc<SharedSocket>),
}

/// Placeholder for an item that is watched at another place, or not at all.
const IDLE: Item<'static> = Item { watched: PollTarget::Descriptor(NONE), events: 0, revents: 0 };

/// Waits up to `timeout` milliseconds, or without limit if negative, for a requested event. Returns
/// the number of items with events and sets the `revents` of all items. -1 with EINVAL for a
/// negative number of items, with EFAULT without items, with ENOTSOCK, with ETERM, with EINTR.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_poll(items: *mut PollItem, count: c_int, timeout: c_long) -> c_int {
    guard(-1, || {
        let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
        size(match usize::try_from(count) {
            Err(_) => Err(Error::Invalid),
            Ok(0) => poller::poll(&mut [], timeout),
            Ok(_) if items.is_null() => Err(Error::Fault),
            // SAFETY: the caller passes `count` items with null or a handle in each.
            Ok(count) => unsafe { poll(std::slice::from_raw_parts_mut(items, count), timeout) },
        })
    })
}

/// Waits for events as [`zmq_poll`] does. During the wait, the signals in `mask` are blocked
/// instead of the usual ones, unless `mask` is null.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_ppoll(
    items: *mut PollItem,
    count: c_int,
    timeout: c_long,
    mask: *const c_void,
) -> c_int {
    // SAFETY: the caller passes null or the system's set of signals; the items as for `zmq_poll`.
    guard(-1, || unsafe {
        match SignalMask::from_raw(mask) {
            // A signal that has already arrived is reported before ready items.
            Some(mask) => match mask.catch() {
                Err(error) => fail(error.into()),
                Ok(()) => mask.during(|| zmq_poll(items, count, timeout)),
            },
            None => zmq_poll(items, count, timeout),
        }
    })
}

/// # Safety
/// Each item's handle is null, or points to at least four readable bytes (the tag).
pub(crate) unsafe fn poll(items: &mut [PollItem], timeout: Option<Duration>) -> Result<usize, Error> {
    let count = items.len();
    if count <= USUAL {
        let (mut entries, mut places) = ([const { None }; USUAL], [0; USUAL]);
        let mut watched = [IDLE; USUAL];
        // SAFETY: guaranteed by the caller.
        unsafe { enter(items, &mut entries[..count], &mut places[..count]) }?;
        wait(items, &mut entries[..count], &places[..count], &mut watched[..count], timeout)
    } else {
        let (mut entries, mut places) = (Vec::new(), vec![0; count]);
        entries.resize_with(count, || None);
        let mut watched: Vec<_> = items.iter().map(|_| IDLE).collect();
        // SAFETY: guaranteed by the caller.
        unsafe { enter(items, &mut entries, &mut places) }?;
        wait(items, &mut entries, &places, &mut watched, timeout)
    }
}

/// Enters each socket once. The place of an item is its own index, or the index of the first item
/// with the same socket, which has the entry.
///
/// # Safety
/// Each item's handle is null, or points to at least four readable bytes (the tag).
unsafe fn enter(
    items: &[PollItem],
    entries: &mut [Option<WatchedSocket>],
    places: &mut [usize],
) -> Result<(), Error> {
    for (index, item) in items.iter().enumerate() {
        places[index] = index;
        if item.socket.is_null() {
            continue;
        }
        // SAFETY: guaranteed by the caller.
        let mark = unsafe { entry::stored_index(item.socket) }.map(|mark| mark as usize);
        if let Some(place) = mark
            && matches!(entries.get(place), Some(Some(WatchedSocket::One(entry))) if entry.is_of(item.socket))
        {
            places[index] = place;
            continue;
        }
        // SAFETY: guaranteed by the caller.
        entries[index] = Some(match unsafe { SocketGuard::new(item.socket) } {
            Ok(entry) => {
                entry.store_index(index as u32);
                WatchedSocket::One(entry)
            }
            // SAFETY: guaranteed by the caller.
            Err(_) => WatchedSocket::Many(unsafe { shared::at(item.socket) }?),
        });
    }
    Ok(())
}

fn wait<'a>(
    items: &mut [PollItem],
    entries: &'a mut [Option<WatchedSocket>],
    places: &[usize],
    watched: &mut [Item<'a>],
    timeout: Option<Duration>,
) -> Result<usize, Error> {
    for (index, entry) in entries.iter_mut().enumerate() {
        match entry {
            Some(WatchedSocket::One(entry)) => watched[index].watched = PollTarget::Socket(entry.socket()?),
            Some(WatchedSocket::Many(socket)) => watched[index].watched = PollTarget::Shared(socket),
            None if places[index] == index => {
                watched[index].watched = PollTarget::Descriptor(items[index].fd);
            }
            None => {}
        }
        watched[places[index]].events |= items[index].events;
    }
    poller::poll(watched, timeout)?;
    let mut ready = 0;
    for (index, item) in items.iter_mut().enumerate() {
        let revents = watched[places[index]].revents;
        // A socket reports to all items that name it. Errors of descriptors are reported even if
        // not requested.
        item.revents = if item.socket.is_null() { revents } else { revents & item.events };
        ready += usize::from(item.revents != 0);
    }
    Ok(ready)
}
