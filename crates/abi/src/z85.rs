//! `zmq_z85_encode` and `zmq_z85_decode`: binary keys as printable text, five characters for four
//! bytes (ZeroMQ RFC 32).
//!
//! The caller passes places with room for the result; the data has `size` bytes, and a text ends
//! with a NUL.

use std::ffi::{CStr, c_char};

use tautline_core::z85::{decode_group, encode_group};
use tautline_io::errno;

/// Writes the text of `size` bytes and a terminator to `dest`, which has room for both. Returns
/// `dest`. Null with EINVAL if `size` is not a multiple of four.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_z85_encode(dest: *mut c_char, data: *const u8, size: usize) -> *mut c_char {
    if dest.is_null() || (data.is_null() && size > 0) || !size.is_multiple_of(4) {
        errno::set(errno::EINVAL);
        return std::ptr::null_mut();
    }
    for group in 0..size / 4 {
        // SAFETY: `data` has `size` bytes, and `dest` has room for five characters for each four of
        // them. Byte arrays need no alignment.
        unsafe {
            let text = encode_group(data.add(group * 4).cast::<[u8; 4]>().read());
            dest.add(group * 5).cast::<[u8; 5]>().write(text);
        }
    }
    // SAFETY: `dest` has room for the terminator.
    unsafe { dest.add(size / 4 * 5).write(0) };
    dest
}

/// Writes the bytes that `text` stands for to `dest`, which has room for them. Returns `dest`. Null
/// with EINVAL if the text is empty, if its length is not a multiple of five, or if a group of five
/// is not a number of 32 bits.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_z85_decode(dest: *mut u8, text: *const c_char) -> *mut u8 {
    // SAFETY: `text` is null or a terminated string, `dest` null or large enough, guaranteed by the
    // caller.
    if unsafe { decode_to(dest, text) }.is_none() {
        errno::set(errno::EINVAL);
        return std::ptr::null_mut();
    }
    dest
}

/// # Safety
/// `text` is null, or a string with a NUL. `dest` is null, or has room for four bytes for each five
/// characters of `text`.
unsafe fn decode_to(dest: *mut u8, text: *const c_char) -> Option<()> {
    if dest.is_null() || text.is_null() {
        return None;
    }
    // SAFETY: not null, so a terminated string.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    let (groups, []) = text.as_chunks::<5>() else { return None };
    if groups.is_empty() {
        return None;
    }
    for (index, group) in groups.iter().enumerate() {
        let bytes = decode_group(*group)?;
        // SAFETY: `dest` has room for four bytes for each five characters.
        unsafe { dest.add(index * 4).cast::<[u8; 4]>().write(bytes) };
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    /// The example of RFC 32.
    const BYTES: [u8; 8] = [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B];
    const TEXT: &CStr = c"HelloWorld";

    fn encode(data: &[u8]) -> Option<String> {
        let mut text = vec![1_u8; data.len() / 4 * 5 + 1];
        // SAFETY: room for the text and the terminator.
        unsafe {
            let dest = zmq_z85_encode(text.as_mut_ptr().cast(), data.as_ptr(), data.len());
            (!dest.is_null()).then(|| CStr::from_ptr(dest).to_str().unwrap().to_owned())
        }
    }

    fn decode(text: &CStr) -> Option<Vec<u8>> {
        let mut bytes = vec![0; text.count_bytes() / 5 * 4];
        // SAFETY: room for all bytes that the text can stand for. `as_mut_ptr` of an empty vector
        // is not null.
        let dest = unsafe { zmq_z85_decode(bytes.as_mut_ptr(), text.as_ptr()) };
        (!dest.is_null()).then_some(bytes)
    }

    #[test]
    fn the_rfcs_example_goes_both_ways() {
        assert_eq!(encode(&BYTES).unwrap(), TEXT.to_str().unwrap());
        assert_eq!(decode(TEXT).unwrap(), BYTES);
    }

    #[test]
    fn the_largest_group_fits_and_the_next_does_not() {
        assert_eq!(encode(&[0xFF; 4]).unwrap(), "%nSc0");
        assert_eq!(decode(c"%nSc0").unwrap(), [0xFF; 4]);
        for too_large in [c"%nSc1", c"%nSd0", c"#####"] {
            assert_eq!(decode(too_large), None, "{too_large:?}");
        }
    }

    #[test]
    fn wrong_lengths_and_characters_are_einval() {
        for text in [c"", c"abcd", c"abcdef", c"abc e", c"abc\"e", c"abc\xFFe", c"HelloWorl"] {
            errno::set(0);
            assert_eq!(decode(text), None, "{text:?}");
            assert_eq!(errno::last(), errno::EINVAL);
        }
        for size in [1, 2, 3, 5, 7] {
            errno::set(0);
            assert_eq!(encode(&BYTES[..size]), None);
            assert_eq!(errno::last(), errno::EINVAL);
        }
        assert_eq!(encode(&[]).unwrap(), "");
    }

    #[test]
    fn null_is_einval() {
        let mut text = [0; 11];
        let mut bytes = [0; 8];
        // SAFETY: null is allowed.
        unsafe {
            assert!(zmq_z85_encode(null_mut(), BYTES.as_ptr(), 8).is_null());
            assert!(zmq_z85_encode(text.as_mut_ptr(), null(), 8).is_null());
            assert!(zmq_z85_decode(null_mut(), TEXT.as_ptr()).is_null());
            assert!(zmq_z85_decode(bytes.as_mut_ptr(), null()).is_null());
        }
    }
}
