//! `zmq_version`: the release of libzmq whose interface this library has. The numbers are those of
//! `zmq.h`.
//!
//! The caller passes three places for numbers, or null.

use std::ffi::c_int;

const VERSION: [c_int; 3] = [4, 3, 5];

/// Stores the version's three numbers at the pointers that are not null.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) {
    for (place, number) in [major, minor, patch].into_iter().zip(VERSION) {
        if !place.is_null() {
            // SAFETY: the caller passes null or a valid int.
            unsafe { *place = number }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn version_is_that_of_the_header() {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: valid places and nulls.
        unsafe {
            zmq_version(&mut major, &mut minor, &mut patch);
            zmq_version(null_mut(), null_mut(), null_mut());
        }
        let header = include_str!("../../../include/zmq.h");
        for (name, number) in [("MAJOR", major), ("MINOR", minor), ("PATCH", patch)] {
            assert!(header.contains(&format!("#define ZMQ_VERSION_{name} {number}\n")), "{name}");
        }
    }
}
