//! `Frame`: the base class of `zmq.Frame`, one part of a message in the hands of Python.

use std::ffi::{CString, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyBytes, PyDict, PyInt, PyMemoryView, PyString, PyTuple, PyType, PyWeakrefReference};
use pyo3::{IntoPyObjectExt, PyTraverseError, ffi};
use tautline_core::{Error, Message, message};

use crate::buffer::Buffer;
use crate::{dlpack, errors, owned, reaper, socket, transfer};

/// ZMQ_MORE, ZMQ_SRCFD and ZMQ_SHARED.
const MORE: c_int = 1;
const SRCFD: c_int = 2;
const SHARED: c_int = 3;
/// ZMQ_TAUTLINE_IS_LOAN.
const IS_LOAN: c_int = 0x5441_0012;

/// A part of a message.
#[pyclass(subclass, frozen, weakref, module = "tautline_zmq._native")]
pub(crate) struct Frame(Mutex<State>);

/// Content of a frame. No call of Python is made while it is locked.
#[derive(Default)]
struct State {
    message: Message,
    /// True if Python has, or had, an address of the message's body. The body then stays.
    exported: bool,
    more: bool,
    /// True if the body is the memory of an object that does not allow writing, or of a sender in
    /// this process, or of other receivers of the message.
    read_only: bool,
    /// True if [`loan`] has made the frame. Its body may be written unless it is in use elsewhere.
    loan: bool,
    /// The object that the frame was made of.
    data: Option<Py<PyAny>>,
    /// The body as `bytes`, from the first request on.
    bytes: Option<Py<PyBytes>>,
    /// Weak reference to the last memoryview of the body.
    view: Option<Py<PyWeakrefReference>>,
    tracker: Option<Py<PyAny>>,
    tracker_event: Option<Py<PyAny>>,
}

impl State {
    /// True if a new view must not write to the body.
    fn is_read_only(&self) -> bool {
        self.read_only || (self.loan && message::is_in_use(&self.message))
    }

    /// Marks the body as used by Python, and returns it. A received loan becomes writable memory of
    /// this process: programs may write to what they have received.
    fn export(&mut self) -> Result<Body, Error> {
        self.message.expose().map_err(|_| Error::NoMemory)?;
        self.exported = true;
        Ok(Body { data: self.message.data_ptr(), len: self.message.len(), read_only: self.is_read_only() })
    }
}

/// The body of a frame, which stays at its address while the frame lives: the frame itself does not
/// move, and the mark `exported` keeps the message from being replaced. `share`, the only other
/// change of the message, leaves the body where it is.
pub(crate) struct Body {
    pub(crate) data: *mut u8,
    pub(crate) len: usize,
    pub(crate) read_only: bool,
}

/// A `MessageTracker` and its event.
pub(crate) struct Tracking {
    pub(crate) tracker: Py<PyAny>,
    pub(crate) event: Py<PyAny>,
}

impl Tracking {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Tracking> {
        static CLASSES: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
        let (event, tracker) = CLASSES.get_or_try_init(py, || -> PyResult<_> {
            let event = py.import("threading")?.getattr("Event")?.unbind();
            Ok((event, py.import("zmq")?.getattr("MessageTracker")?.unbind()))
        })?;
        let event = event.call0(py)?;
        Ok(Tracking { tracker: tracker.call1(py, (event.clone_ref(py),))?, event })
    }

    /// Returns a tracker that is done.
    pub(crate) fn finished(py: Python<'_>) -> PyResult<Py<PyAny>> {
        static TRACKER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let tracker = TRACKER
            .get_or_try_init(py, || py.import("zmq")?.getattr("_FINISHED_TRACKER").map(Bound::unbind))?;
        Ok(tracker.clone_ref(py))
    }
}

