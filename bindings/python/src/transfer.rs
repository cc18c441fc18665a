//! Sending and receiving: `send`, `recv`, `send_multipart`, `recv_multipart` and `recv_into`.
//!
//! The functions here take the same arguments as the Python methods of `zmq.Socket` and replace
//! them, so a call does not pass through Python code.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyException, PyIndexError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyString};
use pyo3::{IntoPyObjectExt, ffi};
use tautline_abi::native::{EnteredSocket, SocketHandle};
use tautline_core::{Error, Flags, Message};

use crate::buffer::Buffer;
use crate::enter::{self, DONTWAIT, Direction};
use crate::errors;
use crate::frame::{Frame, Tracking};
use crate::parts::{self, Part, Receipt};

/// Bodies above this length are copied without the interpreter lock.
pub(crate) const LARGE: usize = 64 * 1024;

/// Options of a send.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) copy: bool,
    pub(crate) track: bool,
    pub(crate) copy_threshold: usize,
}

/// Sends a copy of `body` as one part.
#[inline(always)]
pub(crate) fn send_slice(py: Python<'_>, handle: SocketHandle, body: &[u8], flags: c_int) -> PyResult<()> {
    if body.len() > LARGE {
        return enter::call_detached(py, handle, Direction::Send, |socket| socket.send(body, Flags(flags)));
    }
    enter::transfer(py, handle, Direction::Send, flags, |socket, flags| socket.send(body, flags))
}

/// Sends one part.
pub(crate) fn send(
    py: Python<'_>,
    handle: SocketHandle,
    data: &Bound<'_, PyAny>,
    flags: c_int,
    way: Way,
) -> PyResult<Option<Py<PyAny>>> {
    if way.copy
        && let Ok(bytes) = data.cast_exact::<PyBytes>()
    {
        send_slice(py, handle, bytes.as_bytes(), flags)?;
        return Ok(None);
    }
    if data.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("unicode not allowed, use send_string"));
    }
    let (part, receipt) = Part::of(data, way)?;
    let tracker = receipt.into_tracker(py)?;
    part.send(py, handle, flags)?;
    Ok(tracker)
}

/// Sends one part to a peer of a SERVER or a group of a RADIO.
pub(crate) fn send_addressed(
    py: Python<'_>,
    handle: SocketHandle,
    data: &Bound<'_, PyAny>,
    flags: c_int,
    way: Way,
    routing_id: Option<&Bound<'_, PyAny>>,
    group: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Py<PyAny>>> {
    let frame = match data.cast::<Frame>() {
        Ok(frame) => frame.clone(),
        Err(_) => {
            let copy = way.copy.then_some(true);
            Bound::new(py, Frame::made_of(py, data, way.track, copy, way.copy_threshold)?)?
        }
    };
    if let Some(routing_id) = routing_id {
        frame.get().set_routing_id(py, routing_id)?;
    }
    if let Some(group) = group {
        frame.get().set_group(py, group)?;
    }
    send(py, handle, frame.as_any(), flags, way)
}

/// Sends the parts of a message, all of them or none: nothing after the first part can fail or run
/// Python code. Returns the tracker of the last part.
pub(crate) fn send_multipart(
    py: Python<'_>,
    handle: SocketHandle,
    parts: &Bound<'_, PyAny>,
    flags: c_int,
    way: Way,
) -> PyResult<Option<Py<PyAny>>> {
    // All objects are taken before the first buffer, because an object with a buffer cannot be
    // resized by the code that makes the next one.
    let objects: Vec<_> = parts.try_iter()?.collect::<PyResult<_>>()?;
    let mut parts = Vec::with_capacity(objects.len());
    let mut last = Receipt::None;
    for (index, object) in objects.iter().enumerate() {
        let (part, receipt) = Part::of(object, way).map_err(|fault| without_buffer(index, object, fault))?;
        parts.push(part);
        last = receipt;
    }
    if parts.is_empty() {
        return Err(PyIndexError::new_err("list index out of range"));
    }
    let tracker = last.into_tracker(py)?;
    parts::send_all(py, handle, parts, flags)?;
    Ok(tracker)
}

/// Returns the exception for a part that cannot be sent, as pyzmq words it.
#[cold]
fn without_buffer(index: usize, part: &Bound<'_, PyAny>, fault: PyErr) -> PyErr {
    let py = part.py();
    if part.is_instance_of::<Frame>() || !fault.is_instance_of::<PyException>(py) {
        return fault;
    }
    let explain = || -> PyResult<PyErr> {
        let shown = part.repr()?.to_string();
        let dots = if shown.chars().count() > 32 { "..." } else { "" };
        let start: String = shown.chars().take(32).collect();
        let error = PyTypeError::new_err(format!(
            "Frame {index} ({start}{dots}) does not support the buffer interface."
        ));
        error.value(py).setattr(intern!(py, "__context__"), fault.value(py))?;
        Ok(error)
    };
    explain().unwrap_or_else(|error| error)
}

/// Returns the body of a message as `bytes`.
#[inline(always)]
pub(crate) fn bytes_of<'py>(py: Python<'py>, message: &Message) -> PyResult<Bound<'py, PyBytes>> {
    let body = message.as_slice();
    if body.len() > LARGE { large_bytes_of(py, body) } else { Ok(PyBytes::new(py, body)) }
}

