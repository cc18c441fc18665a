//! `NativeSocket`, the common part of the sockets of `tautline_zmq`.
//!
//! The methods with `_now` and `_try` never wait. They return `None` instead of an exception if the
//! operation would block, because an exception costs more than the operation.

use std::ffi::c_int;

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use tautline_abi::native::SocketHandle;
use tautline_core::SocketType;

use crate::enter::Direction;
use crate::native_errors::named;
use crate::socket::Socket;
use crate::turns::{Turns, direction};
use crate::{batch, enter, native_transfer, options, transfer};

/// Base class of the sockets of `tautline_zmq`.
#[pyclass(extends = Socket, subclass, frozen, module = "tautline_zmq._native")]
pub(crate) struct NativeSocket {
    turns: Turns,
}

impl NativeSocket {
    /// Returns the initializer of an object without a socket.
    pub(crate) fn unopened() -> PyClassInitializer<NativeSocket> {
        PyClassInitializer::from(Socket::unopened(false)).add_subclass(NativeSocket { turns: Turns::new() })
    }

    /// Returns the handle. ENOTSOCK if the socket is closed.
    #[inline(always)]
    pub(crate) fn handle(slf: &Bound<'_, Self>) -> PyResult<SocketHandle> {
        slf.as_super().get().handle(slf.py())
    }
}

/// Returns the result of `call`, which gets the handle. An error names the method and the socket. `flags` are
/// those of the method.
#[inline(always)]
pub(crate) fn on_handle<'py, T>(
    slf: &Bound<'py, NativeSocket>,
    method: &'static str,
    flags: c_int,
    call: impl FnOnce(Python<'py>, SocketHandle) -> PyResult<T>,
) -> PyResult<T> {
    let result = NativeSocket::handle(slf).and_then(|handle| call(slf.py(), handle));
    named(slf.as_any(), method, flags & enter::DONTWAIT == 0, result)
}

#[pymethods]
impl NativeSocket {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<NativeSocket> {
        NativeSocket::unopened()
    }

    /// Receives a part if one has arrived and the turn is not over. Otherwise returns `None`.
    fn _recv_now(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        if slf.get().turns.take(Direction::Receive) { Self::_try_recv(slf, true) } else { Ok(None) }
    }

    /// Receives a part as a frame if one has arrived and the turn is not over. Otherwise returns
    /// `None`.
    fn _recv_frame_now(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        if slf.get().turns.take(Direction::Receive) { Self::_try_recv(slf, false) } else { Ok(None) }
    }

    /// Receives a message as a list if one has arrived and the turn is not over. Otherwise returns
    /// `None`.
    #[pyo3(signature = (copy = true, /))]
    fn _recv_multipart_now(slf: &Bound<'_, Self>, copy: bool) -> PyResult<Option<Py<PyAny>>> {
        if slf.get().turns.take(Direction::Receive) { Self::_try_recv_multipart(slf, copy) } else { Ok(None) }
    }

    /// Takes up to `max` parts if there are any and the turn is not over; see `_try_recv_many`.
    #[pyo3(signature = (max = 1000, multipart = false, /))]
    fn _recv_many_now(slf: &Bound<'_, Self>, max: usize, multipart: bool) -> PyResult<Option<Py<PyAny>>> {
        if slf.get().turns.take(Direction::Receive) {
            Self::_try_recv_many(slf, max, multipart)
        } else {
            Ok(None)
        }
    }

    /// Sends a part if a peer has room and the turn is not over. Otherwise returns `None`.
    #[pyo3(signature = (data, flags = 0, copy = true, /))]
    fn _send_now(
        slf: &Bound<'_, Self>,
        data: &Bound<'_, PyAny>,
        flags: c_int,
        copy: bool,
    ) -> PyResult<Option<bool>> {
        if slf.get().turns.take(Direction::Send) { Self::_try_send(slf, data, flags, copy) } else { Ok(None) }
    }

    /// Sends a message if a peer has room and the turn is not over. Otherwise returns `None`.
    #[pyo3(signature = (parts, copy = true, /))]
    fn _send_multipart_now(
        slf: &Bound<'_, Self>,
        parts: &Bound<'_, PyAny>,
        copy: bool,
    ) -> PyResult<Option<bool>> {
        if slf.get().turns.take(Direction::Send) {
            Self::_try_send_multipart(slf, parts, copy)
        } else {
            Ok(None)
        }
    }

    /// Blocks a direction (0 receives, 1 sends), so that the `_now` methods return `None`. Returns
    /// true if the turn was over.
    fn _begin_wait(&self, index: usize) -> PyResult<bool> {
        Ok(self.turns.block(direction(index)?))
    }

    /// True if the turn of a direction (0 receives, 1 sends) is over.
    fn _is_turn_over(&self, index: usize) -> PyResult<bool> {
        Ok(self.turns.is_used_up(direction(index)?))
    }

    /// Starts a new turn after a wait.
    fn _end_wait(&self, index: usize) -> PyResult<()> {
        self.turns.renew(direction(index)?);
        Ok(())
    }

    /// Receives a part if one has arrived.
    #[pyo3(signature = (copy = true, /))]
    fn _try_recv(slf: &Bound<'_, Self>, copy: bool) -> PyResult<Option<Py<PyAny>>> {
        on_handle(slf, "recv", enter::DONTWAIT, |py, handle| native_transfer::try_recv(py, handle, copy))
    }

