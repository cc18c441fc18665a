//! The calls for every message or batch, directly on Node-API. napi-rs finds and guards the native object around each method, which
//! takes several times as long as sending a small message. These calls name a socket by its number in the runtime.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;

use napi::{Env, Result, Unknown, sys};
use tautline_core::Error;

use crate::errors::code;
use crate::runtime::{Environment, check};
use crate::socket::SocketInner;
use crate::typed_arrays;

/// Maximal number of arguments of a call.
const MOST: usize = 4;

/// The arguments of a call from JavaScript.
pub(crate) struct Arguments<'a> {
    env: Env,
    values: &'a [sys::napi_value; MOST],
}

impl<'a> Arguments<'a> {
    fn number(&self, index: usize) -> u32 {
        let mut number = 0;
        // SAFETY: a value of this environment (undefined if the argument is missing). If it is not a number, `number` stays 0.
        unsafe { sys::napi_get_value_uint32(self.env.raw(), self.values[index], &mut number) };
        number
    }

    fn flag(&self, index: usize) -> bool {
        let mut flag = false;
        // SAFETY: as above.
        unsafe { sys::napi_get_value_bool(self.env.raw(), self.values[index], &mut flag) };
        flag
    }

    fn bytes(&self, index: usize) -> Option<&'a [u8]> {
        typed_arrays::bytes(self.env.raw(), self.values[index])
    }

    fn bytes_mut(&self, index: usize) -> Option<&'a mut [u8]> {
        typed_arrays::bytes_mut(self.env.raw(), self.values[index])
    }

    fn words_mut(&self, index: usize) -> Option<&'a mut [u32]> {
        typed_arrays::words_mut(self.env.raw(), self.values[index])
    }
}

/// A call on a socket.
type Call = fn(&Rc<SocketInner>, &Arguments<'_>) -> i32;

/// `send(socket, bytes, more)`: returns 0, an error, or 1 if the part is a buffer of `loan`, which `endLoan` must empty.
fn send(socket: &Rc<SocketInner>, arguments: &Arguments<'_>) -> i32 {
    let Some(part) = arguments.bytes(1) else { return code(Error::Fault) };
    socket.send(part, arguments.flag(2))
}

/// `sendText(socket, string, more)`: returns 0, an error, or `i32::MIN` if the text is too long for this call.
fn send_text(socket: &Rc<SocketInner>, arguments: &Arguments<'_>) -> i32 {
    let mut room = [0; TEXT_ROOM];
    match typed_arrays::text(arguments.env.raw(), arguments.values[1], &mut room) {
        Some(len) => socket.send(&room[..len], arguments.flag(2)),
        None => i32::MIN,
    }
}

/// Size of the buffer on the stack for text. A text of at most 1,019 bytes fits ([`typed_arrays::text`] needs 5 spare bytes). JavaScript
/// encodes longer texts itself.
const TEXT_ROOM: usize = 1024;

/// `receive(socket, chunk, offset, table)`: returns the number of parts, or an error; see [`SocketInner::receive`].
fn receive(socket: &Rc<SocketInner>, arguments: &Arguments<'_>) -> i32 {
    let (Some(chunk), Some(table)) = (arguments.bytes_mut(1), arguments.words_mut(3)) else {
        return code(Error::Fault);
    };
    socket.receive(chunk.get_mut(arguments.number(2) as usize..).unwrap_or(&mut []), table)
}

/// `wait(socket, interest, keepAlive)` waits for POLLIN (1), POLLOUT (2) or both (3). Returns 1 if the wait is over at once, an error,
/// or 0 if it goes on; the runtime then calls its function at the end of the wait. Interest 0 ends a wait, and returns 0 without a
/// later call.
fn wait(socket: &Rc<SocketInner>, arguments: &Arguments<'_>) -> i32 {
    socket.watched.wait((arguments.number(1) & 3) as i16, arguments.flag(2))
}

const CALLS: [(&CStr, Entry); 4] =
    [(c"send", entry::<0>), (c"sendText", entry::<1>), (c"receive", entry::<2>), (c"wait", entry::<3>)];
const BODIES: [Call; 4] = [send, send_text, receive, wait];

type Entry = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

unsafe extern "C" fn entry<const CALL: usize>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let mut count = MOST;
    let mut values = [ptr::null_mut(); MOST];
    let mut data = ptr::null_mut();
    let mut result = ptr::null_mut();
    // SAFETY: a call by Node-API with its own environment and info. The data is the reference that `fast_functions` keeps for this function.
    // The reference lives as long as the function.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, values.as_mut_ptr(), ptr::null_mut(), &mut data);
        let Some(shared) = data.cast::<Environment>().as_ref() else { return result };
        let arguments = Arguments { env: Env::from_raw(env), values: &values };
        let call = || match shared.socket(arguments.number(0)) {
            Some(socket) => BODIES[CALL](&socket, &arguments),
            None => code(Error::NotSocket),
        };
        // Unwinding into Node is undefined.
        let status = catch_unwind(AssertUnwindSafe(call)).unwrap_or(code(Error::Fault));
        sys::napi_create_int32(env, status, &mut result);
    }
    result
}

/// Returns an object with these functions.
pub(crate) fn fast_functions<'a>(env: Env, shared: &Rc<Environment>) -> Result<Unknown<'a>> {
    let raw = env.raw();
    let mut object = ptr::null_mut();
    // SAFETY: the environment of the calling function, its values, and places to write to. Each function keeps a reference to the
    // runtime, and its finalizer releases the reference.
    unsafe {
        check(sys::napi_create_object(raw, &mut object))?;
        for (name, entry) in CALLS {
            let data = Rc::into_raw(shared.clone()).cast_mut().cast();
            let mut function = ptr::null_mut();
            let len = name.count_bytes() as isize;
            check(sys::napi_create_function(raw, name.as_ptr(), len, Some(entry), data, &mut function))?;
            let none = ptr::null_mut();
            check(sys::napi_add_finalizer(raw, function, data, Some(forget), none, none.cast()))?;
            check(sys::napi_set_named_property(raw, object, name.as_ptr(), function))?;
        }
        Ok(Unknown::from_raw_unchecked(raw, object))
    }
}

unsafe extern "C" fn forget(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: the reference that `fast_functions` kept for the collected function.
    drop(unsafe { Rc::from_raw(data.cast_const().cast::<Environment>()) });
}
