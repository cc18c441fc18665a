//! Many messages in one call: `send_many`, `recv_many` and `recv_batch`.

use std::ffi::c_int;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use tautline_abi::native::{EnteredSocket, SocketHandle};
use tautline_core::{Error, Flags, Message};

use crate::enter::{self, DONTWAIT, Direction};
use crate::errors;
use crate::transfer::{self, Pace, Parts, Way};

/// Number of messages that are given to the socket at a time.
const CHUNK: usize = 256;

/// Waits for a message, and then takes the messages that have arrived, up to `max`.
pub(crate) fn recv_many(
    py: Python<'_>,
    handle: SocketHandle,
    max: usize,
    flags: c_int,
) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(py);
    if max > 0 {
        let mut first = Parts::default();
        enter::transfer(py, handle, Direction::Receive, flags, |socket, flags| first.receive(socket, flags))?;
        list.append(first.into_object(py)?)?;
        take_arrived(py, handle, max, &list)?;
    }
    Ok(list.into_any().unbind())
}

/// Takes the messages that have arrived, up to `max`.
pub(crate) fn recv_batch(py: Python<'_>, handle: SocketHandle, max: usize) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(py);
    take_arrived(py, handle, max, &list)?;
    Ok(list.into_any().unbind())
}

/// Appends the messages that have arrived to a list, up to a length of `max`.
fn take_arrived(py: Python<'_>, handle: SocketHandle, max: usize, list: &Bound<'_, PyList>) -> PyResult<()> {
    let mut part = Message::new();
    let mut pace = Pace::default();
    while list.len() < max {
        let entered =
            enter::at_once(py, handle, |entered| take_inside(py, entered, &mut part, max, list, &mut pace));
        let taken = match entered {
            Ok(taken) => taken,
            // The messages that were taken are returned. The next call reports the error.
            Err(_) if !list.is_empty() => return Ok(()),
            Err(error) => return Err(error),
        };
        match taken? {
            Taken::All => return Ok(()),
            Taken::Until(parts) => {
                list.append(parts.into_object(py)?)?;
                if pace.is_over(list.len()) {
                    return Ok(());
                }
            }
            Taken::Failed(Error::Again) => return Ok(()),
            Taken::Failed(Error::Interrupted) => return py.check_signals(),
            Taken::Failed(_) if !list.is_empty() => return Ok(()),
            Taken::Failed(error) => return Err(errors::after_signals(py, error)),
        }
    }
    Ok(())
}

/// Result of [`take_inside`].
enum Taken {
    /// The list is full, or the time limit is over.
    All,
    /// This message comes next. Its object is made outside of the socket.
    Until(Parts),
    /// The socket is empty, or has an error.
    Failed(Error),
}

/// Appends short messages of one part to a list, while this thread is inside the socket. To make
/// `bytes` and to append them to a list runs no Python code. A list of parts does: it may start the
/// garbage collector.
fn take_inside(
    py: Python<'_>,
    socket: &mut EnteredSocket<'_>,
    part: &mut Message,
    max: usize,
    list: &Bound<'_, PyList>,
    pace: &mut Pace,
) -> PyResult<Taken> {
    while list.len() < max {
        // The message is used again, because it then keeps its memory.
        if let Err(error) = socket.recv_message(part, Flags::DONTWAIT) {
            return Ok(Taken::Failed(error));
        }
        if part.more() || part.len() > transfer::LARGE {
            let mut parts = Parts::new(std::mem::take(part));
            return Ok(match parts.receive_others(socket, Flags::DONTWAIT) {
                Ok(()) => Taken::Until(parts),
                Err(error) => Taken::Failed(error),
            });
        }
        list.append(PyBytes::new(py, part.as_slice()))?;
        if pace.is_over(list.len()) {
            break;
        }
    }
    Ok(Taken::All)
}

/// Sends each item of an iterable as one message. Returns the number of sent messages.
pub(crate) fn send_many(
    py: Python<'_>,
    handle: SocketHandle,
    messages: &Bound<'_, PyAny>,
    flags: c_int,
) -> PyResult<usize> {
    let mut sent = 0;
    let mut chunk: Vec<Bound<'_, PyBytes>> = Vec::new();
    for message in messages.try_iter()? {
        match message?.cast_into_exact::<PyBytes>() {
            Ok(bytes) if bytes.as_bytes().len() <= transfer::LARGE => {
                chunk.push(bytes);
                if chunk.len() < CHUNK {
                    continue;
                }
                if !send_chunk(py, handle, &mut chunk, flags, &mut sent)? {
                    return Ok(sent);
                }
            }
            other => {
                let other = other.map_or_else(|error| error.into_inner(), Bound::into_any);
                if !send_chunk(py, handle, &mut chunk, flags, &mut sent)?
                    || !send_other(py, handle, &other, flags, sent)?
                {
                    return Ok(sent);
                }
                sent += 1;
            }
        }
    }
    send_chunk(py, handle, &mut chunk, flags, &mut sent)?;
    Ok(sent)
}

/// Sends the collected messages. Returns false if no peer has room, as [`has_room`] says.
fn send_chunk(
    py: Python<'_>,
    handle: SocketHandle,
    chunk: &mut Vec<Bound<'_, PyBytes>>,
    flags: c_int,
    sent: &mut usize,
) -> PyResult<bool> {
    let bodies: Vec<&[u8]> = chunk.iter().map(|bytes| bytes.as_bytes()).collect();
    let mut next = 0;
    let mut result = Ok(());
    while next < bodies.len() && result.is_ok() {
        let first = next;
        // Only the first message waits, so that each message has the whole time limit.
        result = enter::transfer(py, handle, Direction::Send, flags, |socket, flags| {
            while let Some(body) = bodies.get(next) {
                match socket.send(body, if next == first { flags } else { Flags::DONTWAIT }) {
                    Err(Error::Again) if next > first => return Ok(()),
                    result => result?,
                }
                next += 1;
            }
            Ok(())
        });
    }
    *sent += next;
    chunk.clear();
    has_room(py, flags, *sent, result)
}

/// Sends one message that is large, or not `bytes`.
fn send_other(
    py: Python<'_>,
    handle: SocketHandle,
    message: &Bound<'_, PyAny>,
    flags: c_int,
    sent: usize,
) -> PyResult<bool> {
    let way = Way { copy: true, track: false, copy_threshold: 0 };
    let result = if message.is_instance_of::<PyList>() || message.is_instance_of::<PyTuple>() {
        transfer::send_multipart(py, handle, message, flags, way)
    } else {
        transfer::send(py, handle, message, flags, way)
    };
    has_room(py, flags, sent, result.map(|_| ()))
}

/// Returns true after a success. Returns false in place of the exception `Again` if `flags` have
/// DONTWAIT, or if messages were sent before, whose number the caller then returns.
fn has_room(py: Python<'_>, flags: c_int, sent: usize, result: PyResult<()>) -> PyResult<bool> {
    match result {
        Err(error) if (flags & DONTWAIT != 0 || sent > 0) && errors::is_again(py, &error) => Ok(false),
        result => result.map(|()| true),
    }
}