impl Frame {
    fn state(&self) -> MutexGuard<'_, State> {
        match self.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poison)) => poison.into_inner(),
            // The holder may make `bytes`, so this thread waits without the interpreter.
            Err(TryLockError::WouldBlock) => {
                Python::attach(|py| self.0.lock_py_attached(py)).unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    /// Replaces the content of a frame whose body Python does not use.
    fn replace(&self, new: State) -> PyResult<()> {
        let old = {
            let mut state = self.state();
            if state.exported {
                return Err(PyBufferError::new_err("the frame is in use"));
            }
            std::mem::replace(&mut *state, new)
        };
        drop(old);
        Ok(())
    }

    /// Returns a frame with the content of an object; see `__init__`.
    pub(crate) fn made_of(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        track: bool,
        copy: Option<bool>,
        copy_threshold: usize,
    ) -> PyResult<Frame> {
        if data.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("Str objects not allowed. Only: bytes, buffer interfaces."));
        }
        let buffer = Buffer::of(data)?;
        let mut state = State { data: Some(data.clone().unbind()), ..State::default() };
        if copy.unwrap_or(buffer.len() < copy_threshold) {
            let copy = || Message::try_from_slice(buffer.as_slice());
            let copied = if buffer.len() > transfer::LARGE { py.detach(copy) } else { copy() };
            state.message = copied.ok_or_else(|| errors::exception(py, Error::NoMemory))?;
            if track {
                state.tracker = Some(Tracking::finished(py)?);
            }
        } else {
            let tracking = if track { Some(Tracking::new(py)?) } else { None };
            let event = tracking.as_ref().map(|tracking| tracking.event.clone_ref(py));
            state.read_only = buffer.is_read_only();
            state.message = reaper::lend(py, buffer, event);
            if let Some(Tracking { tracker, event }) = tracking {
                state.tracker = Some(tracker);
                state.tracker_event = Some(event);
            }
        }
        Ok(Frame(Mutex::new(state)))
    }

    /// Returns a frame of the plain class with a copy of the body.
    fn copied(&self, py: Python<'_>) -> PyResult<Frame> {
        let message = self.state().message.share();
        let copied = py.detach(|| Message::try_from_slice(message.as_slice()));
        let message = copied.ok_or_else(|| errors::exception(py, Error::NoMemory))?;
        Ok(Frame(Mutex::new(State { message, ..State::default() })))
    }

    /// Returns a second message with the same body, and the tracker of the frame.
    pub(crate) fn share(&self, py: Python<'_>) -> (Message, Option<Py<PyAny>>) {
        let mut state = self.state();
        (state.message.share(), state.tracker.as_ref().map(|tracker| tracker.clone_ref(py)))
    }

    /// Stores a received message in a new frame.
    pub(crate) fn receive(&self, message: Message) -> PyResult<()> {
        let mut state = self.state();
        if state.exported {
            return Err(PyBufferError::new_err("the frame is in use"));
        }
        state.more = message.more();
        // The memory of a sender in this process, or of other receivers.
        state.read_only = message.is_foreign() && !message.is_loan() || message.is_shared();
        state.message = message;
        Ok(())
    }

    pub(crate) fn set_routing_id(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let routing_id: u32 = value.extract()?;
        if routing_id == 0 {
            return Err(errors::exception(py, Error::Invalid));
        }
        self.state().message.set_routing_id(routing_id);
        Ok(())
    }

    pub(crate) fn set_group(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let group = socket::name(value)?;
        let known = self.state().message.set_group(&group);
        if known { Ok(()) } else { Err(errors::exception(py, Error::Invalid)) }
    }
}

#[pymethods]
impl Frame {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Frame {
        Frame(Mutex::default())
    }

