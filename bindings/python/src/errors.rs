//! Errors of the engine as exceptions of pyzmq: `ZMQError` and its subclasses `Again`,
//! `ContextTerminated` and `InterruptedSystemCall`.

use std::ffi::c_int;

use pyo3::exceptions::{PyBlockingIOError, PyOSError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use tautline_abi::native::Refusal;
use tautline_core::Error;

struct Classes {
    general: Py<PyAny>,
    again: Py<PyAny>,
    terminated: Py<PyAny>,
    interrupted: Py<PyAny>,
}

/// Returns the classes of pyzmq. `None` if the program has not imported pyzmq.
fn classes(py: Python<'_>) -> PyResult<Option<&Classes>> {
    static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
    if let Some(classes) = CLASSES.get(py) {
        return Ok(Some(classes));
    }
    if !py.import("sys")?.getattr("modules")?.contains("zmq.error")? {
        return Ok(None);
    }
    let made = CLASSES.get_or_try_init(py, || -> PyResult<_> {
        let module = py.import("zmq.error")?;
        Ok(Classes {
            general: module.getattr("ZMQError")?.unbind(),
            again: module.getattr("Again")?.unbind(),
            terminated: module.getattr("ContextTerminated")?.unbind(),
            interrupted: module.getattr("InterruptedSystemCall")?.unbind(),
        })
    })?;
    Ok(Some(made))
}

/// Returns the exception for an error of the engine, and stores its number for `zmq_errno`.
#[cold]
pub(crate) fn exception(py: Python<'_>, error: Error) -> PyErr {
    from_errno(py, error.errno())
}

/// Returns the exception for the error number that the last C function of this thread has set.
#[cold]
pub(crate) fn last(py: Python<'_>) -> PyErr {
    from_errno(py, tautline_abi::zmq_errno())
}

/// Returns the exception for an error number: an OSError without pyzmq. The native API replaces
/// both kinds by its own.
#[cold]
pub(crate) fn from_errno(py: Python<'_>, number: c_int) -> PyErr {
    let made = classes(py).and_then(|classes| {
        let Some(classes) = classes else {
            return Ok(PyOSError::new_err((number, "error of the engine")));
        };
        let class = match number {
            number if number == Error::Again.errno() => &classes.again,
            number if number == Error::Terminated.errno() => &classes.terminated,
            number if number == Error::Interrupted.errno() => &classes.interrupted,
            _ => &classes.general,
        };
        class.bind(py).call1((number,)).map(PyErr::from_value)
    });
    let made = made.unwrap_or_else(|fault| fault);
    set_errno(number);
    made
}

/// Returns a `ZMQError` with this text.
#[cold]
pub(crate) fn with_text(py: Python<'_>, text: &str) -> PyErr {
    let make = || {
        let arguments = PyDict::new(py);
        arguments.set_item("msg", text)?;
        match classes(py)? {
            Some(classes) => classes.general.bind(py).call((), Some(&arguments)).map(PyErr::from_value),
            None => Ok(PyOSError::new_err(text.to_owned())),
        }
    };
    make().unwrap_or_else(|fault| fault)
}

/// Lets Python's signal handlers run, and then returns their exception, or else that of `error`.
#[cold]
pub(crate) fn after_signals(py: Python<'_>, error: Error) -> PyErr {
    match py.check_signals() {
        Ok(()) => exception(py, error),
        Err(raised) => raised,
    }
}

/// Returns the error of a socket that cannot be entered.
pub(crate) fn of_refusal(_refusal: Refusal) -> Error {
    Error::NotSocket
}

/// Stores the number that `zmq_errno` returns in this thread.
fn set_errno(number: c_int) {
    tautline_abi::native::set_errno(number);
}

/// True if an exception says that the call would block.
pub(crate) fn is_again(py: Python<'_>, error: &PyErr) -> bool {
    match classes(py) {
        Ok(Some(classes)) => error.matches(py, classes.again.bind(py)).unwrap_or(false),
        // The value, because OSError chooses this class by the number when it makes the value.
        _ => error.value(py).is_instance_of::<PyBlockingIOError>(),
    }
}
