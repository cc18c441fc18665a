//! `Socket`: the base class of `zmq.Socket`.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use pyo3::{IntoPyObjectExt, PyTraverseError};
use tautline_abi::native::{EndpointKind, SocketHandle};
use tautline_core::{Error, SocketType};

use crate::context::Context;
use crate::draft::{self, DraftPoller};
use crate::functions::IPC_PATH_MAX_LEN;
use crate::{batch, enter, errors, options, transfer};

/// Version of the events of `monitor`.
const MONITOR_VERSION: c_int = 1;

/// A ZeroMQ socket. Several objects may refer to one socket (`shadow`).
#[pyclass(subclass, frozen, weakref, module = "tautline_zmq._native")]
pub(crate) struct Socket {
    opened: OnceLock<Opened>,
    // Relaxed: only a hint; the handle itself tells whether the socket is open.
    closed: AtomicBool,
    // Relaxed: own: a number that only this object uses.
    copy_threshold: AtomicI32,
    /// The attribute `context`. No call of Python is made while it is locked.
    context: Mutex<Option<Py<PyAny>>>,
    /// Gives a draft socket a descriptor. Made when the program asks for it.
    draft_poller: Mutex<Option<Arc<DraftPoller>>>,
    /// True if the class overrides a method that `send_multipart` or `recv_multipart` of pyzmq calls.
    calls_python: bool,
}

/// The socket, which the constructor sets.
struct Opened {
    handle: SocketHandle,
    process: u32,
}

impl Socket {
    /// Returns an object without a socket, for `__init__`.
    pub(crate) fn unopened(calls_python: bool) -> Socket {
        Socket {
            opened: OnceLock::new(),
            closed: AtomicBool::new(false),
            copy_threshold: AtomicI32::new(0),
            context: Mutex::new(None),
            draft_poller: Mutex::new(None),
            calls_python,
        }
    }

    /// Returns the handle. ENOTSOCK if the socket is closed.
    #[inline(always)]
    pub(crate) fn handle(&self, py: Python<'_>) -> PyResult<SocketHandle> {
        match self.opened.get() {
            Some(opened) if !self.closed.load(Ordering::Relaxed) => Ok(opened.handle),
            _ => Err(errors::exception(py, Error::NotSocket)),
        }
    }

    /// Returns the attribute `copy_threshold`.
    pub(crate) fn copy_threshold(&self) -> usize {
        usize::try_from(self.copy_threshold.load(Ordering::Relaxed)).unwrap_or(0)
    }

    fn context_place(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.context.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace_context(&self, context: Option<Py<PyAny>>) {
        // The lock is released before the old context is dropped, which may call Python.
        let old = std::mem::replace(&mut *self.context_place(), context);
        drop(old);
    }

    fn draft_place(&self) -> MutexGuard<'_, Option<Arc<DraftPoller>>> {
        self.draft_poller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns ZMQ_FD of a draft socket. If the option is ZMQ_EVENTS, clears that descriptor.
    fn draft_fd(&self, py: Python<'_>, socket: SocketHandle, option: c_int) -> PyResult<Option<c_int>> {
        // The calls below may wait for the socket, so the lock is released before.
        let known = self.draft_place().clone();
        if option == draft::EVENTS {
            if let Some(poller) = known {
                poller.drain(py);
            }
            return Ok(None);
        }
        let poller = match known {
            Some(poller) => poller,
            None => {
                let made = Arc::new(DraftPoller::new(py, socket)?);
                self.draft_place().get_or_insert_with(|| made.clone()).clone()
            }
        };
        poller.fd(py).map(Some)
    }

    fn end(&self, py: Python<'_>, addr: &Bound<'_, PyAny>, kind: EndpointKind) -> PyResult<()> {
        let endpoint = endpoint(py, addr)?;
        enter::call_detached(py, self.handle(py)?, enter::Direction::Send, |socket| {
            socket.end(&endpoint, kind)
        })
    }
}

#[pymethods]
impl Socket {
    /// Set to true by classes that override a method which pyzmq's versions of `send_multipart` and
    /// `recv_multipart` call. These versions are then attributes of the class, with the names below.
    #[classattr]
    const _CALLS_PYTHON: bool = false;

    #[new]
    #[classmethod]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(
        class: &Bound<'_, PyType>,
        _arguments: &Bound<'_, PyTuple>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Socket> {
        let calls_python = class.getattr(intern!(class.py(), "_CALLS_PYTHON"))?.is_truthy()?;
        Ok(Socket::unopened(calls_python))
    }

