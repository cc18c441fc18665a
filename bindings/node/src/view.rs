//! The bytes of a JavaScript array, without a copy and for the time of one call.

use napi::sys;
use std::ptr;

/// What lies in a `Uint8Array` (a `Buffer` is one) or `Uint32Array`.
fn raw_view(
    env: sys::napi_env,
    value: sys::napi_value,
    kind: sys::napi_typedarray_type,
) -> Option<(*mut u8, usize)> {
    let mut found = 0;
    let mut len = 0;
    let mut data = ptr::null_mut();
    // SAFETY: a value of this environment; each place is one to write to, and null means that it is not wanted.
    let status = unsafe {
        sys::napi_get_typedarray_info(
            env,
            value,
            &mut found,
            &mut len,
            &mut data,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    (status == sys::Status::napi_ok && found == kind).then_some((data.cast(), len))
}

/// The bytes of a `Uint8Array`.
///
/// No JavaScript may run while they are in use, and the array must not be one that is shared with another thread; both is the callers'
/// duty, who are in this crate and in `lib/`.
pub(crate) fn bytes<'a>(env: sys::napi_env, value: sys::napi_value) -> Option<&'a [u8]> {
    let (data, len) = raw_view(env, value, sys::TypedarrayType::uint8_array)?;
    if len == 0 {
        return Some(&[]);
    }
    // SAFETY: Node-API says that these bytes are there, and nobody changes them before JavaScript runs again.
    Some(unsafe { std::slice::from_raw_parts(data, len) })
}

/// The same, to be written to; nobody else may have a view of the array.
pub(crate) fn bytes_mut<'a>(env: sys::napi_env, value: sys::napi_value) -> Option<&'a mut [u8]> {
    let (data, len) = raw_view(env, value, sys::TypedarrayType::uint8_array)?;
    if len == 0 {
        return Some(&mut []);
    }
    // SAFETY: as in `bytes`; the only caller passes an array of which it takes this one view.
    Some(unsafe { std::slice::from_raw_parts_mut(data, len) })
}

/// The numbers of a `Uint32Array`, to be written to; as [`bytes_mut`].
pub(crate) fn words_mut<'a>(env: sys::napi_env, value: sys::napi_value) -> Option<&'a mut [u32]> {
    let (data, len) = raw_view(env, value, sys::TypedarrayType::uint32_array)?;
    if len == 0 {
        return Some(&mut []);
    }
    // SAFETY: as in `bytes_mut`; such arrays are aligned to their elements.
    Some(unsafe { std::slice::from_raw_parts_mut(data.cast(), len) })
}

/// Writes the text of a string to `room` as UTF-8; how many bytes that took, or `None` if it does not fit.
pub(crate) fn text(env: sys::napi_env, value: sys::napi_value, room: &mut [u8]) -> Option<usize> {
    let mut len = 0;
    // SAFETY: a value of this environment, and room of the length that is given; Node-API writes a zero at the end within it.
    let status = unsafe {
        sys::napi_get_value_string_utf8(env, value, room.as_mut_ptr().cast(), room.len(), &mut len)
    };
    // A character has at most 4 bytes, so what ends earlier was not cut.
    (status == sys::Status::napi_ok && len + 4 < room.len()).then_some(len)
}
