//! Options of a socket: the type of each option, and reading and writing it.

use std::ffi::c_int;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};
use tautline_abi::native::{EnteredSocket, SocketHandle, WAIT_PEERS, WAIT_SUBSCRIPTIONS};

use crate::enter::{self, Direction};

/// ZMQ_ROUTING_ID.
const ROUTING_ID: c_int = 5;
/// ZMQ_EVENTS.
#[cfg(target_os = "linux")]
const EVENTS: c_int = 15;
/// Room for a value of bytes, as in pyzmq.
const ROOM: usize = 255;

/// Type of an option's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionType {
    Int,
    Int64,
    Bytes,
}

/// Returns the type that `zmq.constants.SocketOption` gives an option. Options that pyzmq does not
/// know are ints.
fn option_type(option: c_int) -> OptionType {
    match option {
        4 | 22 | 85..=87 => OptionType::Int64,
        5..=7 | 32 | 38 | 45 | 46 | 48..=50 | 55 | 61 | 63 | 64 | 68 | 72 | 92 | 95 => OptionType::Bytes,
        99 | 100 | 103..=106 | 110 | 111 | 114 => OptionType::Bytes,
        _ => OptionType::Int,
    }
}

/// Sets an option, zmq_setsockopt(3).
pub(crate) fn set(
    py: Python<'_>,
    handle: SocketHandle,
    option: c_int,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if value.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("unicode not allowed, use setsockopt_string"));
    }
    let expected = option_type(option);
    if expected == OptionType::Bytes {
        let Ok(bytes) = value.cast::<PyBytes>() else {
            return Err(PyTypeError::new_err(format!("expected bytes, got: {}", value.repr()?)));
        };
        return set_bytes(py, handle, option, bytes.as_bytes());
    }
    if !value.is_instance_of::<PyInt>() {
        return Err(PyTypeError::new_err(format!("expected int, got: {}", value.repr()?)));
    }
    if expected == OptionType::Int64 {
        set_bytes(py, handle, option, &value.extract::<i64>()?.to_ne_bytes())
    } else {
        set_bytes(py, handle, option, &value.extract::<c_int>()?.to_ne_bytes())
    }
}

/// Sets an option to bytes. Releases the interpreter lock if the option waits.
pub(crate) fn set_bytes(py: Python<'_>, handle: SocketHandle, option: c_int, value: &[u8]) -> PyResult<()> {
    if matches!(option, WAIT_PEERS | WAIT_SUBSCRIPTIONS) {
        let wait = |socket: &mut EnteredSocket<'_>| socket.wait_by_option(option, value);
        return enter::call_detached(py, handle, Direction::Send, wait);
    }
    enter::call(py, handle, |socket| socket.with(|socket| socket.set_option(option, value)))
}

/// Returns the value of an option, zmq_getsockopt(3).
pub(crate) fn get(py: Python<'_>, handle: SocketHandle, option: c_int) -> PyResult<Py<PyAny>> {
    match option_type(option) {
        OptionType::Bytes => {
            let mut value = [0; ROOM];
            let len =
                enter::call(py, handle, |socket| socket.with(|socket| socket.option(option, &mut value)))?;
            let mut bytes = &value[..len.min(ROOM)];
            // Texts have a NUL at the end, which is cut. The bytes of a routing id are all kept.
            if option != ROUTING_ID && bytes.last() == Some(&0) {
                bytes = &bytes[..bytes.len() - 1];
            }
            Ok(PyBytes::new(py, bytes).into_any().unbind())
        }
        OptionType::Int64 => {
            let mut value = [0; 8];
            enter::call(py, handle, |socket| socket.with(|socket| socket.option(option, &mut value)))?;
            i64::from_ne_bytes(value).into_py_any(py)
        }
        OptionType::Int => int(py, handle, option)?.into_py_any(py),
    }
}

/// Returns the value of an option that is an int.
pub(crate) fn int(py: Python<'_>, handle: SocketHandle, option: c_int) -> PyResult<c_int> {
    let mut value = [0; 4];
    enter::call(py, handle, |socket| socket.with(|socket| socket.option(option, &mut value)))?;
    let value = c_int::from_ne_bytes(value);
    #[cfg(target_os = "linux")]
    if option == EVENTS && value != 0 {
        // The call has taken the wake-up of an event loop.
        crate::readiness::notify(handle);
    }
    Ok(value)
}
