//! `SyncSocket`: the methods of `tautline_zmq.Socket` that send and receive.

use std::ffi::c_int;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::native_socket::{NativeSocket, on_handle};
use crate::{batch, native_transfer, transfer};

/// Sends and receives in the calling thread.
#[pyclass(extends = NativeSocket, subclass, frozen, module = "tautline_zmq._native")]
pub(crate) struct SyncSocket;

#[pymethods]
impl SyncSocket {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<SyncSocket> {
        NativeSocket::unopened().add_subclass(SyncSocket)
    }

    /// Sends one part of a message: bytes, a Frame, or another object with the buffer protocol.
    ///
    /// `flags` may have SNDMORE (more parts follow) and DONTWAIT. If `copy` is false, a body of 64
    /// KiB or more is sent from the memory of the object, which must not change until the message
    /// has left. `routing_id` names the peer of a SERVER or PEER socket, `group` the group of a
    /// RADIO socket.
    ///
    /// Raises TimedOut after `sndtimeo` milliseconds, Again with DONTWAIT, InvalidState if it is not
    /// the socket's turn (REQ, REP), HostUnreachable if a mandatory ROUTER does not know the peer,
    /// SocketClosed, ContextTerminated.
    #[pyo3(signature = (data, flags = 0, copy = true, *, routing_id = None, group = None))]
    fn send(
        slf: &Bound<'_, Self>,
        data: &Bound<'_, PyAny>,
        flags: c_int,
        copy: bool,
        routing_id: Option<&Bound<'_, PyAny>>,
        group: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        on_handle(slf.as_super(), "send", flags, |py, handle| {
            if routing_id.is_some() || group.is_some() {
                let way = transfer::Way { copy: true, track: false, copy_threshold: 0 };
                return transfer::send_addressed(py, handle, data, flags, way, routing_id, group).map(drop);
            }
            match data.cast_exact::<PyBytes>() {
                Ok(bytes) if copy => transfer::send_slice(py, handle, bytes.as_bytes(), flags),
                _ => native_transfer::send(py, handle, data, flags, copy),
            }
        })
    }

    /// Receives one part of a message: bytes, or a Frame without a copy if `copy` is false.
    ///
    /// The property `rcvmore` tells if more parts of the message follow.
    ///
    /// Raises TimedOut after `rcvtimeo` milliseconds, Again with the flag DONTWAIT, InvalidState if
    /// it is not the socket's turn (REQ, REP), SocketClosed, ContextTerminated.
    #[pyo3(signature = (flags = 0, copy = true))]
    fn recv(slf: &Bound<'_, Self>, flags: c_int, copy: bool) -> PyResult<Py<PyAny>> {
        on_handle(slf.as_super(), "recv", flags, |py, handle| {
            if copy {
                transfer::recv(py, handle, flags)
            } else {
                native_transfer::recv_frame(py, handle, flags)
            }
        })
    }

    /// Receives one part of a message into a writable buffer, and returns the length of the part.
    ///
    /// Bytes that do not fit into the buffer are lost: compare the result with the buffer's length.
    /// `nbytes` limits the used bytes of the buffer; 0 stands for all. Raises BufferError if the
    /// buffer is not writable or not contiguous, and the errors of `recv`.
    #[pyo3(signature = (buffer, /, *, nbytes = 0, flags = 0))]
    fn recv_into(
        slf: &Bound<'_, Self>,
        buffer: &Bound<'_, PyAny>,
        nbytes: isize,
        flags: c_int,
    ) -> PyResult<usize> {
        on_handle(slf.as_super(), "recv_into", flags, |py, handle| {
            transfer::recv_into(py, handle, buffer, native_transfer::room(nbytes)?, flags)
        })
    }

    /// Sends the parts of a message, all of them or none.
    ///
    /// The arguments and errors are those of `send`. Raises ValueError if there are no parts.
    #[pyo3(signature = (parts, flags = 0, copy = true))]
    fn send_multipart(
        slf: &Bound<'_, Self>,
        parts: &Bound<'_, PyAny>,
        flags: c_int,
        copy: bool,
    ) -> PyResult<()> {
        on_handle(slf.as_super(), "send_multipart", flags, |py, handle| {
            native_transfer::send_multipart(py, handle, parts, flags, copy)
        })
    }

    /// Receives all parts of a message as a list of bytes, or of Frames if `copy` is false.
    ///
    /// Raises the errors of `recv`.
    #[pyo3(signature = (flags = 0, copy = true))]
    fn recv_multipart(slf: &Bound<'_, Self>, flags: c_int, copy: bool) -> PyResult<Py<PyAny>> {
        on_handle(slf.as_super(), "recv_multipart", flags, |py, handle| {
            if copy {
                transfer::recv_multipart(py, handle, flags)
            } else {
                native_transfer::recv_frames(py, handle, flags)
            }
        })
    }

    /// Sends each item of an iterable as one message, and returns the number of sent messages.
    ///
    /// An item is an object with the buffer protocol, or a list or tuple of such objects for a
    /// message of several parts. With the flag DONTWAIT, the result is smaller than the number of
    /// items if the peers have no room for more. Raises the errors of `send`; the messages before
    /// the failure are sent.
    #[pyo3(signature = (messages, flags = 0))]
    fn send_many(slf: &Bound<'_, Self>, messages: &Bound<'_, PyAny>, flags: c_int) -> PyResult<usize> {
        on_handle(slf.as_super(), "send_many", flags, |py, handle| {
            batch::send_many(py, handle, messages, flags)
        })
    }

    /// Waits for a message, takes the others that have arrived, and returns their parts as a list of
    /// bytes.
    ///
    /// The list has at least one part, and at most `max` parts unless the last message has more: a
    /// message is never cut. Use `recv_many_multipart` to see where a message ends. Raises the
    /// errors of `recv`.
    #[pyo3(signature = (max = 1000, flags = 0))]
    fn recv_many(slf: &Bound<'_, Self>, max: usize, flags: c_int) -> PyResult<Py<PyAny>> {
        on_handle(slf.as_super(), "recv_many", flags, |py, handle| {
            native_transfer::recv_many(py, handle, max, flags, false)
        })
    }

    /// Like `recv_many`, with a list of bytes for each message.
    #[pyo3(signature = (max = 1000, flags = 0))]
    fn recv_many_multipart(slf: &Bound<'_, Self>, max: usize, flags: c_int) -> PyResult<Py<PyAny>> {
        on_handle(slf.as_super(), "recv_many_multipart", flags, |py, handle| {
            native_transfer::recv_many(py, handle, max, flags, true)
        })
    }

    /// Takes the messages that have arrived, and returns their parts as a list of bytes. Never waits.
    ///
    /// The list is empty if no message has arrived. Raises InvalidState, SocketClosed,
    /// ContextTerminated.
    #[pyo3(signature = (max = 1000))]
    fn recv_batch(slf: &Bound<'_, Self>, max: usize) -> PyResult<Py<PyAny>> {
        on_handle(slf.as_super(), "recv_batch", crate::enter::DONTWAIT, |py, handle| {
            let taken = native_transfer::try_recv_many(py, handle, max, false)?;
            Ok(taken.unwrap_or_else(|| PyList::empty(py).into_any().unbind()))
        })
    }
}
