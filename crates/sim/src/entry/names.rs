//! Names of hosts: those that end in `.sim` are this one. To ask takes time, and may fail.

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use libc::addrinfo;

use crate::world::{self, Wait};

type Ask = unsafe extern "C" fn(*const c_char, *const c_char, *const addrinfo, *mut *mut addrinfo) -> c_int;

/// The C library's function that has this name. Numbers it answers without any file or socket.
fn real_ask() -> Ask {
    static REAL: OnceLock<Ask> = OnceLock::new();
    *REAL.get_or_init(|| {
        // SAFETY: the name is terminated, and what it names has this type.
        unsafe { std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"getaddrinfo".as_ptr())) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getaddrinfo(
    host: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    first: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: null, or the caller's.
    let is_number = unsafe { hints.as_ref() }.is_some_and(|hints| hints.ai_flags & libc::AI_NUMERICHOST != 0);
    if host.is_null() || is_number || world::me().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real_ask()(host, service, hints, first) };
    }
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(host) }.to_string_lossy();
    if name.parse::<std::net::IpAddr>().is_ok() {
        // SAFETY: the caller's arguments.
        return unsafe { real_ask()(host, service, hints, first) };
    }
    world::enter();
    let drawn = world::with(|world| {
        let takes = world.kernel.rng.spread(10_000, 3_000_000_000);
        let one_in = world.kernel.faults.unresolved;
        (takes, world.kernel.goes_wrong(one_in))
    });
    let (takes, fails) = drawn.unwrap_or_default();
    let until = world::time() + takes;
    while world::time() < until {
        world::wait(Wait::Time, Some(until));
    }
    world::with(|world| world.tell(fails.into(), || format!("getaddrinfo({name}), fails {fails}")));
    match name.ends_with(".sim") {
        _ if fails => libc::EAI_AGAIN,
        false => libc::EAI_NONAME,
        // SAFETY: the caller's arguments, but for a text that is terminated.
        true => unsafe { real_ask()(c"127.0.0.1".as_ptr(), service, hints, first) },
    }
}