    /// Makes a frame of an object with a buffer. The bytes are copied if `copy` is true, or if it is
    /// `None` and there are fewer than `copy_threshold`. Otherwise the frame refers to them.
    #[pyo3(signature = (data = None, track = false, copy = None, copy_threshold = None, **_keywords))]
    fn __init__(
        &self,
        py: Python<'_>,
        data: Option<&Bound<'_, PyAny>>,
        track: bool,
        copy: Option<bool>,
        copy_threshold: Option<usize>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let Some(data) = data else {
            if track {
                self.set_tracker(Some(Tracking::finished(py)?));
            }
            return Ok(());
        };
        let threshold = match (copy, copy_threshold) {
            (Some(_), _) => 0,
            (None, Some(threshold)) => threshold,
            (None, None) => {
                py.import("zmq")?.getattr("COPY_THRESHOLD")?.extract::<Option<usize>>()?.unwrap_or(0)
            }
        };
        let made = Frame::made_of(py, data, track, copy, threshold)?;
        self.replace(made.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // If the lock is held, the objects count as reachable this time.
        let Ok(state) = self.0.try_lock() else { return Ok(()) };
        visit.call(&state.data)?;
        visit.call(&state.tracker)?;
        visit.call(&state.tracker_event)
    }

    fn __clear__(&self) {
        let mut state = self.state();
        let taken = (state.data.take(), state.tracker.take(), state.tracker_event.take());
        drop(state);
        drop(taken);
    }

    /// Returns a frame with the same body, which is not copied.
    fn fast_copy(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let copy = slf.get_type().call0()?;
        let state = {
            let mut state = slf.get().state();
            State {
                message: state.message.share(),
                exported: false,
                more: state.more,
                read_only: state.read_only,
                loan: state.loan,
                data: state.data.as_ref().map(|data| data.clone_ref(py)),
                bytes: state.bytes.as_ref().map(|bytes| bytes.clone_ref(py)),
                view: None,
                tracker: state.tracker.as_ref().map(|tracker| tracker.clone_ref(py)),
                tracker_event: state.tracker_event.as_ref().map(|event| event.clone_ref(py)),
            }
        };
        copy.cast::<Frame>()?.get().replace(state)?;
        Ok(copy.unbind())
    }

    fn __copy__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Self::fast_copy(slf)
    }

