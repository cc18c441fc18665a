//! Sending and receiving for the native API. In contrast to `transfer.rs`, frames are of the class
//! `tautline_zmq.Frame`, no tracker exists, and a message of several parts is sent as a whole.

use std::ffi::c_int;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyString};
use tautline_abi::native::{EnteredSocket, SocketHandle};
use tautline_core::{Error, Flags, Message};

use crate::enter::{self, DONTWAIT, Direction};
use crate::frame::Frame;
use crate::parts::{self, Part};
use crate::transfer::{Pace, Way, attempt, bytes_of};

/// Bodies of at least this many bytes are sent without a copy if the caller wants it.
const COPY_THRESHOLD: usize = 64 * 1024;

/// Returns the part for an object. `TypeError` if the object has no buffer.
fn part_of<'py>(data: &Bound<'py, PyAny>, copy: bool) -> PyResult<Part<'py>> {
    if data.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("a message has bytes, not str: encode it, or use send_string"));
    }
    Ok(Part::of(data, Way { copy, track: false, copy_threshold: COPY_THRESHOLD })?.0)
}

/// Sends one part.
pub(crate) fn send(
    py: Python<'_>,
    handle: SocketHandle,
    data: &Bound<'_, PyAny>,
    flags: c_int,
    copy: bool,
) -> PyResult<()> {
    part_of(data, copy)?.send(py, handle, flags)
}

/// Sends one part if a peer has room. Returns `None` if not.
#[inline(always)]
pub(crate) fn try_send(
    py: Python<'_>,
    handle: SocketHandle,
    data: &Bound<'_, PyAny>,
    flags: c_int,
    copy: bool,
) -> PyResult<Option<bool>> {
    let sent = match data.cast_exact::<PyBytes>() {
        Ok(bytes) if copy => {
            let body = bytes.as_bytes();
            attempt(py, handle, flags, |socket, flags| socket.send(body, flags))?
        }
        _ => part_of(data, copy)?.try_send(py, handle, flags)?,
    };
    Ok(sent.map(|()| true))
}

/// Returns the parts of a message. `ValueError` if there are none, `TypeError` if one has no buffer.
fn parts_of<'py>(parts: &Bound<'py, PyAny>, copy: bool) -> PyResult<Vec<Part<'py>>> {
    if parts.is_instance_of::<PyBytes>() || parts.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("the parts of a message are an iterable of bytes, such as a list"));
    }
    let parts: Vec<_> = parts.try_iter()?.map(|part| part_of(&part?, copy)).collect::<PyResult<_>>()?;
    if parts.is_empty() {
        return Err(PyValueError::new_err("a message has at least one part"));
    }
    Ok(parts)
}

/// Sends the parts of a message.
pub(crate) fn send_multipart(
    py: Python<'_>,
    handle: SocketHandle,
    parts: &Bound<'_, PyAny>,
    flags: c_int,
    copy: bool,
) -> PyResult<()> {
    parts::send_all(py, handle, parts_of(parts, copy)?, flags)
}

/// Sends the parts of a message if a peer has room for the first. Returns `None` if not.
pub(crate) fn try_send_multipart(
    py: Python<'_>,
    handle: SocketHandle,
    parts: &Bound<'_, PyAny>,
    copy: bool,
) -> PyResult<Option<bool>> {
    Ok(parts::try_send_all(py, handle, parts_of(parts, copy)?)?.map(|()| true))
}

/// Returns a `tautline_zmq.Frame` with a received part.
fn frame_of(py: Python<'_>, message: Message) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS
        .get_or_try_init(py, || py.import("tautline_zmq._frame")?.getattr("Frame").map(Bound::unbind))?;
    let object = class.bind(py).call0()?;
    object.cast::<Frame>()?.get().receive(message)?;
    Ok(object)
}

