//! Sending and receiving for the native API. In contrast to `transfer.rs`, frames are of the class
//! `tautline_zmq.Frame`, no tracker exists, and a message of several parts is sent as a whole.

use std::ffi::c_int;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyString};
use tautline_abi::native::{EnteredSocket, SocketHandle};
use tautline_core::{Error, Flags, Message};

use crate::buffer::Buffer;
use crate::enter::{self, DONTWAIT, Direction, SNDMORE};
use crate::frame::Frame;
use crate::reaper;
use crate::transfer::{Pace, attempt, bytes_of, send_slice};

/// Bodies of at least this many bytes are sent without a copy if the caller wants it.
const COPY_THRESHOLD: usize = 64 * 1024;

/// A part to send, which keeps its memory alive.
enum Part<'py> {
    Bytes(Bound<'py, PyBytes>),
    Buffer(Buffer),
    Message(Message),
}

/// A part to send, for a thread without the interpreter lock.
enum Body<'a> {
    Slice(&'a [u8]),
    Message(&'a mut Message),
}

impl<'py> Part<'py> {
    /// Returns the part for an object. `TypeError` if the object has no buffer.
    fn of(data: &Bound<'py, PyAny>, copy: bool) -> PyResult<Part<'py>> {
        let py = data.py();
        if copy && let Ok(bytes) = data.cast_exact::<PyBytes>() {
            return Ok(Part::Bytes(bytes.clone()));
        }
        if let Ok(frame) = data.cast::<Frame>() {
            return Ok(Part::Message(frame.get().share(py).0));
        }
        if data.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("a message has bytes, not str: encode it, or use send_string"));
        }
        let buffer = Buffer::of(data)?;
        if !copy && buffer.len() >= COPY_THRESHOLD {
            return Ok(Part::Message(reaper::lend(py, buffer, None)));
        }
        Ok(Part::Buffer(buffer))
    }

    fn body(&mut self) -> Body<'_> {
        match self {
            Part::Bytes(bytes) => Body::Slice(bytes.as_bytes()),
            Part::Buffer(buffer) => Body::Slice(buffer.as_slice()),
            Part::Message(message) => Body::Message(message),
        }
    }
}

impl Body<'_> {
    #[inline(always)]
    fn send(&mut self, socket: &mut EnteredSocket<'_>, flags: Flags) -> Result<(), Error> {
        match self {
            Body::Slice(body) => socket.send(body, flags),
            Body::Message(message) => socket.send_message(message, flags),
        }
    }

    fn len(&self) -> usize {
        match self {
            Body::Slice(body) => body.len(),
            Body::Message(_) => 0,
        }
    }
}

/// Sends one part.
pub(crate) fn send(
    py: Python<'_>,
    handle: SocketHandle,
    data: &Bound<'_, PyAny>,
    flags: c_int,
    copy: bool,
) -> PyResult<()> {
    let mut part = Part::of(data, copy)?;
    match part.body() {
        Body::Slice(body) => send_slice(py, handle, body, flags),
        mut body => {
            enter::transfer(py, handle, Direction::Send, flags, |socket, flags| body.send(socket, flags))
        }
    }
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
        _ => {
            let mut part = Part::of(data, copy)?;
            attempt(py, handle, flags, |socket, flags| part.body().send(socket, flags))?
        }
    };
    Ok(sent.map(|()| true))
}

/// Returns the parts of a message. `ValueError` if there are none, `TypeError` if one has no buffer.
fn parts_of<'py>(parts: &Bound<'py, PyAny>, copy: bool) -> PyResult<Vec<Part<'py>>> {
    if parts.is_instance_of::<PyBytes>() || parts.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("the parts of a message are an iterable of bytes, such as a list"));
    }
    let parts: Vec<_> = parts.try_iter()?.map(|part| Part::of(&part?, copy)).collect::<PyResult<_>>()?;
    if parts.is_empty() {
        return Err(PyValueError::new_err("a message has at least one part"));
    }
    Ok(parts)
}

/// Sends the bodies from `next` on as one message.
fn send_bodies(
    bodies: &mut [Body<'_>],
    next: &mut usize,
    socket: &mut EnteredSocket<'_>,
    flags: Flags,
) -> Result<(), Error> {
    let last = bodies.len() - 1;
    while let Some(body) = bodies.get_mut(*next) {
        let more = if *next < last { SNDMORE } else { 0 };
        body.send(socket, Flags(flags.0 | more))?;
        *next += 1;
    }
    Ok(())
}

/// Sends the parts of a message.
pub(crate) fn send_multipart(
    py: Python<'_>,
    handle: SocketHandle,
    parts: &Bound<'_, PyAny>,
    flags: c_int,
    copy: bool,
) -> PyResult<()> {
    let mut parts = parts_of(parts, copy)?;
    let mut bodies: Vec<_> = parts.iter_mut().map(Part::body).collect();
    let mut next = 0;
    if bodies.iter().map(Body::len).sum::<usize>() > COPY_THRESHOLD {
        return enter::call_detached(py, handle, Direction::Send, |socket| {
            send_bodies(&mut bodies, &mut next, socket, Flags(flags))
        });
    }
    enter::transfer(py, handle, Direction::Send, flags, |socket, flags| {
        send_bodies(&mut bodies, &mut next, socket, flags)
    })
}

/// Sends the parts of a message if a peer has room for the first. Returns `None` if not.
pub(crate) fn try_send_multipart(
    py: Python<'_>,
    handle: SocketHandle,
    parts: &Bound<'_, PyAny>,
    copy: bool,
) -> PyResult<Option<bool>> {
    let mut parts = parts_of(parts, copy)?;
    let mut bodies: Vec<_> = parts.iter_mut().map(Part::body).collect();
    let mut next = 0;
    let sent = attempt(py, handle, 0, |socket, flags| {
        match send_bodies(&mut bodies, &mut next, socket, flags) {
            // A peer that has taken the first part has room for the others. A second try would send
            // the first part twice.
            Err(Error::Again) if next > 0 => Err(Error::State),
            result => result,
        }
    })?;
    Ok(sent.map(|()| true))
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