    /// Receives a part into a buffer if one has arrived and the turn is not over. Otherwise returns
    /// `None`.
    #[pyo3(signature = (buffer, nbytes = 0, /))]
    fn _recv_into_now(
        slf: &Bound<'_, Self>,
        buffer: &Bound<'_, PyAny>,
        nbytes: isize,
    ) -> PyResult<Option<usize>> {
        if slf.get().turns.take(Direction::Receive) {
            Self::_try_recv_into(slf, buffer, nbytes)
        } else {
            Ok(None)
        }
    }

    /// Receives a part into a buffer if one has arrived, and returns its length; see
    /// `SyncSocket.recv_into`.
    #[pyo3(signature = (buffer, nbytes = 0, /))]
    fn _try_recv_into(
        slf: &Bound<'_, Self>,
        buffer: &Bound<'_, PyAny>,
        nbytes: isize,
    ) -> PyResult<Option<usize>> {
        on_handle(slf, "recv_into", enter::DONTWAIT, |py, handle| {
            transfer::try_recv_into(py, handle, buffer, native_transfer::room(nbytes)?)
        })
    }

    /// Receives a message as a list if one has arrived.
    #[pyo3(signature = (copy = true, /))]
    fn _try_recv_multipart(slf: &Bound<'_, Self>, copy: bool) -> PyResult<Option<Py<PyAny>>> {
        on_handle(slf, "recv_multipart", enter::DONTWAIT, |py, handle| {
            native_transfer::try_recv_multipart(py, handle, copy)
        })
    }

    /// Sends a part if a peer has room.
    #[pyo3(signature = (data, flags = 0, copy = true, /))]
    fn _try_send(
        slf: &Bound<'_, Self>,
        data: &Bound<'_, PyAny>,
        flags: c_int,
        copy: bool,
    ) -> PyResult<Option<bool>> {
        on_handle(slf, "send", enter::DONTWAIT, |py, handle| {
            native_transfer::try_send(py, handle, data, flags, copy)
        })
    }

    /// Sends a message if a peer has room.
    #[pyo3(signature = (parts, copy = true, /))]
    fn _try_send_multipart(
        slf: &Bound<'_, Self>,
        parts: &Bound<'_, PyAny>,
        copy: bool,
    ) -> PyResult<Option<bool>> {
        on_handle(slf, "send_multipart", enter::DONTWAIT, |py, handle| {
            native_transfer::try_send_multipart(py, handle, parts, copy)
        })
    }

    /// Takes up to `max` parts that have arrived, and the rest of the last message. Returns `None` if
    /// there are none. If `multipart` is true, the list has a list for each message.
    #[pyo3(signature = (max = 1000, multipart = false, /))]
    fn _try_recv_many(slf: &Bound<'_, Self>, max: usize, multipart: bool) -> PyResult<Option<Py<PyAny>>> {
        on_handle(slf, "recv_many", enter::DONTWAIT, |py, handle| {
            native_transfer::try_recv_many(py, handle, max, multipart)
        })
    }

    /// Sends messages while a peer has room. Returns the number of sent messages.
    fn _try_send_many(slf: &Bound<'_, Self>, messages: &Bound<'_, PyAny>) -> PyResult<usize> {
        on_handle(slf, "send_many", enter::DONTWAIT, |py, handle| {
            batch::send_many(py, handle, messages, enter::DONTWAIT)
        })
    }

    /// Returns the value of an option of the type int.
    fn _get_int(slf: &Bound<'_, Self>, option: c_int) -> PyResult<c_int> {
        on_handle(slf, "get", enter::DONTWAIT, |py, handle| options::int(py, handle, option))
    }

    /// Sets an option of the type int.
    fn _set_int(slf: &Bound<'_, Self>, option: c_int, value: c_int) -> PyResult<()> {
        Self::_set_bytes(slf, option, &value.to_ne_bytes())
    }

    /// Returns the value of an option as bytes, at most `room` of them.
    #[pyo3(signature = (option, room = 1024))]
    fn _get_bytes<'py>(slf: &Bound<'py, Self>, option: c_int, room: usize) -> PyResult<Bound<'py, PyBytes>> {
        on_handle(slf, "get", enter::DONTWAIT, |py, handle| {
            let mut value = Vec::new();
            value.try_reserve_exact(room).map_err(|_| PyMemoryError::new_err("no memory for the value"))?;
            value.resize(room, 0);
            let len =
                enter::call(py, handle, |socket| socket.with(|socket| socket.option(option, &mut value)))?;
            Ok(PyBytes::new(py, &value[..len.min(room)]))
        })
    }

    /// Sets an option to bytes. Releases the interpreter lock if the option waits.
    fn _set_bytes(slf: &Bound<'_, Self>, option: c_int, value: &[u8]) -> PyResult<()> {
        on_handle(slf, "set", enter::DONTWAIT, |py, handle| options::set_bytes(py, handle, option, value))
    }

    /// Accepts connections at an address, zmq_bind(3).
    fn _bind(slf: &Bound<'_, Self>, address: &str) -> PyResult<()> {
        let py = slf.py();
        enter::call_detached(py, Self::handle(slf)?, Direction::Send, |socket| socket.bind(address))
    }

    /// Reports `events` to an inproc address in the form of version 3,
    /// zmq_socket_monitor_versioned(3). `None` stops the reports.
    fn _monitor(slf: &Bound<'_, Self>, address: Option<&str>, events: u64) -> PyResult<()> {
        on_handle(slf, "monitor", enter::DONTWAIT, |py, handle| {
            enter::call(py, handle, |socket| {
                socket.with(|socket| socket.monitor(address, events, 3, SocketType::Pair))
            })
        })
    }
}