    /// Fills `view` with the body. It may be written as in pyzmq, unless the memory belongs to another
    /// object, or to other receivers.
    ///
    /// # Safety
    /// `view` is null, or a `Py_buffer` to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        let body = slf.get().state().export();
        let Body { data, len, read_only } = body.map_err(|error| errors::exception(slf.py(), error))?;
        let (len, read_only) = (isize::try_from(len)?, c_int::from(read_only));
        // SAFETY: `view` is valid, guaranteed by the caller. It keeps a reference to the frame, so the
        // body stays where it is.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data.cast(), len, read_only, flags) };
        if filled < 0 { Err(PyErr::fetch(slf.py())) } else { Ok(()) }
    }

    /// Returns the body as a tensor of bytes. Its arguments are those of the array API.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() {
            return Err(PyBufferError::new_err("a frame has no stream"));
        }
        if dl_device.is_some_and(|device| device != dlpack::CPU) {
            return Err(PyBufferError::new_err("a frame is only on the CPU"));
        }
        let py = slf.py();
        let owner = match copy {
            Some(true) => Bound::new(py, slf.get().copied(py)?)?,
            _ => slf.clone(),
        };
        let body = owner.get().state().export();
        let body = body.map_err(|error| errors::exception(py, error))?;
        dlpack::capsule(owner, body, max_version.is_some_and(|version| version >= (1, 0)), copy == Some(true))
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    fn __len__(&self) -> usize {
        self.state().message.len()
    }

    /// A memoryview of the body.
    #[getter]
    fn buffer<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (known, read_only) = {
            let state = slf.get().state();
            (state.view.as_ref().map(|view| view.clone_ref(py)), state.is_read_only())
        };
        if let Some(view) = known
            && let Some(view) = pyo3::types::PyWeakrefMethods::upgrade(view.bind(py))
            // A released view has no attributes.
            && view.getattr(intern!(py, "readonly")).is_ok_and(|known| known.is_truthy().ok() == Some(read_only))
        {
            return Ok(view);
        }
        let view = PyMemoryView::from(slf)?;
        let reference = PyWeakrefReference::new(&view)?.unbind();
        let old = slf.get().state().view.replace(reference);
        drop(old);
        Ok(view.into_any())
    }

    /// A copy of the body, which is made once.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        let message = {
            let mut state = self.state();
            if state.bytes.is_none() && state.message.len() <= transfer::LARGE {
                // To make `bytes` runs no Python code.
                state.bytes = Some(PyBytes::new(py, state.message.as_slice()).unbind());
            }
            if let Some(bytes) = &state.bytes {
                return Ok(bytes.clone_ref(py));
            }
            state.message.share()
        };
        let bytes = transfer::bytes_of(py, &message)?.unbind();
        let mut state = self.state();
        Ok(state.bytes.get_or_insert(bytes).clone_ref(py))
    }

    /// True if more parts of the same message follow.
    #[getter]
    fn more(&self) -> bool {
        self.state().more
    }

    #[setter]
    fn set_more(&self, more: bool) {
        self.state().more = more;
    }

    /// The `MessageTracker` of the frame, or `None`.
    #[getter]
    fn tracker(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state().tracker.as_ref().map(|tracker| tracker.clone_ref(py))
    }

    #[setter]
    pub(crate) fn set_tracker(&self, tracker: Option<Py<PyAny>>) {
        let old = std::mem::replace(&mut self.state().tracker, tracker);
        drop(old);
    }

    /// The event of the tracker, or `None`.
    #[getter]
    fn tracker_event(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state().tracker_event.as_ref().map(|event| event.clone_ref(py))
    }

    #[setter]
    fn set_tracker_event(&self, event: Option<Py<PyAny>>) {
        let old = std::mem::replace(&mut self.state().tracker_event, event);
        drop(old);
    }

    /// Returns a property: `routing_id`, `group`, a number of zmq_msg_get(3), or a name of
    /// zmq_msg_gets(3).
    fn get(&self, py: Python<'_>, option: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let unknown = || errors::exception(py, Error::Invalid);
        if option.is_instance_of::<PyInt>() {
            let option: c_int = option.extract()?;
            let value = {
                let state = self.state();
                match option {
                    MORE => Some(c_int::from(state.message.more())),
                    SHARED => Some(c_int::from(state.message.is_shared())),
                    IS_LOAN => Some(c_int::from(state.message.is_loan())),
                    SRCFD => state.message.metadata().and_then(|metadata| metadata.source_fd()),
                    _ => None,
                }
            };
            return value.ok_or_else(unknown)?.into_py_any(py);
        }
        let name = String::from_utf8_lossy(&socket::name(option)?).into_owned();
        if name == "routing_id" {
            let routing_id = self.state().message.routing_id();
            return if routing_id == 0 { Err(unknown()) } else { routing_id.into_py_any(py) };
        }
        let value: Option<CString> = {
            let state = self.state();
            match name.as_str() {
                "group" => Some(state.message.group().to_owned()),
                name => tautline_abi::native::property(&state.message, name).map(ToOwned::to_owned),
            }
        };
        value.ok_or_else(unknown)?.to_string_lossy().into_py_any(py)
    }

    /// Sets `routing_id` or `group`.
    fn set(&self, py: Python<'_>, option: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if option.is_instance_of::<PyInt>() {
            // No property with a number can be set.
            let _: (c_int, c_int) = (option.extract()?, value.extract()?);
            return Err(errors::exception(py, Error::Invalid));
        }
        match &*socket::name(option)? {
            b"routing_id" => self.set_routing_id(py, value),
            b"group" => self.set_group(py, value),
            _ => Err(PyTypeError::new_err("an integer is required")),
        }
    }
}

/// Returns a frame of the class `kind` with `size` bytes, in memory that other processes can read in
/// place, if there is any. It may be written until it is sent.
#[pyfunction]
#[pyo3(signature = (kind, size, /))]
pub(crate) fn loan<'py>(kind: &Bound<'py, PyType>, size: i64) -> PyResult<Bound<'py, PyAny>> {
    let py = kind.py();
    let size = owned::count("size", size)?;
    let make = || message::loan(size);
    let made = if size > transfer::LARGE { py.detach(make) } else { make() };
    let message = made.ok_or_else(|| errors::exception(py, Error::NoMemory))?;
    let object = kind.call0()?;
    let state = State { message, loan: true, ..State::default() };
    object.cast::<Frame>()?.get().replace(state)?;
    Ok(object)
}
