//! Names of hosts and interfaces. A host name that ends in `.sim` has one address for each label
//! before the suffix. Resolving takes time and may fail.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::OnceLock;

use libc::{addrinfo, ifaddrs, sockaddr_in, sockaddr_in6, sockaddr_storage};

use crate::kernel::INTERFACES;
use crate::world::{self, Wait};

/// Addresses of the labels: some of this host, and two that never answer.
const ADDRESSES: [(&str, &CStr); 5] = [
    ("this", c"127.0.0.1"),
    ("this6", c"::1"),
    ("other", c"127.0.0.2"),
    ("silent", c"10.9.9.9"),
    ("silent6", c"fd00::9"),
];

type Ask = unsafe extern "C" fn(*const c_char, *const c_char, *const addrinfo, *mut *mut addrinfo) -> c_int;

/// Returns the C library's function of this name. It resolves numeric addresses without any file or
/// socket.
fn real_ask() -> Ask {
    static REAL: OnceLock<Ask> = OnceLock::new();
    *REAL.get_or_init(|| {
        // SAFETY: the name is terminated, and the function of this name has this type.
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
    if host.is_null() || is_number || world::current_thread().is_none() {
        // SAFETY: the caller's arguments.
        return unsafe { real_ask()(host, service, hints, first) };
    }
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(host) }.to_string_lossy();
    if name.parse::<std::net::IpAddr>().is_ok() {
        // SAFETY: the caller's arguments.
        return unsafe { real_ask()(host, service, hints, first) };
    }
    world::enter("getaddrinfo");
    let drawn = world::with(|world| {
        let takes = world.kernel.rng.spread(10_000, 3_000_000_000);
        let one_in = world.kernel.faults.unresolved;
        (takes, world.kernel.draw_fault(one_in))
    });
    let (takes, fails) = drawn.unwrap_or_default();
    let until = world::current_time() + takes;
    while world::current_time() < until {
        world::wait(Wait::Time, Some(until));
    }
    world::with(|world| world.tell(fails.into(), || format!("getaddrinfo({name}), fails {fails}")));
    if fails {
        return libc::EAI_AGAIN;
    }
    let labels = name.strip_suffix(".sim").into_iter().flat_map(|labels| labels.split('.'));
    let mut outcome = libc::EAI_NONAME;
    let mut end = first;
    for label in labels {
        let Some((_, number)) = ADDRESSES.iter().find(|(known, _)| *known == label) else { continue };
        // SAFETY: the caller's arguments, except for a terminated text, and the end of the list of
        // the previous labels. The C library frees a list entry by entry.
        if unsafe { real_ask()(number.as_ptr(), service, hints, end) } == 0 {
            outcome = 0;
            // SAFETY: an entry of a list, or its end.
            while let Some(entry) = unsafe { (*end).as_mut() } {
                end = &raw mut entry.ai_next;
            }
        }
    }
    outcome
}

/// Entry of the list of interfaces, with its address.
#[repr(C)]
struct Entry {
    head: ifaddrs,
    address: sockaddr_storage,
}

impl Entry {
    fn new(name: &'static CStr, next: *mut ifaddrs) -> Box<Self> {
        // SAFETY: all zeroes is valid, for both.
        let (mut head, address) = unsafe { (std::mem::zeroed::<ifaddrs>(), std::mem::zeroed()) };
        head.ifa_name = name.as_ptr().cast_mut();
        head.ifa_next = next;
        let mut entry = Box::new(Entry { head, address });
        entry.head.ifa_addr = (&raw mut entry.address).cast();
        entry
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getifaddrs(first: *mut *mut ifaddrs) -> c_int {
    world::enter("getifaddrs");
    let mut next = std::ptr::null_mut();
    for interface in INTERFACES.iter().rev() {
        let mut v6 = Entry::new(interface.name, next);
        // SAFETY: an address of this kind fits, and is aligned.
        let address = unsafe { &mut *(&raw mut v6.address).cast::<sockaddr_in6>() };
        address.sin6_family = libc::AF_INET6 as u16;
        address.sin6_addr.s6_addr = interface.v6;
        address.sin6_scope_id = if interface.v6[0] == 0xfe { interface.index } else { 0 };
        let mut v4 = Entry::new(interface.name, Box::into_raw(v6).cast());
        // SAFETY: as above.
        let address = unsafe { &mut *(&raw mut v4.address).cast::<sockaddr_in>() };
        address.sin_family = libc::AF_INET as u16;
        address.sin_addr.s_addr = u32::from_ne_bytes(interface.v4);
        next = Box::into_raw(v4).cast();
    }
    // SAFETY: the caller's room. An `Entry` begins with its `ifaddrs`.
    unsafe { *first = next };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn freeifaddrs(first: *mut ifaddrs) {
    let mut next = first;
    while !next.is_null() {
        // SAFETY: made by `getifaddrs`, and freed once.
        let entry = unsafe { Box::from_raw(next.cast::<Entry>()) };
        next = entry.head.ifa_next;
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn if_nametoindex(name: *const c_char) -> c_uint {
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(name) };
    INTERFACES.iter().find(|one| one.name == name).map_or(0, |one| one.index)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn if_indextoname(index: c_uint, into: *mut c_char) -> *mut c_char {
    let Some(one) = INTERFACES.iter().find(|one| one.index == index) else { return std::ptr::null_mut() };
    let name = one.name.to_bytes_with_nul();
    // SAFETY: the caller has room for a name of any length.
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), into.cast(), name.len()) };
    into
}
