//! The memory of Python objects that support the buffer protocol.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// The contiguous memory of an object, which stays where it is while this value exists.
pub(crate) struct Buffer(PyUntypedBuffer);

impl Buffer {
    /// Returns the memory of an object. `TypeError` if it has none, `BufferError` if the memory is
    /// not contiguous.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() && !buffer.is_fortran_contiguous() {
            return Err(PyBufferError::new_err("the buffer is not contiguous"));
        }
        Ok(Buffer(buffer))
    }

    /// As [`Buffer::of`], for memory that may be written.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        let buffer = Buffer::of(object)?;
        if buffer.0.readonly() {
            return Err(PyBufferError::new_err("the buffer is read-only"));
        }
        Ok(buffer)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len_bytes()
    }

    /// Returns the bytes. Another thread of the program may write them at the same time, which
    /// every function that reads a writable buffer without the interpreter lock has to accept.
    pub(crate) fn as_slice(&self) -> &[u8] {
        if self.len() == 0 {
            return &[];
        }
        // SAFETY: the exporter guarantees that this many contiguous bytes stay allocated until the
        // buffer is released, which happens when `self` is dropped. The engine only copies them, so
        // a concurrent write of the program changes the bytes that are sent, and nothing else.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.len()) }
    }

    /// Returns the first `len` bytes for writing. The buffer must be [`Buffer::writable`].
    pub(crate) fn as_mut_slice(&mut self, len: usize) -> &mut [u8] {
        let len = len.min(self.len());
        if len == 0 || self.0.readonly() {
            return &mut [];
        }
        // SAFETY: as in `as_slice`, and the exporter allows writing. `self` is borrowed mutably, so
        // Rust has no other reference through this value. The engine only writes the bytes, so a
        // concurrent access of the program sees old or new bytes, and nothing else.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), len) }
    }
}
