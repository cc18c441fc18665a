//! Access to the bytes of a JavaScript array, without a copy, during one call.

use napi::sys;
use std::ptr;

/// Returns the memory and the number of elements of a `Uint8Array` (a `Buffer` is one) or a `Uint32Array`.
fn raw_view(
    env: sys::napi_env,
    value: sys::napi_value,
    kind: sys::napi_typedarray_type,
) -> Option<(*mut u8, usize)> {
    let mut found = 0;
    let mut len = 0;
    let mut data = ptr::null_mut();
    // SAFETY: a value of this environment, and places to write to. Null means that a result is not wanted.
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

/// Returns the bytes of a `Uint8Array`.
///
/// The callers, which are this crate and `lib/`, must ensure two conditions: no JavaScript runs while the bytes are in use, and the
/// array is not shared with another thread.
pub(crate) fn bytes<'a>(env: sys::napi_env, value: sys::napi_value) -> Option<&'a [u8]> {
    let (data, len) = raw_view(env, value, sys::TypedarrayType::uint8_array)?;
    if len == 0 {
        return Some(&[]);
    }
    // SAFETY: Node-API returned this memory and its length, and the bytes do not change before JavaScript runs again.
    Some(unsafe { std::slice::from_raw_parts(data, len) })
}

/// Returns the bytes of a `Uint8Array` for writing. There must be no other view of the array.
pub(crate) fn bytes_mut<'a>(env: sys::napi_env, value: sys::napi_value) -> Option<&'a mut [u8]> {
    let (data, len) = raw_view(env, value, sys::TypedarrayType::uint8_array)?;
    if len == 0 {
        return Some(&mut []);
    }
    // SAFETY: as in `bytes`. Each caller takes only this view of the array.
    Some(unsafe { std::slice::from_raw_parts_mut(data, len) })
}

/// Returns the array buffer of a typed array.
pub(crate) fn memory(env: sys::napi_env, value: sys::napi_value) -> Option<sys::napi_value> {
    let mut memory = ptr::null_mut();
    // SAFETY: a value of this environment, and a place to write to. Null means that a result is not wanted.
    let status = unsafe {
        sys::napi_get_typedarray_info(
            env,
            value,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            &mut memory,
            ptr::null_mut(),
        )
    };
    (status == sys::Status::napi_ok && !memory.is_null()).then_some(memory)
}

/// Returns the numbers of a `Uint32Array` for writing, under the conditions of [`bytes_mut`].
pub(crate) fn words_mut<'a>(env: sys::napi_env, value: sys::napi_value) -> Option<&'a mut [u32]> {
    let (data, len) = raw_view(env, value, sys::TypedarrayType::uint32_array)?;
    if len == 0 {
        return Some(&mut []);
    }
    // SAFETY: as in `bytes_mut`. JavaScript aligns such arrays to their elements.
    Some(unsafe { std::slice::from_raw_parts_mut(data.cast(), len) })
}

/// Writes a string to `room` as UTF-8. Returns the number of bytes, or `None` if the string may not have fitted: it must leave at
/// least 5 bytes.
pub(crate) fn text(env: sys::napi_env, value: sys::napi_value, room: &mut [u8]) -> Option<usize> {
    let mut len = 0;
    // SAFETY: a value of this environment, and `room` with its length. Node-API writes a final zero within it.
    let status = unsafe {
        sys::napi_get_value_string_utf8(env, value, room.as_mut_ptr().cast(), room.len(), &mut len)
    };
    // A character has at most 4 bytes. If more than 4 bytes are left, Node-API did not cut the text.
    (status == sys::Status::napi_ok && len + 4 < room.len()).then_some(len)
}
