//! Handlers of fork(2), registered with POSIX's pthread_atfork.

use crate::libc;

unsafe extern "C" {
    // As in `libc`, except that the handler is a safe function.
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}

pub(super) fn call_in_child(handler: extern "C" fn()) {
    call_around(None, None, handler);
}

pub(super) fn call_around(
    prepare: Option<extern "C" fn()>,
    parent: Option<extern "C" fn()>,
    child: extern "C" fn(),
) {
    // SAFETY: the handlers are functions of this library. The C library removes them when the
    // library is unloaded.
    unsafe { pthread_atfork(prepare, parent, Some(child)) };
}
