//! DLPack: the body of a frame as a tensor of bytes, which numpy, PyTorch and others read in place.
//!
//! A capsule refers to a structure of dlpack.h: `DLManagedTensor`, or `DLManagedTensorVersioned`
//! (version 1.0), which alone can say that the memory is read-only. A consumer that takes the tensor
//! renames the capsule, and calls the deleter once, on any thread. Otherwise the capsule does so.

use std::ffi::{CStr, c_void};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::frame::{Body, Frame};

/// Type and number of the device: kDLCPU, 0.
pub(crate) const CPU: (i32, i32) = (1, 0);

const NAME: &CStr = c"dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";
/// DLPACK_FLAG_BITMASK_READ_ONLY and DLPACK_FLAG_BITMASK_IS_COPIED.
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;
/// kDLUInt, with 8 bits and 1 lane.
const BYTE: (u8, u8, u16) = (1, 8, 1);

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    type_code: u8,
    type_bits: u8,
    type_lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    export: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    version: (u32, u32),
    export: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// The memory behind a capsule. The consumer uses one of the two structures.
struct Export {
    managed: Managed,
    versioned: ManagedVersioned,
    shape: [i64; 1],
    strides: [i64; 1],
    _frame: Py<Frame>,
}

/// Returns a capsule with the body of `frame`. BufferError if the body is read-only, and the capsule
/// cannot say so.
pub(crate) fn capsule<'py>(
    frame: Bound<'py, Frame>,
    body: Body,
    versioned: bool,
    copied: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if body.read_only && !versioned {
        return Err(PyBufferError::new_err(
            "the frame is read-only, which needs a consumer of DLPack 1.0: max_version=(1, 0), or copy=True",
        ));
    }
    let py = frame.py();
    let tensor = Tensor {
        data: body.data.cast(),
        device_type: CPU.0,
        device_id: CPU.1,
        dimensions: 1,
        type_code: BYTE.0,
        type_bits: BYTE.1,
        type_lanes: BYTE.2,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let flags = if body.read_only { READ_ONLY } else { 0 } | if copied { IS_COPIED } else { 0 };
    let null = std::ptr::null_mut();
    let export = Box::into_raw(Box::new(Export {
        managed: Managed { tensor, export: null, deleter: Some(delete) },
        versioned: ManagedVersioned {
            version: (1, 0),
            export: null,
            deleter: Some(delete_versioned),
            flags,
            tensor,
        },
        shape: [i64::try_from(body.len)?],
        strides: [1],
        _frame: frame.unbind(),
    }));
    // SAFETY: the new box, which only this function knows. It stays at its address.
    let capsule = unsafe {
        for tensor in [&raw mut (*export).managed.tensor, &raw mut (*export).versioned.tensor] {
            (*tensor).shape = (&raw mut (*export).shape).cast();
            (*tensor).strides = (&raw mut (*export).strides).cast();
        }
        (*export).managed.export = export.cast();
        (*export).versioned.export = export.cast();
        if versioned {
            let content = (&raw mut (*export).versioned).cast();
            ffi::PyCapsule_New(content, NAME_VERSIONED.as_ptr(), Some(destroy_versioned))
        } else {
            ffi::PyCapsule_New((&raw mut (*export).managed).cast(), NAME.as_ptr(), Some(destroy))
        }
    };
    if capsule.is_null() {
        // SAFETY: no capsule refers to the box.
        unsafe { free(export.cast()) };
    }
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// Frees an export, on any thread.
///
/// # Safety
/// `export` is the box of [`capsule`], which is given up.
unsafe fn free(export: *mut c_void) {
    // SAFETY: the caller's promise.
    let mut export = Some(unsafe { Box::from_raw(export.cast::<Export>()) });
    Python::try_attach(|_| drop(export.take()));
    // When the interpreter exits, the frame leaks.
    std::mem::forget(export);
}

/// # Safety
/// `managed` is the structure of an export. It is called once.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: the caller's promise.
    unsafe { free((*managed).export) }
}

/// # Safety
/// As [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: the caller's promise.
    unsafe { free((*managed).export) }
}

/// Returns the content of a capsule that no consumer has taken, or null.
///
/// # Safety
/// `capsule` is an object, and this thread is attached.
unsafe fn content(capsule: *mut ffi::PyObject, name: &CStr) -> *mut c_void {
    // SAFETY: the caller's promise. A consumer gives the capsule another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 0 {
            return std::ptr::null_mut();
        }
        ffi::PyCapsule_GetPointer(capsule, name.as_ptr())
    }
}

/// The destructor of a capsule.
///
/// # Safety
/// Python calls it once, with a capsule of [`capsule`].
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule that still has its name owns the export.
    unsafe {
        let managed: *mut Managed = content(capsule, NAME).cast();
        if !managed.is_null() {
            delete(managed);
        }
    }
}

/// # Safety
/// As [`destroy`].
unsafe extern "C" fn destroy_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `destroy`.
    unsafe {
        let managed: *mut ManagedVersioned = content(capsule, NAME_VERSIONED).cast();
        if !managed.is_null() {
            delete_versioned(managed);
        }
    }
}
