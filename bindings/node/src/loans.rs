//! Buffers in memory that `ipc` peers of the same user can read in place. Such a buffer is sent without a copy.
//!
//! The memory belongs to a message, which [`LoanBuffers`] keeps until V8 has released the buffer's memory. To send the buffer is to
//! send a second reference to the body. Then `end_loan` empties the buffer, as a transfer to another thread does: JavaScript cannot
//! write to a body that the engine or a peer still reads, and does not keep its memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;

use napi::{Env, JsValue, Unknown, sys};
use napi_derive::napi;
use tautline_core::lending;
use tautline_core::message::{self, Message};

use crate::runtime::{Environment, Runtime};
use crate::typed_arrays;

/// The bodies of the buffers of one JavaScript thread, by address. The message keeps the memory, so an address has one buffer.
#[derive(Default)]
pub(crate) struct LoanBuffers(RefCell<HashMap<usize, Message>>);

impl LoanBuffers {
    /// Keeps the message. Returns the address of its body, or `None` if memory is exhausted.
    fn insert(&self, mut message: Message) -> Option<*mut u8> {
        let body = message.data_ptr();
        let mut bodies = self.0.borrow_mut();
        bodies.try_reserve(1).ok()?;
        bodies.insert(body.addr(), message);
        Some(body)
    }

    fn remove(&self, body: *mut u8) {
        let removed = self.0.borrow_mut().remove(&body.addr());
        drop(removed);
    }

    /// Returns a message with the body of `part`, if `part` is a whole buffer of [`loan`].
    #[inline]
    pub(crate) fn message(&self, part: &[u8]) -> Option<Message> {
        if part.len() < lending::LOWEST_LIMIT {
            return None;
        }
        let mut bodies = self.0.borrow_mut();
        let body = bodies.get_mut(&part.as_ptr().addr())?;
        (body.len() == part.len()).then(|| body.share())
    }
}

/// Returns a buffer of `size` bytes in memory for loans, or in ordinary memory of the engine if there is none. Null if memory is exhausted, if `size` is below the limit for loans, or if JavaScript allows no memory from outside V8, as in Electron.
#[napi(catch_unwind)]
pub fn loan<'a>(env: Env, runtime: &Runtime, size: u32) -> Option<Unknown<'a>> {
    let size = size as usize;
    if size < lending::LOWEST_LIMIT {
        return None;
    }
    let body = runtime.0.loans.insert(message::loan(size)?)?;
    let hint = Rc::into_raw(runtime.0.clone()).cast_mut().cast::<c_void>();
    let mut buffer = ptr::null_mut();
    // SAFETY: the environment of this call, and a place to write to. The message keeps the memory until `release` runs.
    let status = unsafe {
        sys::napi_create_external_buffer(env.raw(), size, body.cast(), Some(release), hint, &mut buffer)
    };
    match status {
        // SAFETY: a value of this environment.
        sys::Status::napi_ok => Some(unsafe { Unknown::from_raw_unchecked(env.raw(), buffer) }),
        sys::Status::napi_no_external_buffers_allowed => {
            // SAFETY: Node-API did nothing, so `release` will not run.
            unsafe { release(env.raw(), body.cast(), hint) };
            None
        }
        // `release` may run later, so the message stays.
        _ => None,
    }
}

/// V8 has released the memory of a buffer, or the environment ends.
unsafe extern "C" fn release(_env: sys::napi_env, body: *mut c_void, hint: *mut c_void) {
    // SAFETY: the reference that `loan` kept for this buffer. Called once, on the environment's thread.
    let shared = unsafe { Rc::from_raw(hint.cast_const().cast::<Environment>()) };
    shared.loans.remove(body.cast());
}

/// Empties the buffer whose whole memory is `part`, if it is from [`loan`]. Returns false if the buffer still has its memory.
#[napi(catch_unwind)]
pub fn end_loan(env: Env, runtime: &Runtime, part: Unknown<'_>) -> bool {
    let is_loan = typed_arrays::bytes(env.raw(), part.raw())
        .is_some_and(|part| runtime.0.loans.message(part).is_some());
    is_loan
        && typed_arrays::memory(env.raw(), part.raw()).is_some_and(|memory| {
            // SAFETY: the array buffer of `part`, a value of this environment.
            let status = unsafe { sys::napi_detach_arraybuffer(env.raw(), memory) };
            status == sys::Status::napi_ok
        })
}

/// Returns the number of bodies that peers have received without a copy, in this process. For the tests.
#[napi(catch_unwind)]
pub fn lent_bodies() -> f64 {
    lending::lent() as f64
}