/// Copies a large body without the interpreter lock.
#[cold]
fn large_bytes_of<'py>(py: Python<'py>, body: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let len = isize::try_from(body.len())?;
    // SAFETY: makes an object of `len` uninitialised bytes, or sets MemoryError and returns null. The
    // object becomes owned by the result.
    let object = unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len);
        Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>()
    };
    // SAFETY: the object is a bytes object of this length.
    let room = unsafe { ffi::PyBytes_AsString(object.as_ptr()) }.expose_provenance();
    py.detach(|| {
        // SAFETY: `len` bytes of a new object, which only this function knows.
        unsafe {
            let room = std::ptr::with_exposed_provenance_mut::<u8>(room);
            std::ptr::copy_nonoverlapping(body.as_ptr(), room, body.len());
        }
    });
    Ok(object)
}

/// Receives one part as `bytes`.
#[inline(always)]
pub(crate) fn recv(py: Python<'_>, handle: SocketHandle, flags: c_int) -> PyResult<Py<PyAny>> {
    let mut message = Message::new();
    enter::transfer(py, handle, Direction::Receive, flags, |socket, flags| {
        socket.recv_message(&mut message, flags)
    })?;
    Ok(bytes_of(py, &message)?.into_any().unbind())
}

/// Receives one part as a `zmq.Frame`.
pub(crate) fn recv_frame(
    py: Python<'_>,
    handle: SocketHandle,
    flags: c_int,
    track: bool,
) -> PyResult<Py<PyAny>> {
    let mut message = Message::new();
    enter::transfer(py, handle, Direction::Receive, flags, |socket, flags| {
        socket.recv_message(&mut message, flags)
    })?;
    Ok(frame_of(py, message, track)?.unbind())
}

/// Returns a `zmq.Frame` with a received part.
fn frame_of(py: Python<'_>, message: Message, track: bool) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || py.import("zmq")?.getattr("Frame").map(Bound::unbind))?;
    let object = class.bind(py).call0()?;
    let frame = object.cast::<Frame>()?.get();
    if track {
        frame.set_tracker(Some(Tracking::finished(py)?));
    }
    frame.receive(message)?;
    Ok(object)
}

/// The parts of a message. Most messages have one part, which needs no allocation.
#[derive(Default)]
pub(crate) struct Parts {
    first: Option<Message>,
    others: Vec<Message>,
}

impl Parts {
    /// Returns the first part of a message.
    pub(crate) fn new(first: Message) -> Parts {
        Parts { first: Some(first), others: Vec::new() }
    }

    /// Receives the parts of a message. After a failure, a second call continues.
    #[inline(always)]
    pub(crate) fn receive(&mut self, socket: &mut EnteredSocket<'_>, flags: Flags) -> Result<(), Error> {
        if self.first.is_none() {
            let mut message = Message::new();
            socket.recv_message(&mut message, flags)?;
            self.first = Some(message);
        }
        self.receive_others(socket, flags)
    }

    /// Receives the parts after the first one.
    pub(crate) fn receive_others(
        &mut self,
        socket: &mut EnteredSocket<'_>,
        flags: Flags,
    ) -> Result<(), Error> {
        while self.others.last().or(self.first.as_ref()).is_some_and(Message::more) {
            let mut message = Message::new();
            socket.recv_message(&mut message, flags)?;
            self.others.push(message);
        }
        Ok(())
    }

    /// Returns the parts as a list of `bytes`.
    pub(crate) fn into_list(self, py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        let list = PyList::empty(py);
        for message in self.first.iter().chain(&self.others) {
            list.append(bytes_of(py, message)?)?;
        }
        Ok(list)
    }

    /// Returns `bytes` for one part, or else a list.
    pub(crate) fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match &self.first {
            Some(message) if self.others.is_empty() => Ok(bytes_of(py, message)?.into_any()),
            _ => Ok(self.into_list(py)?.into_any()),
        }
    }
}

/// The time limit of a call that takes many messages. If the peers never stop sending, the call
/// returns the messages that it has, and signal handlers run.
#[derive(Default)]
pub(crate) struct Pace(Option<Instant>);

impl Pace {
    const LIMIT: Duration = Duration::from_millis(50);
    /// Number of messages between two readings of the clock.
    const STEP: usize = 256;

    /// True if the call should return after `count` messages.
    #[inline(always)]
    pub(crate) fn is_over(&mut self, count: usize) -> bool {
        count.is_multiple_of(Self::STEP) && self.0.get_or_insert_with(Instant::now).elapsed() > Self::LIMIT
    }
}

