//! `Part`: a part of a message on its way from Python to the socket.
//!
//! A message of several parts is prepared as a whole: every object gives its buffer, and every
//! tracker exists, before the socket is entered. All parts are then sent in one entry. Only the
//! first part can wait, because a peer that has taken it has room for the others. So no exception,
//! signal handler, time limit or other thread comes between two parts. Without memory for a later
//! part, the call fails with ENOMEM, and the message stays unfinished.

use std::ffi::c_int;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tautline_abi::native::{EnteredSocket, SocketHandle};
use tautline_core::{Error, Flags, Message};

use crate::buffer::Buffer;
use crate::enter::{self, Direction, SNDMORE};
use crate::frame::{Frame, Tracking};
use crate::reaper;
use crate::transfer::{LARGE, Way, attempt, send_slice};

/// A part to send, which keeps its memory alive.
pub(crate) enum Part<'py> {
    Bytes(Bound<'py, PyBytes>),
    Buffer(Buffer),
    Message(Message),
}

/// What the sender learns about the memory of a part.
pub(crate) enum Receipt {
    None,
    /// The part is copied although the caller did not ask for a copy.
    Copied,
    Tracker(Py<PyAny>),
}

impl Receipt {
    /// Returns the `MessageTracker`, for pyzmq.
    pub(crate) fn into_tracker(self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Receipt::None => Ok(None),
            Receipt::Copied => Tracking::finished(py).map(Some),
            Receipt::Tracker(tracker) => Ok(Some(tracker)),
        }
    }
}

impl<'py> Part<'py> {
    /// Returns the part for an object. `TypeError` if the object has no buffer, `ValueError` if the
    /// caller wants a tracker and the object is a frame without one.
    pub(crate) fn of(data: &Bound<'py, PyAny>, way: Way) -> PyResult<(Part<'py>, Receipt)> {
        let py = data.py();
        if way.copy
            && let Ok(bytes) = data.cast_exact::<PyBytes>()
        {
            return Ok((Part::Bytes(bytes.clone()), Receipt::None));
        }
        if let Ok(frame) = data.cast::<Frame>() {
            let (message, tracker) = frame.get().share(py);
            if way.track && tracker.is_none() {
                return Err(PyValueError::new_err("Not a tracked message"));
            }
            return Ok((Part::Message(message), tracker.map_or(Receipt::None, Receipt::Tracker)));
        }
        let buffer = Buffer::of(data)?;
        if way.copy {
            return Ok((Part::Buffer(buffer), Receipt::None));
        }
        if buffer.len() < way.copy_threshold {
            return Ok((Part::Buffer(buffer), Receipt::Copied));
        }
        if !way.track {
            return Ok((Part::Message(reaper::lend(py, buffer, None)), Receipt::None));
        }
        let Tracking { tracker, event } = Tracking::new(py)?;
        Ok((Part::Message(reaper::lend(py, buffer, Some(event))), Receipt::Tracker(tracker)))
    }

    /// Sends the part as a message of its own.
    pub(crate) fn send(mut self, py: Python<'_>, handle: SocketHandle, flags: c_int) -> PyResult<()> {
        match self.body() {
            Body::Slice(body) => send_slice(py, handle, body, flags),
            mut body => {
                enter::transfer(py, handle, Direction::Send, flags, |socket, flags| body.send(socket, flags))
            }
        }
    }

    /// Sends the part if a peer has room. Returns `None` if not.
    pub(crate) fn try_send(
        mut self,
        py: Python<'_>,
        handle: SocketHandle,
        flags: c_int,
    ) -> PyResult<Option<()>> {
        let mut body = self.body();
        attempt(py, handle, flags, |socket, flags| body.send(socket, flags))
    }

    fn body(&mut self) -> Body<'_> {
        match self {
            Part::Bytes(bytes) => Body::Slice(bytes.as_bytes()),
            Part::Buffer(buffer) => Body::Slice(buffer.as_slice()),
            Part::Message(message) => Body::Message(message),
        }
    }
}

/// A part to send, for a thread without the interpreter lock.
enum Body<'a> {
    Slice(&'a [u8]),
    Message(&'a mut Message),
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

/// Sends the parts of a message, of which there is at least one.
pub(crate) fn send_all(
    py: Python<'_>,
    handle: SocketHandle,
    mut parts: Vec<Part<'_>>,
    flags: c_int,
) -> PyResult<()> {
    let mut bodies: Vec<_> = parts.iter_mut().map(Part::body).collect();
    let mut next = 0;
    // Much memory is copied without the interpreter lock.
    if bodies.iter().map(Body::len).sum::<usize>() > LARGE {
        return enter::call_detached(py, handle, Direction::Send, |socket| {
            send_bodies(&mut bodies, &mut next, socket, Flags(flags))
        });
    }
    enter::transfer(py, handle, Direction::Send, flags, |socket, flags| {
        send_bodies(&mut bodies, &mut next, socket, flags)
    })
}

/// Sends the parts of a message if a peer has room for the first. Returns `None` if not.
pub(crate) fn try_send_all(
    py: Python<'_>,
    handle: SocketHandle,
    mut parts: Vec<Part<'_>>,
) -> PyResult<Option<()>> {
    let mut bodies: Vec<_> = parts.iter_mut().map(Part::body).collect();
    let mut next = 0;
    attempt(py, handle, 0, |socket, flags| match send_bodies(&mut bodies, &mut next, socket, flags) {
        // A peer that has taken the first part has room for the others. A second try would send the
        // first part twice.
        Err(Error::Again) if next > 0 => Err(Error::State),
        result => result,
    })
}
