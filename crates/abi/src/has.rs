//! `zmq_has`: tells which optional transports and mechanisms this library has, one row each. The
//! answer is the truth, even if a program would prefer another one. The name `tautline` tells a
//! program that this library is not libzmq.
//!
//! The caller passes a text with a NUL at the end, or null.

use std::ffi::{CStr, c_char, c_int};

use tautline_io::net;

/// Returns true if the capability is present.
type Present = fn() -> bool;

/// Names must match exactly, including case, as programs know them from libzmq.
const CAPABILITIES: [(&CStr, Present); 14] = [
    (c"ipc", net::is_unix_supported),
    (c"pgm", || false),
    (c"tipc", || false),
    (c"norm", || false),
    (c"curve", || true),
    (c"gssapi", || false),
    (c"vmci", || false),
    (c"vsock", || cfg!(any(target_os = "linux", target_os = "android"))),
    (c"draft", || true),
    (c"WS", || true),
    (c"WSS", || cfg!(feature = "tls")),
    (c"tls+tcp", || cfg!(feature = "tls")),
    (c"name", || cfg!(feature = "names")),
    (c"tautline", || true),
];

/// Returns 1 if the library has the capability, else 0.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_has(capability: *const c_char) -> c_int {
    if capability.is_null() {
        return 0;
    }
    // SAFETY: not null, so a terminated string, as guaranteed by the caller.
    let asked = unsafe { CStr::from_ptr(capability) };
    c_int::from(CAPABILITIES.iter().any(|&(name, present)| name == asked && present()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(name: &CStr) -> c_int {
        // SAFETY: a terminated string.
        unsafe { zmq_has(name.as_ptr()) }
    }

    #[test]
    fn only_what_is_there_is_claimed() {
        assert_eq!((has(c"ipc"), has(c"curve"), has(c"draft"), has(c"tautline")), (1, 1, 1, 1));
        for absent in [c"gssapi", c"pgm", c"IPC", c"ipc ", c"Tautline", c"", c"\xff"] {
            assert_eq!(has(absent), 0, "{absent:?}");
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { zmq_has(std::ptr::null()) }, 0);
    }
}
