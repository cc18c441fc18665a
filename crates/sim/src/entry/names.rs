//! Names of hosts: those that end in `.sim` are this one. To ask takes time, and may fail. There is
//! one interface, `lo`.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::OnceLock;

use libc::{addrinfo, ifaddrs, sockaddr_in};

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

/// An entry of the list of interfaces, with its address.
#[repr(C)]
struct Interface(ifaddrs, sockaddr_in);

#[unsafe(no_mangle)]
unsafe extern "C" fn getifaddrs(first: *mut *mut ifaddrs) -> c_int {
    world::enter();
    // SAFETY: all zeroes is valid.
    let mut address: sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    // SAFETY: as above.
    let mut entry = Box::new(Interface(unsafe { std::mem::zeroed() }, address));
    entry.0.ifa_name = c"lo".as_ptr().cast_mut();
    entry.0.ifa_addr = (&raw mut entry.1).cast();
    // SAFETY: the caller's room. The entry begins with what is taken for it.
    unsafe { *first = Box::into_raw(entry).cast() };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn freeifaddrs(first: *mut ifaddrs) {
    // SAFETY: made by `getifaddrs`.
    drop(unsafe { Box::from_raw(first.cast::<Interface>()) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn if_nametoindex(name: *const c_char) -> c_uint {
    // SAFETY: the caller's text.
    (unsafe { CStr::from_ptr(name) } == c"lo").into()
}
