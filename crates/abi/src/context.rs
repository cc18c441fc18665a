//! `zmq_ctx_*`: contexts, and their older names `zmq_init`, `zmq_term` and `zmq_ctx_destroy`.
//!
//! Any thread may call any of these at any time. Each call works on its own reference, so a
//! `zmq_ctx_term` that waits until all sockets are closed blocks no other call.
//!
//! The caller passes a handle of `zmq_ctx_new`, or null. The handle may be that of a terminated
//! context.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tautline_core::{Context, Error};

use crate::error::{fail, status};
use crate::guard::{guard, guard_new};
use crate::slot::{FreeSlots, Slot, SlotContent};

/// `ZMQ_IO_THREADS`.
const IO_THREADS: c_int = 1;

/// Content of a context's slot.
#[derive(Default)]
pub(crate) struct ContextBody(Mutex<Occupant>);

/// The context while its handle is valid, and the number of contexts that this slot held before.
#[derive(Default)]
struct Occupant {
    context: Option<Context>,
    generation: u64,
}

impl ContextBody {
    fn lock(&self) -> MutexGuard<'_, Occupant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotContent for ContextBody {
    const TAG: u32 = 0xC047_EE01;

    fn free_slots() -> &'static FreeSlots<Self> {
        static SPARE: FreeSlots<ContextBody> = FreeSlots::new();
        &SPARE
    }
}

pub(crate) type ContextSlot = Slot<ContextBody>;

/// Returns a reference to the context behind a handle. Fault if the handle is invalid, Interrupted
/// if a forked child has inherited it.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
pub(crate) unsafe fn get_context(handle: *mut c_void) -> Result<Context, Error> {
    // SAFETY: guaranteed by the caller.
    let Some(slot) = (unsafe { ContextSlot::at(handle) }) else {
        // SAFETY: guaranteed by the caller.
        return Err(match unsafe { ContextSlot::inherited(handle) } {
            Some(_) => Error::Interrupted,
            None => Error::Fault,
        });
    };
    slot.body().lock().context.clone().ok_or(Error::Fault)
}

/// Makes a socket in the context behind a handle.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
pub(crate) unsafe fn socket(
    handle: *mut c_void,
    socket_type: Option<tautline_core::SocketType>,
) -> Result<tautline_core::Socket, Error> {
    // SAFETY: guaranteed by the caller.
    let context = unsafe { get_context(handle) }?;
    context.socket(socket_type.ok_or(Error::Invalid)?)
}

/// Makes a context, to be released with [`zmq_ctx_term`]. Null with EINVAL if TAUT_POLICY names a
/// policy that cannot be read; the reason goes to standard error.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub extern "C" fn zmq_ctx_new() -> *mut c_void {
    guard_new(null_mut(), || {
        if tautline_host::policy_fault().is_some() {
            fail(Error::Invalid);
            return null_mut();
        }
        let slot = ContextSlot::claim();
        slot.body().lock().context = Some(tautline_host::context());
        slot.publish()
    })
}

/// Terminates a context. Wakes all blocked calls with ETERM, and waits until all sockets are closed
/// and their messages are sent or their linger time is over. -1 with EFAULT if there is no context,
/// with EINTR if a signal arrived; the program may then call it again.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_ctx_term(handle: *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or a handle.
        let Some(slot) = (unsafe { ContextSlot::at(handle) }) else {
            // SAFETY: the caller passes null or a handle.
            return match unsafe { ContextSlot::inherited(handle) } {
                Some(slot) if slot.retire_inherited() => 0,
                _ => fail(Error::Fault),
            };
        };
        let (context, generation) = {
            let occupant = slot.body().lock();
            (occupant.context.clone(), occupant.generation)
        };
        let Some(context) = context else { return fail(Error::Fault) };
        if let Err(error) = context.terminate() {
            return fail(error);
        }
        let last = {
            let mut occupant = slot.body().lock();
            // By now another thread may have terminated the same context, and the slot may hold a
            // new one.
            if occupant.generation != generation || !slot.retire() {
                return 0;
            }
            occupant.generation += 1;
            occupant.context.take()
        };
        drop(last);
        slot.recycle();
        0
    })
}

