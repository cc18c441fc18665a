//! The memory of Python objects that support the buffer protocol.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use pyo3::ffi;
use pyo3::prelude::*;

/// The contiguous memory of an object, which stays where it is while this value exists.
// Boxed, because some exporters keep the address of the view.
pub(crate) struct Buffer(Box<ffi::Py_buffer>);

// SAFETY: the memory stays exported on every thread. Only `drop` calls Python, and attaches before.
unsafe impl Send for Buffer {}
// SAFETY: as above; `&Buffer` only reads the description of the memory.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Returns the memory of an object. `TypeError` for an object without a buffer, `BufferError` if
    /// the memory is not contiguous.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        Buffer::get(object, ffi::PyBUF_ANY_CONTIGUOUS)
    }

    /// As [`Buffer::of`], for memory that may be written.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        Buffer::get(object, ffi::PyBUF_ANY_CONTIGUOUS | ffi::PyBUF_WRITABLE)
    }

    fn get(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Buffer> {
        let mut view = Box::new(MaybeUninit::<ffi::Py_buffer>::zeroed());
        // SAFETY: an object, and room for a view. This thread is attached, as `object` proves.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) } < 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: the call above has filled the view.
        Ok(Buffer(unsafe { view.assume_init() }))
    }

    /// True if the object does not allow its memory to be written.
    pub(crate) fn is_read_only(&self) -> bool {
        self.0.readonly != 0
    }

    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.0.len).unwrap_or(0)
    }

    /// Returns the bytes. Another thread of the program may write them at the same time, which
    /// every function that reads a writable buffer without the interpreter lock has to accept.
    pub(crate) fn as_slice(&self) -> &[u8] {
        if self.len() == 0 || self.0.buf.is_null() {
            return &[];
        }
        // SAFETY: the exporter guarantees that this many contiguous bytes stay allocated until the
        // buffer is released, which happens when `self` is dropped. The engine only copies them, so
        // a concurrent write of the program only changes the bytes that are sent.
        unsafe { std::slice::from_raw_parts(self.0.buf.cast(), self.len()) }
    }

    /// Returns the first `len` bytes for writing. Empty unless the buffer is [`Buffer::writable`].
    pub(crate) fn as_mut_slice(&mut self, len: usize) -> &mut [u8] {
        let len = len.min(self.len());
        if len == 0 || self.0.buf.is_null() || self.0.readonly != 0 {
            return &mut [];
        }
        // SAFETY: as in `as_slice`, and the exporter allows writing. `self` is borrowed mutably, so
        // Rust has no other reference through this value. The engine only writes the bytes, so a
        // concurrent access of the program sees old or new bytes.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf.cast(), len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // When the interpreter exits, the export leaks.
        Python::try_attach(|_| {
            // SAFETY: a view that `get` has filled, released once, by an attached thread.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.0) };
        });
    }
}