fn object_of(py: Python<'_>, message: Message, copy: bool) -> PyResult<Bound<'_, PyAny>> {
    if copy { Ok(bytes_of(py, &message)?.into_any()) } else { frame_of(py, message) }
}

/// Receives one part as a frame.
pub(crate) fn recv_frame(py: Python<'_>, handle: SocketHandle, flags: c_int) -> PyResult<Py<PyAny>> {
    let mut message = Message::new();
    enter::transfer(py, handle, Direction::Receive, flags, |socket, flags| {
        socket.recv_message(&mut message, flags)
    })?;
    Ok(frame_of(py, message)?.unbind())
}

/// Receives a message as a list of frames.
pub(crate) fn recv_frames(py: Python<'_>, handle: SocketHandle, flags: c_int) -> PyResult<Py<PyAny>> {
    let mut messages = Vec::new();
    enter::transfer(py, handle, Direction::Receive, flags, |socket, flags| {
        receive_parts(socket, flags, 1, &mut messages)
    })?;
    list_of(py, messages, false)
}

/// Receives one part if it has arrived.
#[inline(always)]
pub(crate) fn try_recv(py: Python<'_>, handle: SocketHandle, copy: bool) -> PyResult<Option<Py<PyAny>>> {
    let mut message = Message::new();
    match attempt(py, handle, 0, |socket, flags| socket.recv_message(&mut message, flags))? {
        Some(_) => Ok(Some(object_of(py, message, copy)?.unbind())),
        None => Ok(None),
    }
}

/// Receives a message as a list if it has arrived.
pub(crate) fn try_recv_multipart(
    py: Python<'_>,
    handle: SocketHandle,
    copy: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let mut messages = Vec::new();
    match attempt(py, handle, 0, |socket, flags| receive_parts(socket, flags, 1, &mut messages))? {
        Some(()) => Ok(Some(list_of(py, messages, copy)?)),
        None => Ok(None),
    }
}

/// Receives the parts that have arrived. Stops at the end of the message that reaches `max` parts,
/// or when the [`Pace`] is over. Only the first part waits.
#[inline(always)]
fn receive_parts(
    socket: &mut EnteredSocket<'_>,
    flags: Flags,
    max: usize,
    messages: &mut Vec<Message>,
) -> Result<(), Error> {
    let mut pace = Pace::default();
    loop {
        let now = if messages.is_empty() { flags } else { Flags::DONTWAIT };
        // The part is received in its place, because moving a new message would wait for its bytes.
        messages.push(Message::new());
        let Some(part) = messages.last_mut() else { return Ok(()) };
        if let Err(error) = socket.recv_message(part, now) {
            messages.pop();
            // The socket was closed, or its context has ended, within a message.
            while messages.last().is_some_and(Message::more) {
                messages.pop();
            }
            // The next call reports the error again.
            return if messages.is_empty() { Err(error) } else { Ok(()) };
        }
        let more = part.more();
        if !more && (messages.len() >= max || pace.is_over(messages.len())) {
            return Ok(());
        }
    }
}

/// Returns the parts as a list.
fn list_of(py: Python<'_>, messages: Vec<Message>, copy: bool) -> PyResult<Py<PyAny>> {
    let objects: Vec<_> =
        messages.into_iter().map(|message| object_of(py, message, copy)).collect::<PyResult<_>>()?;
    Ok(PyList::new(py, objects)?.into_any().unbind())
}

/// Returns a list with a list of bytes for each message.
fn lists_of(py: Python<'_>, messages: Vec<Message>) -> PyResult<Py<PyAny>> {
    let all = PyList::empty(py);
    let mut parts = PyList::empty(py);
    for message in messages {
        parts.append(bytes_of(py, &message)?)?;
        if !message.more() {
            all.append(std::mem::replace(&mut parts, PyList::empty(py)))?;
        }
    }
    Ok(all.into_any().unbind())
}

/// Waits for a message, and takes the others that have arrived; see `SyncSocket.recv_many`.
pub(crate) fn recv_many(
    py: Python<'_>,
    handle: SocketHandle,
    max: usize,
    flags: c_int,
    multipart: bool,
) -> PyResult<Py<PyAny>> {
    let max = positive(max)?;
    let mut messages = Vec::new();
    enter::transfer(py, handle, Direction::Receive, flags, |socket, flags| {
        receive_parts(socket, flags, max, &mut messages)
    })?;
    if multipart { lists_of(py, messages) } else { list_of(py, messages, true) }
}

/// Like [`recv_many`], without waiting. Returns `None` if no message has arrived.
pub(crate) fn try_recv_many(
    py: Python<'_>,
    handle: SocketHandle,
    max: usize,
    multipart: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let max = positive(max)?;
    let mut messages = Vec::new();
    match attempt(py, handle, DONTWAIT, |socket, flags| receive_parts(socket, flags, max, &mut messages))? {
        Some(()) if multipart => Ok(Some(lists_of(py, messages)?)),
        Some(()) => Ok(Some(list_of(py, messages, true)?)),
        None => Ok(None),
    }
}

fn positive(max: usize) -> PyResult<usize> {
    if max == 0 { Err(PyValueError::new_err("max=0 must be at least 1")) } else { Ok(max) }
}

/// Returns the argument `nbytes` of `recv_into`.
pub(crate) fn room(nbytes: isize) -> PyResult<usize> {
    usize::try_from(nbytes)
        .map_err(|_| PyValueError::new_err(format!("nbytes={nbytes} must not be negative")))
}
