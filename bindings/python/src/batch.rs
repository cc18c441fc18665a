//! Many messages in one call: `send_many`, `recv_many` and `recv_batch`.

use std::ffi::c_int;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use tautline_abi::native::{EnteredSocket, SocketHandle};
use tautline_core::{Error, Flags, Message};

use crate::enter::{self, DONTWAIT};
use crate::errors;
use crate::exit::PythonCode;
use crate::transfer::{self, Parts, Way};

/// Number of messages that are taken from the socket, or given to it, at a time.
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
        enter::transfer(py, handle, flags, |socket, flags| first.receive(socket, flags))?;
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
    let mut chunk = Vec::new();
    while list.len() < max {
        let wanted = (max - list.len()).min(CHUNK);
        let mut entered = match enter::enter(py, handle) {
            Ok(entered) => entered,
            // The messages that were taken are returned. The next call reports the error.
            Err(_) if !list.is_empty() => return Ok(()),
            Err(error) => return Err(error),
        };
        let result = receive_chunk(&mut entered, &mut chunk, wanted);
        drop(entered);
        append_chunk(py, &mut chunk, list)?;
        match result {
            Ok(()) => {}
            Err(Error::Again) => return Ok(()),
            Err(Error::Interrupted) => return py.check_signals(),
            Err(_) if !list.is_empty() => return Ok(()),
            Err(error) => return Err(errors::after_signals(py, error)),
        }
    }
    Ok(())
}

/// Receives up to `wanted` messages, without waiting. The parts of all messages follow each other in
/// `chunk`.
fn receive_chunk(socket: &mut EnteredSocket, chunk: &mut Vec<Message>, wanted: usize) -> Result<(), Error> {
    let mut messages = 0;
    while messages < wanted {
        // The part is received in its place, because moving a new message would wait for its bytes.
        chunk.push(Message::new());
        let Some(part) = chunk.last_mut() else { return Ok(()) };
        if let Err(error) = socket.recv_message(part, Flags::DONTWAIT) {
            chunk.pop();
            return Err(error);
        }
        messages += usize::from(!part.more());
    }
    Ok(())
}

/// Appends the messages of a chunk to a list.
fn append_chunk(py: Python<'_>, chunk: &mut Vec<Message>, list: &Bound<'_, PyList>) -> PyResult<()> {
    let mut parts: Option<Bound<'_, PyList>> = None;
    for message in chunk.drain(..) {
        let body = transfer::bytes_of(py, &message)?;
        match (parts.take(), message.more()) {
            (None, false) => list.append(body)?,
            (open, more) => {
                let open = open.unwrap_or_else(|| PyList::empty(py));
                open.append(body)?;
                if more {
                    parts = Some(open);
                } else {
                    list.append(open)?;
                }
            }
        }
    }
    Ok(())
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
    let calls_python =
        !(messages.is_exact_instance_of::<PyList>() || messages.is_exact_instance_of::<PyTuple>());
    let mut messages = messages.try_iter()?;
    loop {
        let calls = calls_python.then(|| PythonCode::enter(py));
        let Some(message) = messages.next() else { break };
        drop(calls);
        match message?.cast_into_exact::<PyBytes>() {
            Ok(bytes) => {
                chunk.push(bytes);
                if chunk.len() < CHUNK {
                    continue;
                }
                if !send_chunk(py, handle, &mut chunk, flags, &mut sent)? {
                    return Ok(sent);
                }
            }
            Err(other) => {
                if !send_chunk(py, handle, &mut chunk, flags, &mut sent)?
                    || !send_other(py, handle, &other.into_inner(), flags, sent)?
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

/// Sends the collected messages. Returns false if a peer has no room and `flags` have DONTWAIT.
fn send_chunk(
    py: Python<'_>,
    handle: SocketHandle,
    chunk: &mut Vec<Bound<'_, PyBytes>>,
    flags: c_int,
    sent: &mut usize,
) -> PyResult<bool> {
    let bodies: Vec<&[u8]> = chunk.iter().map(|bytes| bytes.as_bytes()).collect();
    let mut next = 0;
    let result = enter::transfer(py, handle, flags, |socket, flags| {
        while let Some(body) = bodies.get(next) {
            socket.send(body, flags)?;
            next += 1;
        }
        Ok(())
    });
    *sent += next;
    chunk.clear();
    stopped_or(py, flags, result.map(|()| true))
}

/// Sends one message that is not `bytes`.
fn send_other(
    py: Python<'_>,
    handle: SocketHandle,
    message: &Bound<'_, PyAny>,
    flags: c_int,
    _sent: usize,
) -> PyResult<bool> {
    let way = Way { copy: true, track: false, copy_threshold: 0 };
    let result = if message.is_instance_of::<PyList>() || message.is_instance_of::<PyTuple>() {
        transfer::send_multipart(py, handle, message, flags, way)
    } else {
        transfer::send(py, handle, message, flags, way)
    };
    stopped_or(py, flags, result.map(|_| true))
}

/// Turns the exception `Again` into false if `flags` have DONTWAIT.
fn stopped_or(py: Python<'_>, flags: c_int, result: PyResult<bool>) -> PyResult<bool> {
    match result {
        Err(error) if flags & DONTWAIT != 0 && errors::is_again(py, &error) => Ok(false),
        result => result,
    }
}
