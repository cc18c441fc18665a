//! Signals of ZMQ_FD for events that a call finds and does not report to all parts of the program.
//!
//! A poll reads the network, and resets the signal if it finds no message or sleeps. It reports the
//! events only to its caller, but another part of the program may wait on ZMQ_FD, for example
//! another task of an event loop. So a poll signals events that became possible during the poll.
//! Events that were possible before are not signalled again: a program that looks with a poll at
//! each signal must be able to sleep.

use super::{PollEvents, Socket};
use crate::context::check_not_forked;
use crate::error::Error;

/// Results of the owner's own reads and polls.
#[derive(Default)]
pub(super) struct Found {
    /// Pipes that became readable while the owner itself was reading. Empty at all other times.
    pub(super) arrived: Vec<u32>,
    /// True if the current poll has read a message that ZMQ_FD does not signal.
    unsignalled: bool,
    /// True if the program was last told that there is no room. It may wait on ZMQ_FD for room.
    pub(super) lacks_room: bool,
}

/// True if ZMQ_FD was read, so that the program may wait on that descriptor.
pub(crate) fn is_exposed(socket: &Socket) -> bool {
    socket.inbox.is_exposed()
}

/// Signals ZMQ_FD, after a call that has reset the signal and reports no events.
pub(super) fn signal_again(socket: &Socket) {
    if is_exposed(socket) {
        socket.inbox.wake_if_parked();
    }
}

/// Processes news, reads the network if needed, and returns the operations that are possible now.
/// For a poll, which must call `end_poll` before it returns.
pub(crate) fn refresh_for_poll(socket: &mut Socket, wanted: PollEvents) -> Result<PollEvents, Error> {
    if !is_exposed(socket) {
        return socket.refresh(wanted, true);
    }
    check_not_forked(&socket.context)?;
    let known = socket.pattern.can_recv(&mut socket.pipes);
    let can = socket.refresh(wanted, true)?;
    socket.found.unsignalled |= can.read && !known;
    Ok(can)
}

/// Ends a poll: signals ZMQ_FD for events that became possible during the poll.
pub(crate) fn end_poll(socket: &mut Socket, has_waited: bool) {
    if !is_exposed(socket) {
        return;
    }
    let read = std::mem::take(&mut socket.found.unsignalled)
        || has_waited && socket.pattern.can_recv(&mut socket.pipes)
        || socket.pattern.has_more_to_do();
    let write = socket.found.lacks_room && socket.pattern.can_send(&mut socket.pipes);
    socket.found.lacks_room &= !write;
    if read || write {
        socket.inbox.wake_if_parked();
    }
}
