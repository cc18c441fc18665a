//! Errors of the native API: the exceptions of `tautline_zmq.errors`, which name the method and the
//! socket.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Returns `result`, with the error of the engine as an exception of `tautline_zmq.errors`. `waits`
/// is true if the method waits as long as the socket's options allow.
#[inline(always)]
pub(crate) fn named<T>(
    socket: &Bound<'_, PyAny>,
    method: &'static str,
    waits: bool,
    result: PyResult<T>,
) -> PyResult<T> {
    match result {
        Ok(value) => Ok(value),
        Err(error) => Err(convert(socket, method, waits, error)),
    }
}

/// Returns the exception that `tautline_zmq.errors.convert` makes. It returns other exceptions, such
/// as TypeError, unchanged.
#[cold]
fn convert(socket: &Bound<'_, PyAny>, method: &'static str, waits: bool, error: PyErr) -> PyErr {
    static CONVERT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = socket.py();
    let made = CONVERT
        .get_or_try_init(py, || py.import("tautline_zmq.errors")?.getattr("convert").map(Bound::unbind))
        .and_then(|convert| convert.bind(py).call1((error.value(py), method, socket, waits)));
    made.map_or_else(|fault| fault, PyErr::from_value)
}