/// Receives a message as a list of `bytes`.
pub(crate) fn recv_multipart(py: Python<'_>, handle: SocketHandle, flags: c_int) -> PyResult<Py<PyAny>> {
    let mut parts = Parts::default();
    enter::transfer(py, handle, Direction::Receive, flags, |socket, flags| parts.receive(socket, flags))?;
    Ok(parts.into_list(py)?.into_any().unbind())
}

/// Receives a message as a list of `zmq.Frame`s.
pub(crate) fn recv_frames(
    py: Python<'_>,
    handle: SocketHandle,
    flags: c_int,
    track: bool,
) -> PyResult<Py<PyAny>> {
    let mut parts = Parts::default();
    enter::transfer(py, handle, Direction::Receive, flags, |socket, flags| parts.receive(socket, flags))?;
    let list = PyList::empty(py);
    for message in parts.first.into_iter().chain(parts.others) {
        list.append(frame_of(py, message, track)?)?;
    }
    list.into_py_any(py)
}

/// Receives one part into a buffer of Python, at most `room` bytes, or as many as fit if `room` is 0.
pub(crate) fn recv_into(
    py: Python<'_>,
    handle: SocketHandle,
    object: &Bound<'_, PyAny>,
    room: usize,
    flags: c_int,
) -> PyResult<usize> {
    let mut buffer = Buffer::writable(object)?;
    let bytes = room_in(&mut buffer, room)?;
    enter::transfer(py, handle, Direction::Receive, flags, |socket, flags| socket.recv(bytes, flags))
}

/// Like [`recv_into`], without waiting. Returns `None` if no message has arrived.
pub(crate) fn try_recv_into(
    py: Python<'_>,
    handle: SocketHandle,
    object: &Bound<'_, PyAny>,
    room: usize,
) -> PyResult<Option<usize>> {
    let mut buffer = Buffer::writable(object)?;
    let bytes = room_in(&mut buffer, room)?;
    attempt(py, handle, 0, |socket, flags| socket.recv(bytes, flags))
}

/// Returns the first `room` bytes of a buffer, or all of them if `room` is 0.
fn room_in(buffer: &mut Buffer, room: usize) -> PyResult<&mut [u8]> {
    let len = buffer.len();
    if room > len {
        return Err(PyValueError::new_err(format!("nbytes={room} too big for memoryview of {len}B")));
    }
    Ok(buffer.as_mut_slice(if room == 0 { len } else { room }))
}

/// Calls `transfer` once, without waiting. Returns `None` if the call would block.
#[inline(always)]
pub(crate) fn attempt<T>(
    py: Python<'_>,
    handle: SocketHandle,
    flags: c_int,
    mut transfer: impl FnMut(&mut EnteredSocket<'_>, Flags) -> Result<T, Error>,
) -> PyResult<Option<T>> {
    match enter::at_once(py, handle, |entered| transfer(entered, Flags(flags | DONTWAIT)))? {
        Ok(value) => Ok(Some(value)),
        Err(Error::Again) => Ok(None),
        // Handlers of the signal run, and the caller tries again later.
        Err(Error::Interrupted) => py.check_signals().map(|()| None),
        Err(error) => Err(errors::after_signals(py, error)),
    }
}

/// Receives one part as `bytes`, if a message has arrived.
pub(crate) fn try_recv(py: Python<'_>, handle: SocketHandle) -> PyResult<Option<Py<PyAny>>> {
    let mut message = Message::new();
    match attempt(py, handle, 0, |socket, flags| socket.recv_message(&mut message, flags))? {
        Some(_) => Ok(Some(bytes_of(py, &message)?.into_any().unbind())),
        None => Ok(None),
    }
}

/// Receives a message as a list of `bytes`, if one has arrived.
pub(crate) fn try_recv_multipart(py: Python<'_>, handle: SocketHandle) -> PyResult<Option<Py<PyAny>>> {
    let mut parts = Parts::default();
    match attempt(py, handle, 0, |socket, flags| parts.receive(socket, flags))? {
        Some(()) => Ok(Some(parts.into_list(py)?.into_any().unbind())),
        None => Ok(None),
    }
}

/// Sends a copy of `data` as one part, if a peer has room.
pub(crate) fn try_send(
    py: Python<'_>,
    handle: SocketHandle,
    data: &Bound<'_, PyAny>,
    flags: c_int,
) -> PyResult<bool> {
    if let Ok(bytes) = data.cast_exact::<PyBytes>() {
        let body = bytes.as_bytes();
        return Ok(attempt(py, handle, flags, |socket, flags| socket.send(body, flags))?.is_some());
    }
    if data.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("unicode not allowed, use send_string"));
    }
    let buffer = Buffer::of(data)?;
    Ok(attempt(py, handle, flags, |socket, flags| socket.send(buffer.as_slice(), flags))?.is_some())
}