/// Wakes all blocked calls of the context's sockets and fails all later ones, with ETERM. The
/// program must still terminate the context. -1 with EFAULT if there is no context.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_ctx_shutdown(handle: *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or a handle.
        match unsafe { get_context(handle) } {
            Ok(context) => status(context.shutdown()),
            // A forked child cannot use the sockets that it has inherited, so they count as shut
            // down.
            Err(Error::Interrupted) => 0,
            Err(error) => fail(error),
        }
    })
}

/// Sets an option of the context. -1 with EFAULT if there is no context, with EINVAL if option or
/// value are unknown.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_ctx_set(handle: *mut c_void, option: c_int, value: c_int) -> c_int {
    // SAFETY: the caller passes null or a handle.
    guard(-1, || status(unsafe { get_context(handle) }.and_then(|context| context.set(option, value))))
}

/// Returns the value of an option of the context. -1 with EFAULT if there is no context, with
/// EINVAL if the option is unknown.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_ctx_get(handle: *mut c_void, option: c_int) -> c_int {
    // SAFETY: the caller passes null or a handle.
    guard(-1, || unsafe { get_context(handle) }.and_then(|context| context.get(option)).unwrap_or_else(fail))
}

/// Does the same as [`zmq_ctx_set`] with `size` bytes, for values that are not numbers.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_ctx_set_ext(
    handle: *mut c_void,
    option: c_int,
    value: *const c_void,
    size: usize,
) -> c_int {
    guard_new(-1, || {
        // SAFETY: the caller passes null or a handle, and null or `size` readable bytes.
        status(unsafe { get_context(handle) }.and_then(|context| {
            if value.is_null() || isize::try_from(size).is_err() {
                return Err(Error::Invalid);
            }
            // SAFETY: not null, and valid, as guaranteed by the caller.
            context.set_bytes(option, unsafe { std::slice::from_raw_parts(value.cast(), size) })
        }))
    })
}

/// Does the same as [`zmq_ctx_get`] into `value`, which has room for `*size` bytes. Sets `*size` to
/// the length of the value.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_ctx_get_ext(
    handle: *mut c_void,
    option: c_int,
    value: *mut c_void,
    size: *mut usize,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or a handle, and for the rest null or valid room.
        status(unsafe { get_context(handle) }.and_then(|context| {
            if value.is_null() || size.is_null() {
                return Err(Error::Fault);
            }
            // SAFETY: not null, and valid, as guaranteed by the caller.
            unsafe {
                let room = std::slice::from_raw_parts_mut(value.cast(), (*size).min(isize::MAX as usize));
                *size = context.get_bytes(option, room)?;
            }
            Ok(())
        }))
    })
}

/// Does the same as [`zmq_ctx_new`] with a number of I/O threads. Null with EINVAL if the number is
/// negative.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub extern "C" fn zmq_init(io_threads: c_int) -> *mut c_void {
    if io_threads < 0 {
        fail(Error::Invalid);
        return null_mut();
    }
    let handle = zmq_ctx_new();
    // SAFETY: null or a handle. The number was checked. If the context refuses it nevertheless, the
    // default stays.
    unsafe { zmq_ctx_set(handle, IO_THREADS, io_threads) };
    handle
}

/// Old name of [`zmq_ctx_term`].
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_term(handle: *mut c_void) -> c_int {
    // SAFETY: the caller passes null or a handle.
    unsafe { zmq_ctx_term(handle) }
}

/// Old name of [`zmq_ctx_term`].
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_ctx_destroy(handle: *mut c_void) -> c_int {
    // SAFETY: the caller passes null or a handle.
    unsafe { zmq_ctx_term(handle) }
}
