//! Functions of the module for the native API.

use std::ffi::c_int;

use pyo3::prelude::*;
use tautline_abi::zmq_ctx_set_ext;

use crate::context::Context;
use crate::{errors, frame};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_context_text, module)?)?;
    module.add_function(wrap_pyfunction!(frame::loan, module)?)
}

/// Sets an option of a context to a text, zmq_ctx_set_ext(3).
#[pyfunction]
fn set_context_text(
    py: Python<'_>,
    context: &Bound<'_, Context>,
    option: c_int,
    value: &str,
) -> PyResult<()> {
    let handle = context.get().open_handle()?;
    // SAFETY: a handle that `zmq_ctx_new` has returned, and the bytes of a text.
    let status = unsafe { zmq_ctx_set_ext(handle, option, value.as_ptr().cast(), value.len()) };
    if status < 0 { Err(errors::last(py)) } else { Ok(()) }
}
