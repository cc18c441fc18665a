//! `Context`: the base class of `zmq.Context`.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};
use tautline_abi::native::SocketHandle;
use tautline_abi::{zmq_ctx_get, zmq_ctx_new, zmq_ctx_set, zmq_ctx_term, zmq_errno};
use tautline_core::Error;

use crate::errors;

/// ZMQ_IO_THREADS.
const IO_THREADS: c_int = 1;

/// The addresses of all contexts that this module has made. A closed one stays readable.
fn made() -> MutexGuard<'static, BTreeSet<usize>> {
    static MADE: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handle of a context, which the constructor sets.
struct Opened {
    /// An address of `made`.
    address: usize,
    process: u32,
}

impl Opened {
    fn handle(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.address)
    }
}

/// A ZeroMQ context. Several objects may refer to one context (`shadow`).
#[pyclass(subclass, frozen, weakref, module = "tautline_zmq._native")]
pub(crate) struct Context {
    opened: OnceLock<Opened>,
    // Relaxed: only a hint; the handle itself tells whether the context exists.
    closed: AtomicBool,
}

impl Context {
    /// Opens a socket.
    pub(crate) fn socket(&self, socket_type: c_int) -> Result<SocketHandle, Error> {
        let opened = self.opened.get().filter(|_| !self.closed.load(Ordering::Relaxed));
        let opened = opened.ok_or(Error::Fault)?;
        // SAFETY: an address of `made`, which `zmq_ctx_new` has returned.
        unsafe { SocketHandle::open(opened.handle(), socket_type) }
    }

    /// Returns the handle. RuntimeError if the context is terminated.
    pub(crate) fn open_handle(&self) -> PyResult<*mut c_void> {
        match self.opened.get() {
            Some(opened) if !self.closed.load(Ordering::Relaxed) => Ok(opened.handle()),
            _ => Err(PyRuntimeError::new_err("Context has been destroyed")),
        }
    }
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Context {
        Context { opened: OnceLock::new(), closed: AtomicBool::new(false) }
    }

    /// Makes a context, or refers to the one with the address `shadow`.
    #[pyo3(signature = (io_threads = 1, shadow = 0))]
    fn __init__(&self, py: Python<'_>, io_threads: c_int, shadow: usize) -> PyResult<()> {
        if self.opened.get().is_some() {
            return Err(PyRuntimeError::new_err("Context is initialised already"));
        }
        let address = if shadow != 0 {
            if !made().contains(&shadow) {
                return Err(errors::exception(py, Error::Fault));
            }
            shadow
        } else {
            let handle = zmq_ctx_new();
            if handle.is_null() {
                return Err(errors::last(py));
            }
            // SAFETY: a context that was just made.
            if unsafe { zmq_ctx_set(handle, IO_THREADS, io_threads) } < 0 {
                let error = errors::last(py);
                // SAFETY: as above. It has no sockets, so this does not wait.
                unsafe { zmq_ctx_term(handle) };
                return Err(error);
            }
            let address = handle.expose_provenance();
            made().insert(address);
            address
        };
        if self.opened.set(Opened { address, process: std::process::id() }).is_err() {
            // Another thread was faster.
            if shadow == 0 {
                // SAFETY: a context that this function has made. It has no sockets.
                unsafe { zmq_ctx_term(std::ptr::with_exposed_provenance_mut(address)) };
            }
            return Err(PyRuntimeError::new_err("Context is initialised already"));
        }
        Ok(())
    }

    /// The address of the context; 0 if it is terminated.
    #[getter]
    fn underlying(&self) -> usize {
        self.opened.get().filter(|_| !self.closed.load(Ordering::Relaxed)).map_or(0, |opened| opened.address)
    }

    /// True if the context is terminated.
    #[getter]
    fn closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Terminates the context, zmq_ctx_term(3). Waits until all of its sockets are closed.
    fn term(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(opened) = self.opened.get()
            && !self.closed.load(Ordering::Relaxed)
            && opened.process == std::process::id()
        {
            let address = opened.address;
            let number = py.detach(|| {
                // SAFETY: an address of `made`, which `zmq_ctx_new` has returned.
                let status = unsafe { zmq_ctx_term(std::ptr::with_exposed_provenance_mut(address)) };
                if status < 0 { zmq_errno() } else { 0 }
            });
            if number != 0 {
                py.check_signals()?;
                // As in pyzmq, an interrupted call is not repeated. EFAULT: another thread has
                // terminated the context.
                if number != Error::Interrupted.errno() && number != Error::Fault.errno() {
                    return Err(errors::from_errno(py, number));
                }
            }
        }
        self.closed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Terminates the context in a separate thread. A finalizer must not wait for the sockets of the
    /// context, because their finalizers may follow in the same thread.
    fn _term_in_background(&self) {
        let Some(opened) = self.opened.get() else { return };
        if opened.process != std::process::id() || self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let address = opened.address;
        let term = move || loop {
            // SAFETY: an address of `made`, which `zmq_ctx_new` has returned.
            let status = unsafe { zmq_ctx_term(std::ptr::with_exposed_provenance_mut(address)) };
            if status == 0 || zmq_errno() != Error::Interrupted.errno() {
                return;
            }
        };
        // Without memory for a thread, the context leaks.
        let _ = thread::Builder::new().name("tautline-term".into()).spawn(term);
    }

    /// Sets an option of the context, zmq_ctx_set(3).
    fn set(&self, py: Python<'_>, option: c_int, optval: &Bound<'_, PyAny>) -> PyResult<()> {
        let handle = self.open_handle()?;
        if !optval.is_instance_of::<PyInt>() {
            return Err(PyTypeError::new_err(format!("expected int, got: {}", optval.repr()?)));
        }
        let value: c_int = optval.extract()?;
        // SAFETY: an address of `made`, which `zmq_ctx_new` has returned.
        if unsafe { zmq_ctx_set(handle, option, value) } < 0 { Err(errors::last(py)) } else { Ok(()) }
    }

    /// Returns the value of an option of the context, zmq_ctx_get(3).
    fn get(&self, py: Python<'_>, option: c_int) -> PyResult<c_int> {
        let handle = self.open_handle()?;
        // SAFETY: as in `set`.
        let value = unsafe { zmq_ctx_get(handle, option) };
        if value < 0 { Err(errors::last(py)) } else { Ok(value) }
    }
}