    /// Opens a socket in a context, or refers to the one with the address `shadow`.
    #[pyo3(signature = (context = None, socket_type = -1, shadow = 0, copy_threshold = None))]
    fn __init__(
        &self,
        py: Python<'_>,
        context: Option<Bound<'_, PyAny>>,
        socket_type: c_int,
        shadow: usize,
        copy_threshold: Option<c_int>,
    ) -> PyResult<()> {
        if self.opened.get().is_some() {
            return Err(PyRuntimeError::new_err("Socket is initialised already"));
        }
        let copy_threshold = match copy_threshold {
            Some(threshold) => threshold,
            None => py.import("zmq")?.getattr("COPY_THRESHOLD")?.extract::<Option<c_int>>()?.unwrap_or(0),
        };
        self.copy_threshold.store(copy_threshold, Ordering::Relaxed);
        let handle = if shadow != 0 {
            SocketHandle::at(shadow).ok_or_else(|| errors::exception(py, Error::NotSocket))?
        } else {
            let Some(context) = &context else {
                return Err(PyTypeError::new_err("context must be specified"));
            };
            if socket_type < 0 {
                return Err(PyTypeError::new_err("socket_type must be specified"));
            }
            let native = context.cast::<Context>()?.get();
            native.socket(socket_type).map_err(|error| errors::exception(py, error))?
        };
        if self.opened.set(Opened { handle, process: std::process::id() }).is_err() {
            // Another thread was faster.
            if shadow == 0 {
                let _ = handle.close(Some(0));
            }
            return Err(PyRuntimeError::new_err("Socket is initialised already"));
        }
        self.replace_context(context.map(Bound::unbind));
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // If the lock is held, the objects count as reachable this time.
        match self.context.try_lock() {
            Ok(context) => visit.call(&*context),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        self.replace_context(None);
    }

    /// The address of the socket; 0 if it is closed.
    #[getter]
    fn underlying(&self) -> usize {
        let opened = self.opened.get().filter(|_| !self.closed.load(Ordering::Relaxed));
        opened.map_or(0, |opened| opened.handle.address())
    }

    #[getter]
    fn _closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    #[setter(_closed)]
    fn set_closed(&self, closed: bool) {
        self.closed.store(closed, Ordering::Relaxed);
    }

    /// True if the socket is closed, by this or by another object.
    #[getter]
    fn closed(&self) -> bool {
        let Some(opened) = self.opened.get() else { return true };
        // A child does not close the sockets of its parent.
        if !opened.handle.is_open() && opened.process == std::process::id() {
            self.closed.store(true, Ordering::Relaxed);
        }
        self.closed.load(Ordering::Relaxed)
    }

    /// Size in bytes from which messages are sent without a copy if `copy` is false.
    #[getter(copy_threshold)]
    fn py_copy_threshold(&self) -> c_int {
        self.copy_threshold.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_copy_threshold(&self, threshold: c_int) {
        self.copy_threshold.store(threshold, Ordering::Relaxed);
    }

    /// The context of the socket.
    #[getter]
    fn context(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.context_place().as_ref().map(|context| context.clone_ref(py))
    }

    #[setter]
    fn set_context(&self, context: Option<Py<PyAny>>) {
        self.replace_context(context);
    }

    /// Closes the socket, zmq_close(3). `linger` replaces the option ZMQ_LINGER.
    #[pyo3(signature = (linger = None))]
    fn close(&self, py: Python<'_>, linger: Option<c_int>) -> PyResult<()> {
        let Some(opened) = self.opened.get() else { return Ok(()) };
        if opened.process != std::process::id() || self.closed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let handle = opened.handle;
        let poller = self.draft_place().take();
        drop(poller);
        match py.detach(|| handle.close(linger)) {
            // Another object, or the context, has closed it.
            Ok(()) | Err(Error::NotSocket) => Ok(()),
            Err(error) => Err(errors::after_signals(py, error)),
        }
    }

    /// Sets an option, zmq_setsockopt(3).
    fn set(&self, py: Python<'_>, option: c_int, optval: &Bound<'_, PyAny>) -> PyResult<()> {
        options::set(py, self.handle(py)?, option, optval)
    }

    /// Returns the value of an option, zmq_getsockopt(3).
    fn get(&self, py: Python<'_>, option: c_int) -> PyResult<Py<PyAny>> {
        let handle = self.handle(py)?;
        if matches!(option, draft::FD | draft::EVENTS)
            && handle.is_shared()
            && let Some(number) = self.draft_fd(py, handle, option)?
        {
            return number.into_py_any(py);
        }
        options::get(py, handle, option)
    }

    /// Accepts connections at an address, zmq_bind(3).
    fn bind(&self, py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<()> {
        let endpoint = endpoint(py, addr)?;
        let path = || endpoint.split_once("://").map_or(&*endpoint, |(_, path)| path);
        match enter::attempt_detached(py, self.handle(py)?, enter::Direction::Send, |socket| {
            socket.bind(&endpoint)
        })? {
            Ok(()) => Ok(()),
            Err(error) if error.errno() == Error::NameTooLong.errno() => Err(errors::with_text(
                py,
                &format!(
                    "ipc path \"{}\" is longer than {IPC_PATH_MAX_LEN} characters \
                     (sizeof(sockaddr_un.sun_path)). zmq.IPC_PATH_MAX_LEN constant can be used to check \
                     addr length (if it is defined).",
                    path()
                ),
            )),
            Err(error) if error.errno() == Error::NoEntry.errno() => {
                Err(errors::with_text(py, &format!("No such file or directory for ipc path \"{}\".", path())))
            }
            Err(error) => Err(errors::after_signals(py, error)),
        }
    }

    /// Connects to an address, and reconnects when the connection is lost, zmq_connect(3).
    fn connect(&self, py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<()> {
        let endpoint = endpoint(py, addr)?;
        enter::call_detached(py, self.handle(py)?, enter::Direction::Send, |socket| {
            socket.with(|socket| socket.connect(&endpoint))
        })
    }

    /// Stops accepting connections at an address, zmq_unbind(3).
    fn unbind(&self, py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<()> {
        self.end(py, addr, EndpointKind::Bound)
    }

    /// Closes the connection to an address, zmq_disconnect(3).
    fn disconnect(&self, py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<()> {
        self.end(py, addr, EndpointKind::Connected)
    }

    /// Reports events of the connections to an inproc address, zmq_socket_monitor(3). `None` stops
    /// the reports.
    #[pyo3(signature = (addr, events = 0xffff))]
    fn monitor(&self, py: Python<'_>, addr: Option<&Bound<'_, PyAny>>, events: c_int) -> PyResult<()> {
        let endpoint = addr.map(|addr| endpoint(py, addr)).transpose()?;
        let events = i64::from(events).cast_unsigned();
        enter::call(py, self.handle(py)?, |socket| {
            socket
                .with(|socket| socket.monitor(endpoint.as_deref(), events, MONITOR_VERSION, SocketType::Pair))
        })
    }

    /// Joins a group of a DISH, zmq_join(3).
    fn join(&self, py: Python<'_>, group: &Bound<'_, PyAny>) -> PyResult<()> {
        let group = name(group)?;
        enter::call(py, self.handle(py)?, |socket| socket.with(|socket| socket.join(&group)))
    }

    /// Leaves a group of a DISH, zmq_leave(3).
    fn leave(&self, py: Python<'_>, group: &Bound<'_, PyAny>) -> PyResult<()> {
        let group = name(group)?;
        enter::call(py, self.handle(py)?, |socket| socket.with(|socket| socket.leave(&group)))
    }

    /// Sends one part of a message. Returns a `MessageTracker` if the memory of `data` is used
    /// without a copy and `track` is true.
    #[pyo3(signature = (data, flags = 0, copy = true, track = false, routing_id = None, group = None))]
    #[expect(clippy::too_many_arguments, reason = "the arguments of zmq.Socket.send")]
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        flags: c_int,
        copy: bool,
        track: bool,
        routing_id: Option<&Bound<'_, PyAny>>,
        group: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let handle = self.handle(py)?;
        if copy
            && routing_id.is_none()
            && group.is_none()
            && let Ok(bytes) = data.cast_exact::<PyBytes>()
        {
            transfer::send_slice(py, handle, bytes.as_bytes(), flags)?;
            return Ok(None);
        }
        let way = transfer::Way { copy, track, copy_threshold: self.copy_threshold() };
        if routing_id.is_some() || group.is_some() {
            return transfer::send_addressed(py, handle, data, flags, way, routing_id, group);
        }
        transfer::send(py, handle, data, flags, way)
    }

    /// Receives one part of a message: `bytes`, or a `zmq.Frame` if `copy` is false.
    #[pyo3(signature = (flags = 0, copy = true, track = false))]
    fn recv(&self, py: Python<'_>, flags: c_int, copy: bool, track: bool) -> PyResult<Py<PyAny>> {
        let handle = self.handle(py)?;
        if copy { transfer::recv(py, handle, flags) } else { transfer::recv_frame(py, handle, flags, track) }
    }

    /// Receives one part of a message into a buffer, and returns the length of the part. The bytes
    /// that do not fit are lost.
    #[pyo3(signature = (buffer, /, *, nbytes = 0, flags = 0))]
    fn recv_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        nbytes: isize,
        flags: c_int,
    ) -> PyResult<usize> {
        let handle = self.handle(py)?;
        let Ok(room) = usize::try_from(nbytes) else {
            return Err(PyValueError::new_err(format!("nbytes={nbytes} must be non-negative")));
        };
        transfer::recv_into(py, handle, buffer, room, flags)
    }

    /// Sends the parts of a message.
    #[pyo3(signature = (msg_parts, flags = 0, copy = true, track = false, **_keywords))]
    fn send_multipart(
        slf: &Bound<'_, Self>,
        msg_parts: &Bound<'_, PyAny>,
        flags: c_int,
        copy: bool,
        track: bool,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (py, socket) = (slf.py(), slf.get());
        if socket.calls_python {
            let method = intern!(py, "_python_send_multipart");
            return Ok(Some(slf.call_method1(method, (msg_parts, flags, copy, track))?.unbind()));
        }
        let way = transfer::Way { copy, track, copy_threshold: socket.copy_threshold() };
        transfer::send_multipart(py, socket.handle(py)?, msg_parts, flags, way)
    }

    /// Receives a message, and returns the list of its parts.
    #[pyo3(signature = (flags = 0, copy = true, track = false))]
    fn recv_multipart(slf: &Bound<'_, Self>, flags: c_int, copy: bool, track: bool) -> PyResult<Py<PyAny>> {
        let (py, socket) = (slf.py(), slf.get());
        if socket.calls_python {
            let method = intern!(py, "_python_recv_multipart");
            return Ok(slf.call_method1(method, (flags, copy, track))?.unbind());
        }
        let handle = socket.handle(py)?;
        if copy {
            transfer::recv_multipart(py, handle, flags)
        } else {
            transfer::recv_frames(py, handle, flags, track)
        }
    }

    /// Sends each item of an iterable as one message: an object with a buffer as a message of one
    /// part, a list or tuple of such objects as a message of several parts. Returns the number of
    /// sent messages. It is less than their number if no peer has room, with DONTWAIT in `flags` or
    /// after ZMQ_SNDTIMEO.
    #[pyo3(signature = (messages, flags = 0))]
    fn send_many(&self, py: Python<'_>, messages: &Bound<'_, PyAny>, flags: c_int) -> PyResult<usize> {
        batch::send_many(py, self.handle(py)?, messages, flags)
    }

    /// Waits for a message, and then takes the other messages that have arrived, up to `max`. Returns
    /// a list: `bytes` for a message of one part, a list of `bytes` for a message of several parts.
    #[pyo3(signature = (max = 1000, flags = 0))]
    fn recv_many(&self, py: Python<'_>, max: usize, flags: c_int) -> PyResult<Py<PyAny>> {
        batch::recv_many(py, self.handle(py)?, max, flags)
    }

    /// Like `recv_many`, but never waits. Returns an empty list if no message has arrived.
    #[pyo3(signature = (max = 1000))]
    fn recv_batch(&self, py: Python<'_>, max: usize) -> PyResult<Py<PyAny>> {
        batch::recv_batch(py, self.handle(py)?, max)
    }

    /// Receives one part as `bytes`, without waiting. Returns `None` if no message has arrived.
    fn _try_recv(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        transfer::try_recv(py, self.handle(py)?)
    }

    /// Receives a message as a list of `bytes`, without waiting. Returns `None` if no message has
    /// arrived.
    fn _try_recv_multipart(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        transfer::try_recv_multipart(py, self.handle(py)?)
    }

    /// Sends a copy of `data` as one part, without waiting. Returns false if no peer has room.
    #[pyo3(signature = (data, flags = 0))]
    fn _try_send(&self, py: Python<'_>, data: &Bound<'_, PyAny>, flags: c_int) -> PyResult<bool> {
        transfer::try_send(py, self.handle(py)?, data, flags)
    }
}

/// Returns an address, which is a str or UTF-8 bytes.
fn endpoint(py: Python<'_>, addr: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = addr.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    let Ok(bytes) = addr.cast::<PyBytes>() else {
        return Err(PyTypeError::new_err(format!("Expected addr to be str, got addr={}", addr.repr()?)));
    };
    let text = str::from_utf8(bytes.as_bytes()).map_err(|_| errors::exception(py, Error::Invalid))?;
    Ok(text.to_owned())
}

/// Returns a name, which is a str or bytes.
pub(crate) fn name(name: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = name.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    match name.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes().to_vec()),
        Err(_) => Err(PyTypeError::new_err(format!("expected str, got: {}", name.repr()?))),
    }
}
