//! The calls that are made for every message or batch, straight on Node-API: what napi-rs does around a method (finding the native
//! object, guarding it) takes several times as long as sending a small message. A socket is named by its number in the runtime.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;

use napi::{Env, Result, Unknown, sys};
use tautline_core::Error;

use crate::errors::code;
use crate::runtime::{Shared, check};
use crate::socket::Inner;
use crate::view;

/// Most arguments of a call.
const MOST: usize = 4;

/// The arguments of a call of JavaScript's.
pub(crate) struct Arguments<'a> {
    env: Env,
    values: &'a [sys::napi_value; MOST],
}

impl<'a> Arguments<'a> {
    fn number(&self, index: usize) -> u32 {
        let mut number = 0;
        // SAFETY: a value of this environment (undefined where there was no argument); if it is no number, 0 stays.
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
        view::bytes(self.env.raw(), self.values[index])
    }

    fn bytes_mut(&self, index: usize) -> Option<&'a mut [u8]> {
        view::bytes_mut(self.env.raw(), self.values[index])
    }

    fn words_mut(&self, index: usize) -> Option<&'a mut [u32]> {
        view::words_mut(self.env.raw(), self.values[index])
    }
}

/// A call on a socket.
type Call = fn(&Rc<Inner>, &Arguments<'_>) -> i32;

/// `send(socket, bytes, more)`: 0 or an error.
fn send(socket: &Rc<Inner>, arguments: &Arguments<'_>) -> i32 {
    let Some(part) = arguments.bytes(1) else { return code(Error::Fault) };
    socket.send(part, arguments.flag(2))
}

/// `sendText(socket, string, more)`: 0, an error, or the least number if the text is too long for this call.
fn send_text(socket: &Rc<Inner>, arguments: &Arguments<'_>) -> i32 {
    let mut room = [0; TEXT_ROOM];
    match view::text(arguments.env.raw(), arguments.values[1], &mut room) {
        Some(len) => socket.send(&room[..len], arguments.flag(2)),
        None => i32::MIN,
    }
}

/// A text of up to so many bytes is sent without a detour.
const TEXT_ROOM: usize = 1024;

/// `receive(socket, chunk, offset, table)`: the number of parts, or an error; see [`Inner::receive`].
fn receive(socket: &Rc<Inner>, arguments: &Arguments<'_>) -> i32 {
    let (Some(chunk), Some(table)) = (arguments.bytes_mut(1), arguments.words_mut(3)) else {
        return code(Error::Fault);
    };
    socket.receive(chunk.get_mut(arguments.number(2) as usize..).unwrap_or(&mut []), table)
}

/// `wait(socket, interest, keepAlive)` for POLLIN (1), POLLOUT (2), both or no longer (0). 0: the runtime's function is called at the end
/// of the wait; 1: it is over already; or an error.
fn wait(socket: &Rc<Inner>, arguments: &Arguments<'_>) -> i32 {
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
    // SAFETY: a call by Node-API with its own environment and info. The data is the reference that `calls` has kept for this function,
    // which lives as long as the function.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, values.as_mut_ptr(), ptr::null_mut(), &mut data);
        let Some(shared) = data.cast::<Shared>().as_ref() else { return result };
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

/// An object with these functions.
pub(crate) fn calls<'a>(env: Env, shared: &Rc<Shared>) -> Result<Unknown<'a>> {
    let raw = env.raw();
    let mut object = ptr::null_mut();
    // SAFETY: the environment of the calling function, values of it, and places to write to. Each function keeps a reference to the
    // runtime and gives it back when it is collected.
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
    // SAFETY: the reference that `calls` has kept for the function that is gone.
    drop(unsafe { Rc::from_raw(data.cast_const().cast::<Shared>()) });
}
